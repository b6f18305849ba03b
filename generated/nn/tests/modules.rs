//! Modules: modes, moves, initial values, names, and errors with the path of a layer.

mod support;

use opsmith::{DType, Device, Error, Generator, Result, Tensor, TensorOps};
use opsmith_nn::init::{self, Fan, Nonlinearity};
use opsmith_nn::*;

fn g() -> Generator {
    Generator::new(7)
}

struct Block {
    conv: Conv2d,
    norm: BatchNorm2d,
    rest: Vec<Linear>,
    extra: Option<Box<dyn Layer>>,
    unused: usize,
}

module!(Block { conv, norm, rest, extra });

fn block() -> Block {
    Block {
        conv: Conv2d::new(1, 2, 2, &g()).unwrap(),
        norm: BatchNorm2d::new(2).unwrap(),
        rest: vec![Linear::new(2, 2, &g()).unwrap(), Linear::new(2, 2, &g()).unwrap()],
        extra: Some(Box::new(sequential![Dropout::new(0.5).unwrap(), Lstm::new(2, 3, &g()).unwrap()])),
        unused: 3,
    }
}

#[test]
fn names_are_those_of_pytorch() {
    let block = block();
    assert_eq!(block.unused, 3);
    let names: Vec<String> = block.named_parameters().into_iter().map(|(name, _)| name).collect();
    let expected = [
        "conv.weight",
        "conv.bias",
        "norm.weight",
        "norm.bias",
        "rest.0.weight",
        "rest.0.bias",
        "rest.1.weight",
        "rest.1.bias",
        "extra.1.weight_ih_l0",
        "extra.1.weight_hh_l0",
        "extra.1.bias_ih_l0",
        "extra.1.bias_hh_l0",
    ];
    assert_eq!(names, expected);
    let buffers: Vec<String> = block.named_buffers().into_iter().map(|(name, _)| name).collect();
    assert_eq!(buffers, ["norm.running_mean", "norm.running_var", "norm.num_batches_tracked"]);
}

#[test]
fn evaluation_changes_nothing_and_training_counts() {
    let mut norm = BatchNorm1d::new(3).unwrap();
    let x = opsmith::randn_generator([8, 3], Some(&g())).unwrap();
    let batches =
        |norm: &BatchNorm1d| norm.state_dict().get("num_batches_tracked").unwrap().item().unwrap().to_f64();
    norm.forward(&x).unwrap();
    norm.forward(&x).unwrap();
    assert_eq!(batches(&norm), 2.0);
    norm.eval();
    let before = norm.state_dict().copied().unwrap();
    let (a, b) = (norm.forward(&x).unwrap(), norm.forward(&x).unwrap());
    assert_eq!(a.to_vec::<f32>().unwrap(), b.to_vec::<f32>().unwrap());
    for (path, tensor) in before.iter() {
        support::assert_close(path, norm.state_dict().get(path).unwrap(), tensor, 0.0);
    }
    norm.train();
    norm.forward(&x).unwrap();
    assert_eq!(batches(&norm), 3.0);
}

#[test]
fn dropout_by_a_generator_repeats() -> Result<()> {
    let x = opsmith::ones([1000])?.requires_grad_(true)?;
    let draw = |seed| Dropout::new(0.25)?.generator(&Generator::new(seed)).forward(&x);
    let (a, b, c) = (draw(1)?.to_vec::<f32>()?, draw(1)?.to_vec::<f32>()?, draw(2)?.to_vec::<f32>()?);
    assert_eq!(a, b);
    assert_ne!(a, c);
    let zeros = a.iter().filter(|x| **x == 0.0).count();
    assert!((200..300).contains(&zeros), "{zeros} of 1000 with probability 1/4");
    assert!(a.iter().all(|x| *x == 0.0 || (*x - 4.0 / 3.0).abs() < 1e-6));
    // The gradient has the factors of the results.
    let y = draw(1)?;
    y.sum()?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?, a);
    let all = Dropout::new(1.0)?.generator(&g()).forward(&x)?;
    assert!(all.to_vec::<f32>()?.iter().all(|x| *x == 0.0));
    assert!(Dropout::new(1.5).is_err() && Dropout::new(f64::NAN).is_err());
    Ok(())
}

