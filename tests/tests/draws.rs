//! Random numbers of distributions: their means and ranges, from a seed.

use opsmith::{Result, Tensor, Value, call};

/// The only result of an operator called by name.
fn one(name: &str, args: &[Value]) -> Result<Tensor> {
    call(name, args, &[])?.remove(0).into_tensor()
}

fn mean(x: &Tensor) -> Result<f64> {
    let numbers = x.to_vec::<f64>()?;
    Ok(numbers.iter().sum::<f64>() / numbers.len() as f64)
}

fn zeros(count: i64) -> Value {
    Value::Tensor(Tensor::from_slice(&vec![0.0f64; count as usize], &[count]).unwrap())
}

#[test]
fn means_of_distributions() -> Result<()> {
    opsmith::runtime::random::manual_seed(3);
    for (name, args, expected) in [
        ("exponential", vec![Value::Float(4.0)], 0.25),
        ("geometric", vec![Value::Float(0.25)], 4.0),
        ("bernoulli.p", vec![Value::Float(0.3)], 0.3),
        ("bernoulli.Tensor", vec![Value::Tensor(Tensor::of(&[0.3f64]))], 0.3),
    ] {
        let drawn = one(name, &[vec![zeros(40_000)], args].concat())?;
        let found = mean(&drawn)?;
        assert!((found - expected).abs() < 0.05 * expected.max(0.2), "{name}: {found}, not {expected}");
    }
    let around =
        one("normal.Tensor_float", &[Value::Tensor(Tensor::of(&[1.0f64, -1.0])), Value::Float(0.0)])?;
    assert_eq!(around.to_vec::<f64>()?, [1.0, -1.0]);
    Ok(())
}

#[test]
fn multinomial_draws_in_proportion_and_no_place_twice() -> Result<()> {
    opsmith::runtime::random::manual_seed(3);
    let weights = Tensor::of(&[1.0f64, 0.0, 3.0]);
    let drawn = one("multinomial", &[Value::Tensor(weights.clone()), Value::Int(20_000), Value::Bool(true)])?;
    let places = drawn.to_vec::<i64>()?;
    assert!(!places.contains(&1));
    let share = places.iter().filter(|place| **place == 2).count() as f64 / places.len() as f64;
    assert!((share - 0.75).abs() < 0.02, "{share}");
    for _ in 0..20 {
        let mut pair =
            one("multinomial", &[Value::Tensor(weights.clone()), Value::Int(2)])?.to_vec::<i64>()?;
        pair.sort_unstable();
        assert_eq!(pair, [0, 2]);
    }
    let error = one("multinomial", &[Value::Tensor(weights), Value::Int(4)]).unwrap_err();
    assert!(error.to_string().contains("num_samples <= self.size(-1)"), "{error}");
    Ok(())
}

#[test]
fn integers_in_any_form() -> Result<()> {
    let sizes = Value::Ints(vec![100]);
    let between = one("randint.low", &[Value::Int(-2), Value::Int(3), sizes.clone()])?.to_vec::<i64>()?;
    assert!(between.iter().all(|x| (-2..3).contains(x)));
    let below = one("randint", &[Value::Int(3), sizes])?.to_vec::<i64>()?;
    assert!(below.iter().all(|x| (0..3).contains(x)));
    let like = one("randint_like", &[zeros(9), Value::Int(3)])?.to_vec::<f64>()?;
    assert!(like.iter().all(|x| [0.0, 1.0, 2.0].contains(x)));
    let mut order = one("randperm", &[Value::Int(9)])?.to_vec::<i64>()?;
    order.sort_unstable();
    assert_eq!(order, (0..9).collect::<Vec<_>>());
    Ok(())
}
