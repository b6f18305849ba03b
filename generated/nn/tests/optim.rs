//! Optimizers, schedules and clipping give PyTorch's numbers, and continue from their state dicts.
//!
//! In: `data/optim.safetensors`, which `data/record.py` recorded. Out: the parameters after each of ten steps.

mod support;

use opsmith::{Tensor, TensorOps};
use opsmith_nn::StateDict;
use opsmith_nn::optim::*;
use support::{assert_close, optim};

/// The recorded program's parameters: `linspace(-1, 1, 6)` in two rows, and `linspace(2, -1, 4)`.
fn parameters() -> Vec<Tensor> {
    let first: Vec<f64> = (0..6).map(|i| -1.0 + 2.0 * f64::from(i) / 5.0).collect();
    let second: Vec<f64> = (0..4).map(|i| 2.0 - f64::from(i)).collect();
    [Tensor::from_slice(&first, &[2, 3]), Tensor::from_slice(&second, &[4])]
        .map(|tensor| tensor.unwrap().requires_grad_(true).unwrap())
        .into()
}

/// The recorded program's gradients: half the parameter, and the cosine of position and step.
fn set_gradients(parameters: &[Tensor], step: usize) {
    for parameter in parameters {
        let elements = parameter.detach().to_vec::<f64>().unwrap();
        let gradient = |(position, x): (usize, f64)| 0.5 * x + ((position + step) as f64).cos();
        let gradient: Vec<f64> = elements.into_iter().enumerate().map(gradient).collect();
        parameter.set_grad(Some(Tensor::from_slice(&gradient, parameter.shape()).unwrap())).unwrap();
    }
}

fn values(parameters: &[Tensor]) -> Vec<Vec<f64>> {
    parameters.iter().map(|parameter| parameter.detach().to_vec().unwrap()).collect()
}

/// Compares ten steps; stops after five, continues in a new optimizer from the state dict, and compares the bits.
#[track_caller]
fn check<R: UpdateRule>(name: &str, make: impl Fn(Vec<Tensor>) -> opsmith::Result<Optimizer<R>>) {
    let recorded = optim().below(name);
    assert_eq!(recorded.len(), 20, "{name} is not recorded");
    let owned = parameters();
    let mut optimizer = make(owned.clone()).unwrap();
    let mut stopped: Option<(Vec<Tensor>, Optimizer<R>)> = None;
    for step in 0..10 {
        set_gradients(&owned, step);
        optimizer.step().unwrap();
        for (position, parameter) in owned.iter().enumerate() {
            let expected = recorded.get(&format!("{step}.{position}")).unwrap();
            assert_close(&format!("{name}, step {step}, parameter {position}"), parameter, expected, 1e-11);
        }
        if let Some((others, other)) = &mut stopped {
            set_gradients(others, step);
            other.step().unwrap();
            assert_eq!(values(others), values(&owned), "{name}: bits after a restart");
        }
        if step == 4 {
            let copies: Vec<Tensor> = owned
                .iter()
                .map(|parameter| parameter.detach().deep_clone().unwrap().requires_grad_(true).unwrap())
                .collect();
            let mut other = make(copies.clone()).unwrap();
            let bytes = optimizer.state_dict().unwrap().to_bytes().unwrap();
            other.load_state_dict(&StateDict::from_bytes(&bytes).unwrap()).unwrap();
            stopped = Some((copies, other));
        }
    }
}

#[test]
fn gradient_descent() {
    check("sgd", |p| Sgd::new(p, SgdConfig::new().learning_rate(0.1)));
    let config = || SgdConfig::new().learning_rate(0.1).momentum(0.9).dampening(0.2).weight_decay(0.01);
    check("sgd_momentum", |p| Sgd::new(p, config()));
    let config = || SgdConfig::new().learning_rate(0.05).momentum(0.9).nesterov(true);
    check("sgd_nesterov", |p| Sgd::new(p, config()));
    check("sgd_groups", |p| {
        let mut optimizer = Sgd::new([p[0].clone()], SgdConfig::new().learning_rate(0.1))?;
        optimizer.add_group([p[1].clone()], SgdConfig::new().learning_rate(0.5))?;
        Ok(optimizer)
    });
}

#[test]
fn adam() {
    check("adam", |p| Adam::new(p, AdamConfig::new().learning_rate(0.1)));
    let config = || AdamConfig::new().learning_rate(0.1).beta1(0.8).beta2(0.9).eps(1e-3).weight_decay(0.1);
    check("adam_amsgrad", |p| Adam::new(p, config().amsgrad(true)));
    check("adamw", |p| AdamW::new(p, AdamWConfig::new().learning_rate(0.1)));
    let config = || AdamWConfig::new().learning_rate(0.1).weight_decay(0.2).amsgrad(true);
    check("adamw_amsgrad", |p| AdamW::new(p, config()));
}