#[test]
fn conversions_keep_names_ties_and_values() -> Result<()> {
    let table = Embedding::new(5, 4, &g())?;
    let logits =
        Linear::new_with(4, 5, LinearConfig::new().bias(false), &g())?.with_weight(table.weight())?;
    let mut network = Sequential::new().add("table", table)?.add("logits", logits)?;
    assert_eq!(network.named_parameters().len(), 1);
    assert_eq!(network.state_dict().names(), ["logits.weight", "table.weight"]);
    let before = network.parameters()[0].detach().to_dtype(DType::F64)?;
    network.to_dtype(DType::F64)?;
    assert_eq!(network.parameters().len(), 1, "tied parameters stay tied");
    let parameter = &network.parameters()[0];
    assert!(parameter.requires_grad() && parameter.is_leaf());
    support::assert_close("converted", parameter, &before, 0.0);
    let same = network.parameters()[0].clone();
    network.to_device(Device::CPU)?;
    assert!(network.parameters()[0].same(&same), "a move to the same device replaces nothing");
    let error = network.to_dtype(DType::I64).unwrap_err();
    assert!(error.to_string().contains("parameters cannot be int64"), "{error}");
    network.requires_grad_(false)?;
    assert!(!network.parameters()[0].requires_grad());
    network.to_dtype(DType::F32)?;
    assert!(!network.parameters()[0].requires_grad(), "frozen parameters stay frozen");
    Ok(())
}

#[test]
fn gradients_are_removed() -> Result<()> {
    let layer = Linear::new(2, 1, &g())?;
    layer.forward(&opsmith::ones([1, 2])?)?.sum()?.backward()?;
    assert!(layer.parameters().iter().all(|parameter| parameter.grad().is_some()));
    layer.zero_grad();
    assert!(layer.parameters().iter().all(|parameter| parameter.grad().is_none()));
    Ok(())
}

#[test]
fn names_of_layers_are_unique() -> Result<()> {
    assert!(text(Sequential::new().add("a", Relu)?.add("a", Relu)).contains("two layers have the name `a`"));
    for name in ["", "1", "a.b"] {
        assert!(text(Sequential::new().add(name, Relu)).contains("cannot have the name"));
    }
    Ok(())
}

/// A batch of another dtype is refused by the operator, and changes no statistics.
#[test]
fn a_batch_that_the_operator_refuses_does_not_count() -> Result<()> {
    let norm = BatchNorm1d::new(2)?;
    let before = norm.state_dict().copied()?;
    assert!(norm.forward(&opsmith::ones([3, 2])?.to_dtype(DType::I64)?).is_err());
    for (path, tensor) in before.iter() {
        support::assert_close(path, norm.state_dict().get(path).unwrap(), tensor, 0.0);
    }
    Ok(())
}

fn text<T>(result: Result<T>) -> String {
    result.err().map(|error: Error| error.to_string()).unwrap()
}

#[test]
fn errors_have_the_operator_and_the_path() -> Result<()> {
    let inner = Sequential::new().push(Relu).push(Linear::new(3, 2, &g())?);
    let network = Sequential::new().add("encoder", inner)?;
    let error = text(network.forward(&opsmith::ones([2, 4])?));
    assert!(error.contains("in the layer `1`\n  in the layer `encoder`"), "{error}");
    assert!(error.contains("(2, 4)"), "{error}");
    let layer = TransformerEncoderLayer::new(4, 2, &g())?;
    let error = text(layer.forward(&opsmith::ones([3, 1, 5])?));
    assert!(error.contains("in the layer `self_attn`"), "{error}");
    Ok(())
}

#[test]
fn mistakes_of_construction_and_shape() -> Result<()> {
    let error = text(Conv2d::new_with(3, 4, 3, ConvConfig::new().groups(2), &g()));
    assert!(
        error.contains("3 channels of the input and 4 of the result cannot be divided into 2 groups"),
        "{error}"
    );
    assert!(text(Conv1d::new(0, 1, 1, &g())).contains("does not exist"));
    assert!(text(ConvTranspose1d::new(1, 1, 0, &g())).contains("has no elements"));
    assert!(text(GroupNorm::new(3, 4)).contains("cannot be divided into 3 groups"));
    assert!(text(MultiheadAttention::new(5, 2, &g())).contains("cannot be divided among 2 heads"));
    assert!(text(Lstm::new(2, 0, &g())).contains("does not exist"));
    let config = EmbeddingConfig::new().padding_index(5);
    assert!(text(Embedding::new_with(5, 2, config, &g())).contains("the padding index 5 is no row of 5"));
    assert!(Linear::new(-1, 2, &g()).is_err());
    assert!(LayerNorm::new([-2]).is_err());
    let norm = BatchNorm2d::new(3)?;
    assert!(text(norm.forward(&opsmith::ones([2, 3])?)).contains("BatchNorm2d takes [4] dimensions"));
    assert!(text(norm.forward(&opsmith::ones([2, 4, 1, 1])?)).contains("of 3 channels"));
    assert!(text(norm.forward(&opsmith::ones([1, 3, 1, 1])?)).contains("a single element of each channel"));
    let counted = norm.state_dict().get("num_batches_tracked").unwrap().item()?.to_f64();
    assert_eq!(counted, 0.0, "a refused batch does not count");
    assert!(text(InstanceNorm1d::new(2)?.forward(&opsmith::ones([1, 3, 4])?)).contains("of 2 channels"));
    assert!(text(Gru::new(2, 2, &g())?.forward(&opsmith::ones([2])?)).contains("two or three dimensions"));
    let attention = MultiheadAttention::new(4, 2, &g())?;
    assert!(text(attention.forward(&opsmith::ones([4])?)).contains("two or three dimensions"));
    assert!(
        text(Linear::new(2, 3, &g())?.with_weight(Linear::new(3, 3, &g())?.weight()))
            .contains("cannot replace")
    );
    Ok(())
}

