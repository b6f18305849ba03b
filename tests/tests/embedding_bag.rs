//! Bags of rows whose last offset is the end of the last bag, against PyTorch's results: values, the bag of each index,
//! gradients. `data/embedding_bag.jsonl` has a call a line.

use opsmith::autograd::{self, Options};
use opsmith::{Tensor, Value, call};
use serde_json::Value as Json;

fn list<T>(json: &Json, each: impl Fn(&Json) -> T) -> Vec<T> {
    json.as_array().unwrap().iter().map(each).collect()
}

fn integers(json: &Json) -> Tensor {
    let values = list(json, |value| value.as_i64().unwrap());
    Tensor::from_slice(&values, &[values.len() as i64]).unwrap()
}

fn floats(json: &Json) -> Vec<f64> {
    list(json, |value| value.as_f64().unwrap())
}

fn near(got: &Tensor, expected: &Json, what: &str, line: &str) {
    let (got, expected) = (got.to_vec::<f64>().unwrap(), floats(expected));
    assert_eq!(got.len(), expected.len(), "{what} of {line}");
    let differs = got.iter().zip(&expected).any(|(got, expected)| (got - expected).abs() > 1e-12);
    assert!(!differs, "{what} of {line}: {got:?}");
}

#[test]
fn last_offsets_end_the_last_bag() {
    let text = include_str!("../data/embedding_bag.jsonl");
    for line in text.lines() {
        let case: Json = serde_json::from_str(line).unwrap();
        let rows: Vec<f64> = (1..=12).map(f64::from).collect();
        let weight = Tensor::from_slice(&rows, &[4, 3]).unwrap().requires_grad_(true).unwrap();
        let factors = case["factors"].is_array().then(|| {
            let factors = floats(&case["factors"]);
            let tensor = Tensor::from_slice(&factors, &[factors.len() as i64]).unwrap();
            tensor.requires_grad_(true).unwrap()
        });
        let args: Vec<Value> = vec![
            weight.clone().into(),
            integers(&case["indices"]).into(),
            integers(&case["offsets"]).into(),
            case["scale"].as_bool().unwrap().into(),
            case["mode"].as_i64().unwrap().into(),
            false.into(),
            factors.clone().map_or(Value::None, Value::from),
            true.into(),
            case["padding_idx"].as_i64().unwrap().into(),
        ];
        let results = call("_embedding_bag", &args, &[]).unwrap();
        let result = |at: usize| results[at].clone().into_tensor().unwrap();
        near(&result(0), &case["out"], "the result", line);
        let bags = list(&case["bags"], |bag| bag.as_i64().unwrap());
        assert_eq!(result(1).to_vec::<i64>().unwrap(), bags, "{line}");
        let count = result(0).numel();
        let numbers: Vec<f64> = (1..=count).map(|number| number as f64).collect();
        let start = Tensor::from_slice(&numbers, result(0).shape()).unwrap();
        let inputs: Vec<&Tensor> = std::iter::once(&weight).chain(&factors).collect();
        let grads = autograd::grad(&[&result(0)], &inputs, &[Some(&start)], Options::default()).unwrap();
        near(grads[0].as_ref().unwrap(), &case["grad"], "the gradient", line);
        if factors.is_some() {
            near(grads[1].as_ref().unwrap(), &case["factor_grad"], "the factors' gradient", line);
        }
    }
}

#[test]
fn offsets_that_are_no_ends_of_bags_are_refused() {
    let weight = Tensor::from_slice(&[1.0f32; 12], &[4, 3]).unwrap();
    let bag = |offsets: &[i64]| {
        let offsets = Tensor::from_slice(offsets, &[offsets.len() as i64]).unwrap();
        let args = [
            weight.clone().into(),
            Tensor::of(&[2i64, 0, 3, 2]).into(),
            offsets.into(),
            false.into(),
            0i64.into(),
            false.into(),
            Value::None,
            true.into(),
        ];
        call("_embedding_bag", &args, &[]).map(|_| ())
    };
    for offsets in [&[0i64, 1, 5][..], &[0], &[], &[1, 4], &[0, 3, 1], &[0, -1]] {
        bag(offsets).unwrap_err();
    }
    bag(&[0, 4]).unwrap();
}