#[test]
fn rms_prop_and_adagrad() {
    check("rms_prop", |p| RmsProp::new(p, RmsPropConfig::new()));
    let config = || RmsPropConfig::new().learning_rate(0.05).alpha(0.9).momentum(0.5).weight_decay(0.1);
    check("rms_prop_centered", |p| RmsProp::new(p, config().centered(true)));
    check("adagrad", |p| Adagrad::new(p, AdagradConfig::new()));
    let config =
        || AdagradConfig::new().learning_rate(0.1).learning_rate_decay(0.1).weight_decay(0.1).eps(1e-3);
    check("adagrad_decay", |p| Adagrad::new(p, config().initial_accumulator_value(0.5)));
}

#[track_caller]
fn schedule(name: &str, schedule: impl Schedule) {
    let expected = optim().get(&format!("schedule.{name}")).unwrap().to_vec::<f64>().unwrap();
    let mut optimizer = Sgd::new(parameters(), SgdConfig::new().learning_rate(0.3)).unwrap();
    let mut scheduler = Scheduler::new(schedule, &mut optimizer);
    for (step, expected) in expected.iter().enumerate() {
        let found = optimizer.learning_rates()[0];
        assert!((found - expected).abs() < 1e-12, "{name}, step {step}: {found}, expected {expected}");
        scheduler.step(&mut optimizer);
    }
    assert_eq!(scheduler.steps(), 30);
}

#[test]
fn schedules() {
    schedule("step", StepLr { every: 4, factor: 0.5 });
    schedule("exponential", ExponentialLr { factor: 0.9 });
    schedule("cosine", CosineAnnealing { steps: 20, least: 0.01 });
    schedule("warmup", LinearWarmup { steps: 7, start: 0.1 });
    schedule("one_cycle", OneCycle::new(0.5, 31));
    let linear = OneCycle {
        warmup: 0.4,
        first_divisor: 10.0,
        last_divisor: 100.0,
        annealing: Annealing::Linear,
        ..OneCycle::new(0.5, 31)
    };
    schedule("one_cycle_linear", linear);
    let chained =
        Chained::new().with(LinearWarmup { steps: 5, start: 0.25 }).with(ExponentialLr { factor: 0.9 });
    schedule("chained", chained);
    let sequence = LearningRateSequence::new(LinearWarmup { steps: 5, start: 0.1 })
        .then(5, CosineAnnealing { steps: 25, least: 0.0 });
    schedule("sequence", sequence);
}

#[test]
fn a_scheduler_continues() {
    let mut optimizer = Sgd::new(parameters(), SgdConfig::new().learning_rate(1.0)).unwrap();
    let cosine = CosineAnnealing { steps: 10, least: 0.0 };
    let mut scheduler = Scheduler::new(cosine, &mut optimizer);
    (0..3).for_each(|_| scheduler.step(&mut optimizer));
    let mut other = Sgd::new(parameters(), SgdConfig::new().learning_rate(1.0)).unwrap();
    let mut resumed = Scheduler::new(cosine, &mut other);
    other.load_state_dict(&optimizer.state_dict().unwrap()).unwrap();
    resumed.load_state_dict(&scheduler.state_dict()).unwrap();
    assert_eq!(other.learning_rates(), optimizer.learning_rates());
    scheduler.step(&mut optimizer);
    resumed.step(&mut other);
    assert_eq!(other.learning_rates(), optimizer.learning_rates());
    let error = resumed.load_state_dict(&optimizer.state_dict().unwrap()).unwrap_err();
    assert!(error.to_string().contains("not that of a scheduler"), "{error}");
    assert_eq!(resumed.steps(), 4);
}

#[test]
fn clipping() {
    let recorded = optim().below("clip");
    for (name, order) in [("one", 1.0), ("two", 2.0), ("infinity", f64::INFINITY)] {
        let owned = parameters();
        set_gradients(&owned, 0);
        let norm = clip_grad_norm(&owned, 0.7, order).unwrap();
        let expected = recorded.get(&format!("{name}.norm")).unwrap().item().unwrap().to_f64();
        assert!((norm - expected).abs() < 1e-12, "{name}: {norm}, expected {expected}");
        for (position, parameter) in owned.iter().enumerate() {
            let expected = recorded.get(&format!("{name}.{position}")).unwrap();
            assert_close(name, &parameter.grad().unwrap(), expected, 1e-12);
        }
    }
    let owned = parameters();
    set_gradients(&owned, 0);
    clip_grad_value(&owned, 0.4).unwrap();
    for (position, parameter) in owned.iter().enumerate() {
        let expected = recorded.get(&format!("value.{position}")).unwrap();
        assert_close("value", &parameter.grad().unwrap(), expected, 1e-15);
    }
}