#[test]
fn first_values_are_those_of_pytorch() -> Result<()> {
    let within = |tensor: &Tensor, bound: f64| -> Result<()> {
        let largest = tensor.detach().abs()?.max()?.item()?.to_f64();
        assert!(largest <= bound && largest > 0.9 * bound, "{largest} of {bound}");
        Ok(())
    };
    let linear = Linear::new(64, 100, &g())?;
    within(linear.weight(), 1.0 / 8.0)?;
    within(linear.bias().unwrap(), 1.0 / 8.0)?;
    within(Conv2d::new_with(8, 32, 4, ConvConfig::new().groups(2), &g())?.weight(), 1.0 / 8.0)?;
    within(ConvTranspose2d::new(32, 4, 4, &g())?.weight(), 1.0 / 8.0)?;
    for parameter in Lstm::new(50, 64, &g())?.parameters() {
        within(&parameter, 1.0 / 8.0)?;
    }
    let attention = MultiheadAttention::new(32, 2, &g())?.state_dict();
    within(attention.get("in_proj_weight").unwrap(), (6.0f64 / 128.0).sqrt())?;
    assert_eq!(attention.get("out_proj.bias").unwrap().to_vec::<f32>()?, [0.0; 32]);
    let table = Embedding::new_with(100, 10, EmbeddingConfig::new().padding_index(3), &g())?;
    assert_eq!(table.weight().detach().select(0, 3)?.to_vec::<f32>()?, [0.0; 10]);
    let deviation = table.weight().detach().std()?.item()?.to_f64();
    assert!((0.9..1.1).contains(&deviation), "{deviation}");
    let again = Linear::new(64, 100, &g())?;
    assert_eq!(linear.weight().detach().to_vec::<f32>()?, again.weight().detach().to_vec::<f32>()?);
    Ok(())
}

#[test]
fn functions_of_initial_values() -> Result<()> {
    let weight = opsmith::empty([200, 50, 2])?;
    assert_eq!(init::fans(&weight)?, (100, 400));
    let deviation = |weight: &Tensor| weight.std()?.item().map(|number| number.to_f64());
    let near =
        |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 0.05, "{found}, {expected}");
    init::xavier_normal_(&weight, 2.0, &g())?;
    near(deviation(&weight)?, 2.0 * (2.0f64 / 500.0).sqrt());
    init::xavier_uniform_(&weight, 1.0, &g())?;
    near(deviation(&weight)?, (2.0f64 / 500.0).sqrt());
    init::kaiming_normal_(&weight, Fan::Out, Nonlinearity::Relu, &g())?;
    near(deviation(&weight)?, (2.0f64 / 400.0).sqrt());
    init::kaiming_uniform_(&weight, Fan::In, Nonlinearity::LeakyRelu(1.0), &g())?;
    near(deviation(&weight)?, 0.1);
    init::trunc_normal_(&weight, 1.0, 2.0, 0.0, 2.0, &g())?;
    let elements = weight.to_vec::<f32>()?;
    assert!(elements.iter().all(|x| (0.0..=2.0).contains(x)));
    near(f64::from(elements.iter().sum::<f32>()) / elements.len() as f64, 1.0);
    assert!(init::trunc_normal_(&weight, 0.0, 1.0, 1.0, 1.0, &g()).is_err());
    for shape in [[6, 2, 2], [3, 4, 2]] {
        let weight = opsmith::empty(shape)?;
        init::orthogonal_(&weight, 3.0, &g())?;
        let rows = weight.reshape([shape[0], shape[1] * shape[2]])?;
        let rows = if shape[0] > shape[1] * shape[2] { rows.t()? } else { rows };
        let identity = opsmith::empty([rows.shape()[0]; 2])?;
        init::eye_(&identity)?;
        support::assert_close("orthonormal", &rows.matmul(&rows.t()?)?.div(9.0)?, &identity, 1e-5);
    }
    assert!(text(init::fans(&opsmith::ones([3])?)).contains("has no fan-in"));
    assert!(init::eye_(&opsmith::ones([3])?).is_err());
    init::constant_(&weight, 0.5)?;
    assert_eq!(deviation(&weight)?, 0.0);
    Ok(())
}
