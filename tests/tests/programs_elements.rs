//! Exported programs whose nodes depend on elements, numbers or conditions: whether there is a graph, and mistakes of runs. Their
//! results are in `programs.rs`.

mod programs_support;

use opsmith::{DType, Tensor, TensorOps};
use opsmith_programs::Program;
use programs_support::bytes;

fn load(name: &str) -> Program {
    Program::from_bytes(bytes(name)).unwrap()
}

fn rows(rows: i64, columns: i64) -> Tensor {
    opsmith::ones([rows, columns]).unwrap()
}

fn refused(program: &Program, inputs: &[Tensor]) -> String {
    program.run(inputs).unwrap_err().to_string()
}

#[test]
fn a_size_that_is_an_element_leaves_no_graph() {
    let program = load("first_rows.pt2");
    assert!(!program.has_graph().unwrap());
    let checked = program.check().unwrap();
    let place = checked.called.clone().unwrap();
    assert!(
        place.starts_with("the node `item` (torch.ops.aten.item.default), written in record.py:"),
        "{place}"
    );
    assert!(
        checked.to_string().contains("no graph, and nodes that depend on it are not checked"),
        "{checked}"
    );
    let error = program.graph().unwrap_err().to_string();
    assert!(error.contains("the program has no graph: elements decide about its nodes"), "{error}");
    // The checks of the exporter are made with the elements of each run.
    for count in [0i64, 5] {
        let error = refused(&program, &[rows(4, 3), Tensor::scalar(count, DType::I64)]);
        assert!(error.contains("a check of the program does not hold"), "{error}");
    }
}

#[test]
fn a_check_that_holds_for_all_elements_leaves_the_graph() {
    for name in ["positives.pt2", "scans.pt2", "window.pt2", "slopes.pt2", "old.pt2"] {
        let program = load(name);
        assert!(program.has_graph().unwrap(), "{name}");
        assert_eq!(program.check().unwrap().called, None, "{name}");
    }
    // A mask may select nothing.
    let found = load("positives.pt2").run(&[rows(2, 3).neg().unwrap()]).unwrap();
    assert_eq!((found[0].item().unwrap().to_f64(), found[1].shape()), (6.0, &[1][..]));
}

#[test]
fn an_input_may_be_a_number() {
    let program = load("repeated.pt2");
    assert_eq!(program.inputs()[1].to_string(), "args_1: int64 ()");
    let found = program.run(&[rows(2, 3), Tensor::scalar(4, DType::I64)]).unwrap();
    assert_eq!(found[1].shape(), [8, 3]);
    let error = refused(&program, &[rows(2, 3), Tensor::scalar(-4, DType::I64)]);
    assert!(error.contains("do not meet a condition of the program: L['args'][1] >= 0"), "{error}");
    let error = refused(&program, &[rows(2, 3), rows(1, 1)]);
    assert!(error.contains("input `args_1` is float32, and the program takes int64"), "{error}");
}

#[test]
fn sizes_that_only_a_call_requires_to_be_equal_are_one() {
    let program = load("slopes.pt2");
    let checked = program.check().unwrap();
    assert!(checked.requirements.iter().any(|text| text == "s33 == s6"), "{checked}");
    let tokens = |batch| opsmith::ones([batch, 5]).unwrap().to_dtype(DType::I64).unwrap();
    let error = refused(&program, &[tokens(2), tokens(3)]);
    assert!(error.contains("dimension 0") && error.contains("`s33`"), "{error}");
}

#[test]
fn conditions_bound_the_sizes_of_inputs() {
    let program = load("window.pt2");
    assert_eq!(program.run(&[rows(2, 64)]).unwrap()[0].shape(), [2, 64]);
    let error = refused(&program, &[rows(2, 65)]);
    assert!(error.contains("is 65, and its bounds are 0 to 64"), "{error}");
}

#[test]
fn scans_have_gradients_in_calls() {
    let program = load("scans.pt2");
    let x = Tensor::from_slice(&[0.5f32, -1.0, 2.0, 0.25, 3.0, -0.75], &[2, 3]).unwrap();
    x.set_requires_grad(true).unwrap();
    let found = program.call(&[&x]).unwrap();
    // The third result is 2 cos(x), each row by itself.
    found[2].sum().unwrap().backward().unwrap();
    let found = x.grad().unwrap().to_vec::<f32>().unwrap();
    let expected: Vec<f32> = x.to_vec::<f32>().unwrap().iter().map(|x| -2.0 * x.sin()).collect();
    assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?}, {expected:?}");
}
