//! Graphs saved as ONNX models: read again they give the same results. With `OPSMITH_ONNX_SAVED=FOLDER` the models of the
//! networks stay there, and `scripts/onnx.sh` runs them in another program.

mod programs_support;

use std::path::Path;

use opsmith::{DType, Tensor, TensorOps};
use opsmith_graph::{Graph, InputSpec};
use opsmith_onnx::{OnnxModel, onnx_bytes, save_onnx};
use opsmith_programs::Program;
use programs_support::{Archive, compare, folders};

/// The networks of the folders of programs without branches and loops.
const NETWORKS: [&str; 6] =
    ["mlp", "convnet", "tiny_transformer", "gpt2_eager_attention", "squeezenet1_1", "vit_b_16"];

#[test]
fn networks_read_again_give_the_same_results() {
    let saved = std::env::var_os("OPSMITH_ONNX_SAVED");
    let mut ran = 0;
    for (folder, name) in folders().iter().flat_map(|folder| NETWORKS.map(|name| (folder, name))) {
        let path = folder.join(format!("{name}.pt2"));
        if !path.exists() {
            continue;
        }
        let graph = Program::load(&path).unwrap().graph().unwrap();
        let bytes = onnx_bytes(&graph).unwrap_or_else(|error| panic!("{name}: {error}"));
        let program = Program::from_bytes(bytes.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let recorded = Archive::open(&folder.join(format!("{name}.npz")));
        for case in 0..4 {
            let inputs = recorded.arrays(&format!("case{case}.in")).unwrap();
            let expected = recorded.arrays(&format!("case{case}.out")).unwrap();
            let outputs = program.run(&inputs).unwrap_or_else(|error| panic!("{name}, case {case}: {error}"));
            compare(&format!("{name}, case {case}"), &outputs, &expected);
        }
        if let Some(saved) = &saved {
            std::fs::write(Path::new(saved).join(format!("{name}.onnx")), bytes).unwrap();
        }
        ran += 1;
    }
    assert!(ran >= 2, "{ran} networks");
}

#[test]
fn operators_that_onnx_lacks_keep_their_library() {
    let specs = [InputSpec::new(DType::F32, ["n".into(), 3.into()]).named("x")];
    let graph = Graph::trace(
        |x: &[Tensor]| {
            let (values, places) = x[0].sort()?;
            let joined = opsmith::cat(&[&values.erfinv()?, &values.add(&places)?])?;
            Ok(vec![joined.reshape([-1])?])
        },
        specs,
    )
    .unwrap();
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("onnx-save-{}.onnx", std::process::id()));
    save_onnx(&graph, &path).unwrap();
    let model = OnnxModel::load(&path).unwrap();
    assert_eq!(model.inputs()[0].name.as_deref(), Some("x"));
    assert_eq!(model.output_names(), ["output0"]);
    assert!(model.producer().starts_with("opsmith "), "{}", model.producer());
    let program = Program::load(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    assert_eq!(program.inputs()[0].to_string(), "x: float32 (n, 3)");
    for rows in [1, 2, 5] {
        let x = opsmith::linspace(-0.9, 0.9, 3 * rows).unwrap().reshape([rows, 3]).unwrap();
        let x = x.to_dtype(DType::F32).unwrap();
        compare("operators", &program.run(&[&x]).unwrap(), &graph.run(&[&x]).unwrap());
    }
}

#[test]
fn a_write_of_all_elements_is_a_new_value() {
    let write = |x: &[Tensor]| {
        let y = x[0].exp()?;
        y.add_(&x[0])?;
        Ok(y)
    };
    let graph = Graph::trace(write, [InputSpec::new(DType::F32, [4.into()])]).unwrap();
    let program = Program::from_bytes(onnx_bytes(&graph).unwrap()).unwrap();
    let x = Tensor::of(&[0.0f32, 1.0, -1.0, 2.0]);
    compare("a write", &program.run(&[&x]).unwrap(), &graph.run(&[&x]).unwrap());
}

#[test]
fn graphs_that_write_in_place_are_refused() {
    let trace = |function: fn(&[Tensor]) -> opsmith::Result<Tensor>| {
        Graph::trace(function, [InputSpec::new(DType::F32, [4.into()])]).unwrap()
    };
    let graph = trace(|x| {
        let y = x[0].exp()?;
        let rows = y.reshape([2, 2])?;
        y.add_(&x[0])?;
        rows.neg()
    });
    let text = onnx_bytes(&graph).unwrap_err().to_string();
    assert!(text.contains("writes a tensor in place") && text.contains("add.Tensor"), "{text}");
    let graph = trace(|x| {
        let positive = x[0].sum()?.gt(0)?;
        let mut both = opsmith_graph::cond(&positive, || x[0].exp(), || x[0].neg())?;
        Ok(both.remove(0))
    });
    let text = onnx_bytes(&graph).unwrap_err().to_string();
    assert!(text.contains("a branch, a loop") && text.contains("Graph::save"), "{text}");
}
