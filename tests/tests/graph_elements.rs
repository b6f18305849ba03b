//! Elements that determine shapes, while a function is traced and afterwards: the shapes of a graph always match its
//! constants.

use opsmith::{DType, Result, Tensor, TensorOps, UniqueOptions};
use opsmith_graph::{Graph, InputSpec};

fn numbers(shape: &[i64]) -> Tensor {
    let numel: i64 = shape.iter().product();
    let values: Vec<f32> = (0..numel).map(|at| ((at * 37 + 11) % 23) as f32 / 11.0 - 1.0).collect();
    Tensor::from_slice(&values, shape).unwrap()
}

fn inputs() -> [Tensor; 2] {
    [numbers(&[2, 6]), Tensor::of(&[1i64, -1])]
}

#[track_caller]
fn refused(function: impl Fn(&[Tensor]) -> Result<Tensor>, parts: &[&str]) {
    let text = Graph::trace(function, &inputs()).unwrap_err().to_string();
    for part in parts {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn a_constant_that_the_function_changes_decides_no_shape() {
    let constant = Tensor::of(&[3i64, 4]);
    let change = |x: &[Tensor]| constant.add_(&x[1]);
    let reshape = |x: &[Tensor]| x[0].reshape_by(&constant);
    let before = |x: &[Tensor]| {
        change(x)?;
        reshape(x)
    };
    refused(
        before,
        &["reshape.tensor: ", "`shape` decide", "changes them before", "made outside the function"],
    );
    let after = |x: &[Tensor]| {
        let shaped = reshape(x)?;
        change(x)?;
        Ok(shaped)
    };
    refused(after, &["decided a shape", "`reshape.tensor`, as its `shape`", "graph_elements.rs:"]);
    // A part of it is the same memory.
    let part = |x: &[Tensor]| {
        let shaped = reshape(x)?;
        constant.narrow(0, 0, 1)?.add_(&x[1].narrow(0, 0, 1)?)?;
        Ok(shaped)
    };
    refused(part, &["decided a shape"]);
    // Nothing was changed, and the tensor can be read again.
    assert_eq!(constant.to_vec::<i64>().unwrap(), [3, 4]);
    Graph::trace(reshape, &inputs()).unwrap();
}

#[test]
fn elements_of_a_tensor_that_the_function_changes_are_not_read() {
    let constant = Tensor::of(&[3i64, 4]);
    let read = |x: &[Tensor]| {
        constant.add_(&x[1])?;
        x[0].reshape(constant.to_vec::<i64>()?)
    };
    refused(read, &["changes a tensor, and then asks for its elements"]);
    assert_eq!(constant.to_vec::<i64>().unwrap(), [3, 4]);
}

#[test]
fn a_constant_that_has_changed_since_is_noticed() {
    let constant = Tensor::of(&[3i64, 4]);
    let function = |x: &[Tensor]| x[0].reshape_by(&constant);
    let graph = Graph::trace(function, [&inputs()[0]]).unwrap();
    assert_eq!(graph.run(&inputs()[..1]).unwrap()[0].shape(), [3, 4]);
    constant.add_(&inputs()[1]).unwrap();
    let text = graph.run(&inputs()[..1]).unwrap_err().to_string();
    assert!(text.contains("reshape.tensor: the elements of `shape` decided"), "{text}");
    assert!(text.contains("have changed since") && text.contains("graph_elements.rs:"), "{text}");
    // A saved graph has its own copy.
    let folder = std::env::temp_dir().join(format!("opsmith_elements_{}", std::process::id()));
    let again = Graph::trace(function, [&numbers(&[12])]).unwrap();
    again.save(&folder).unwrap();
    let loaded = Graph::load(&folder).unwrap();
    constant.add_(&inputs()[1]).unwrap();
    assert_eq!(loaded.run(&[numbers(&[12])]).unwrap()[0].shape(), [4, 3]);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn sizes_that_a_run_tells_are_those_of_the_spec() {
    let function = |x: &[Tensor]| {
        let (values, places, counts) =
            opsmith::unique_with(&x[0], UniqueOptions::new().return_inverse(true).return_counts(true))?;
        Ok(vec![values, places, counts])
    };
    let graph = Graph::trace(function, [&numbers(&[5, 7])]).unwrap();
    // One size for both results that have as many elements, and the bound that the spec says.
    let [found] = graph.symbols().infos() else { panic!("{:?}", graph.symbols()) };
    assert_eq!((found.name.as_str(), found.most.known()), ("u0", Some(35)));
    let shape = |number: usize| {
        let sizes = &graph.tensors()[graph.outputs()[number].0 as usize].layout.sizes;
        sizes.iter().map(|size| graph.text(size)).collect::<Vec<_>>()
    };
    assert_eq!(
        (shape(0), shape(1), shape(2)),
        (vec!["u0".to_owned()], vec!["5".into(), "7".into()], vec!["u0".into()])
    );
    for input in [numbers(&[5, 7]), Tensor::from_slice(&[2.0f32; 35], &[5, 7]).unwrap()] {
        let (eager, found) = (function(std::slice::from_ref(&input)).unwrap(), graph.run(&[&input]).unwrap());
        for (eager, found) in eager.iter().zip(&found) {
            assert_eq!((eager.shape(), eager.dtype()), (found.shape(), found.dtype()));
        }
        assert_eq!(eager[2].to_vec::<i64>().unwrap(), found[2].to_vec::<i64>().unwrap());
    }
    // With symbols, too.
    let places =
        Graph::trace(|x: &[Tensor]| x[0].nonzero(), [InputSpec::new(DType::F32, ["n".into(), 4.into()])]);
    let places = places.unwrap();
    let x = numbers(&[3, 4]);
    assert_eq!(places.run(&[&x]).unwrap()[0].shape(), x.nonzero().unwrap().shape());
}

/// Inputs may lie in memory as they like, also where a step that finds a size takes a part of one.
#[test]
fn sizes_that_parts_of_a_turned_input_decide() {
    let found = |tensor: Tensor| opsmith::to_dtype(&tensor.nonzero()?, DType::F32);
    let of_part = |x: &[Tensor]| found(x[0].select(1, 1)?);
    let of_result = |x: &[Tensor]| found(x[0].select(1, 1)?.relu()?);
    let elements = [1.0f32, 0.0, 3.0, 0.0, 0.0, 6.0, 7.0, 8.0, 0.0, 0.0, 0.0, 0.0];
    let x = Tensor::from_slice(&elements, &[3, 4]).unwrap().transpose(0, 1).unwrap();
    let spec = || [InputSpec::new(DType::F32, ["n".into(), 3.into()])];
    let graphs = [Graph::trace(of_part, spec()).unwrap(), Graph::trace(of_result, spec()).unwrap()];
    for graph in graphs {
        let expected = of_part(std::slice::from_ref(&x)).unwrap();
        let found = &graph.run(&[&x]).unwrap()[0];
        assert_eq!(found.to_vec::<f32>().unwrap(), expected.to_vec::<f32>().unwrap());
    }
}

/// An input's size may have the name that a size that elements decide gets: they are two symbols all the same.
#[test]
fn symbols_have_names_of_their_own() {
    let function = |x: &[Tensor]| opsmith::to_dtype(&x[0].nonzero()?, DType::F32)?.add(&x[1]);
    let spec = |name: &str| InputSpec::new(DType::F32, [name.into()]);
    let graph = Graph::trace(function, [spec("u0"), InputSpec::new(DType::F32, [1.into()])]).unwrap();
    let names: Vec<&str> = graph.symbols().infos().iter().map(|info| info.name.as_str()).collect();
    assert_eq!(names, ["u0", "u0'1"]);
    graph.check().unwrap();
    let inputs = [Tensor::of(&[1.0f32, 0.0, 2.0]), Tensor::of(&[0.5f32])];
    let found = graph.run(&inputs).unwrap();
    assert_eq!((found[0].shape(), found[0].to_vec::<f32>().unwrap()), (&[2, 1][..], vec![0.5, 2.5]));
}