#[test]
fn gradients_that_are_infinite_are_not_clipped() {
    let x = Tensor::of(&[1.0f64, 2.0]).requires_grad_(true).unwrap();
    x.set_grad(Some(Tensor::of(&[f64::INFINITY, 1.0]))).unwrap();
    let error = clip_grad_norm(std::slice::from_ref(&x), 1.0, 2.0).unwrap_err();
    assert!(error.to_string().contains("the norm of the gradients is inf"), "{error}");
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [f64::INFINITY, 1.0]);
    assert!(clip_grad_norm(std::slice::from_ref(&x), f64::NAN, 2.0).is_err());
    assert!(clip_grad_value(&[x], -1.0).is_err());
}

#[test]
fn parameters_without_gradients_stay() {
    let owned = parameters();
    let before = values(&owned);
    let mut optimizer = AdamW::new(owned.clone(), AdamWConfig::new()).unwrap();
    optimizer.step().unwrap();
    assert_eq!(values(&owned), before);
    // Such an optimizer has no states, and its state dict loads.
    let dict = optimizer.state_dict().unwrap();
    assert!(dict.names().iter().all(|name| name.starts_with("param_groups.0.")), "{:?}", dict.names());
    optimizer.load_state_dict(&dict).unwrap();
}

#[test]
fn mistakes_in_hyperparameters_and_parameters() {
    let error = |result: opsmith::Result<Sgd>| result.err().unwrap().to_string();
    let text = error(Sgd::new(parameters(), SgdConfig::new().learning_rate(-1.0)));
    assert_eq!(text, "the learning rate is -1\n  help: give a number of 0 or more");
    assert!(error(Sgd::new(parameters(), SgdConfig::new().learning_rate(f64::NAN))).contains("is NaN"));
    assert!(error(Sgd::new(parameters(), SgdConfig::new().nesterov(true))).contains("needs a momentum"));
    assert!(error(Sgd::new([], SgdConfig::new())).contains("no parameters"));
    let x = parameters();
    assert!(
        error(Sgd::new([x[0].clone(), x[0].clone()], SgdConfig::new()))
            .contains("parameter 1 of the group occurs twice")
    );
    let computed = x[0].mul(2.0).unwrap();
    assert!(error(Sgd::new([computed], SgdConfig::new())).contains("was computed by an operator"));
    let mut sgd = Sgd::new(x.clone(), SgdConfig::new()).unwrap();
    assert!(sgd.add_group([x[1].clone()], SgdConfig::new()).is_err());
    assert!(sgd.set_learning_rates(&[0.1, 0.2]).is_err());
    assert!(Adam::new(x, AdamConfig::new().beta1(1.0)).is_err());
}

#[test]
fn a_state_dict_of_another_optimizer_changes_nothing() {
    let owned = parameters();
    let mut sgd = Sgd::new(owned.clone(), SgdConfig::new().learning_rate(0.1).momentum(0.9)).unwrap();
    set_gradients(&owned, 0);
    sgd.step().unwrap();
    let mut dict = sgd.state_dict().unwrap();
    dict.remove("param_groups.0.dampening");
    dict.insert("param_groups.0.learning_rate", Tensor::scalar(-1.0, opsmith::DType::F64));
    dict.insert("state.0.momentum_buffer", Tensor::of(&[1.0f32]));
    dict.remove("state.1.momentum_buffer");
    dict.insert("state.7.step", Tensor::scalar(3, opsmith::DType::I64));
    dict.insert("state.1.step", Tensor::scalar(2, opsmith::DType::I64));
    let error = sgd.load_state_dict(&dict).unwrap_err().to_string();
    for part in [
        "`param_groups.0.dampening` is missing",
        "`param_groups.0`: the learning rate is -1",
        "`state.0.momentum_buffer` is float32 [1], and the parameter is float64 [2, 3]",
        "`state.7.step` is unexpected",
        "`state.1.momentum_buffer` is missing",
    ] {
        assert!(error.contains(part), "{part:?} is not in\n{error}");
    }
    assert_eq!(sgd.learning_rates(), [0.1]);
    let mut dict = sgd.state_dict().unwrap();
    dict.remove("state.0.step");
    dict.insert("state.1.step", Tensor::scalar(-3, opsmith::DType::I64));
    let error = sgd.load_state_dict(&dict).unwrap_err().to_string();
    assert!(error.contains("`state.0.momentum_buffer` has no `state.0.step` beside it"), "{error}");
    assert!(error.contains("`state.1.step` is -3 and no number of steps"), "{error}");
}
