//! Graphs as tables, drawings and pages; all mistakes at once; graphs that are built call by call.

use opsmith::{DType, Result, Tensor, TensorOps};
use opsmith_graph::{Dim, Graph, GraphBuilder, InputSpec, Passes};

fn batch() -> InputSpec {
    InputSpec::new(DType::F32, [Dim::from("batch"), 4.into()]).named("x")
}

fn model(x: &[Tensor]) -> Result<Tensor> {
    x[0].exp()?.mul(&Tensor::of(&[1.0f32, 2.0, 3.0, 4.0]))?.transpose(0, 1)?.sin()
}

#[test]
fn a_table_says_everything_of_each_tensor() {
    let graph = Graph::trace(model, [batch()]).unwrap();
    let text = graph.describe_at(&[("batch", 8)]).unwrap();
    let expected = format!(
        "1 input, 4 steps, 7 tensors, 1 output
symbol batch: dimension 0 of x; at least 0; traced with {}

tensor  made by          dtype    shape       layout          bytes  steps  memory
%0      input x          float32  (batch, 4)  row-major         128  0      input
%1      0 exp            float32  (batch, 4)  row-major         128  0–1    in %5 0
%2      1 mul.Tensor     float32  (batch, 4)  row-major         128  1–3    arena 0
%3      constant         float32  (4)         row-major          16  1      constant
%4      2 transpose.int  float32  (4, batch)  strides (1, 4)    128  1–3    arena 0
%5      3 sin            float32  (4, batch)  row-major         128  3      output",
        graph.symbols().infos()[0].example.unwrap()
    );
    assert!(text.starts_with(&expected), "{text}");
    assert!(text.contains("memory: arena 128 bytes, 1.000 of the least possible 128;"), "{text}");
    assert!(graph.describe_at(&[("length", 8)]).is_err());
}

#[test]
fn pages_and_drawings_hold_every_step() {
    let graph = Graph::trace(model, [batch()]).unwrap().optimize(&Passes::all());
    let (page, dot) = (graph.to_html(), graph.to_dot());
    for name in ["exp", "mul.Tensor", "sin", "(batch, 4)"] {
        assert!(page.contains(name) && dot.contains(name), "{name}");
    }
    assert!(!page.contains("http://") || page.matches("http://").count() == 1, "one name space, no address");
    assert!(!page.contains("src=") && !page.contains("https://"));
}

#[test]
fn every_mistake_is_reported_once() {
    let graph = Graph::trace(
        |x: &[Tensor]| {
            let first = x[0].exp()?.narrow(0, 0, 3)?.relu()?;
            let second = x[0].sin()?.narrow(0, 1, 3)?.add(&first)?;
            Ok((first, second, x[0].cos()?))
        },
        [batch()],
    )
    .unwrap();
    graph.check().unwrap();
    graph.check_at(&[("batch", 4)]).unwrap();
    // Both views reach too far; results computed from them are not reported again.
    let errors = graph.check_at(&[("batch", 2)]).unwrap_err();
    let text = errors.to_string();
    assert_eq!(errors.errors().len(), 2, "{text}");
    for error in errors.errors() {
        assert_eq!(error.op(), Some("narrow"), "{text}");
        assert_eq!(error.operands()[0].shape, [2, 4], "{text}");
        assert!(error.notes().iter().any(|note| note.starts_with("called at ")), "{text}");
    }
    assert!(text.contains("its first input came from `exp` at "), "{text}");
    assert!(text.contains(", from input `x`"), "{text}");
}

#[test]
fn calls_by_name_make_a_graph() {
    let mut builder = GraphBuilder::new();
    let x = builder.input(batch());
    let y = builder.call("exp", [x.into()]);
    let parts = builder.call("split.Tensor", [y.into(), 2i64.into(), 1i64.into()]);
    let z = builder.call_with("sub.Tensor", [parts.into(), parts.result(1).into()], [("alpha", 2.0.into())]);
    let graph = builder.finish([z]).unwrap();
    let x = Tensor::from_slice(&(0..8).map(|n| n as f32 / 4.0).collect::<Vec<f32>>(), &[2, 4]).unwrap();
    let found = graph.run(&[&x]).unwrap();
    let rows = opsmith::exp(&x).unwrap();
    let parts = [rows.narrow(1, 0, 2).unwrap(), rows.narrow(1, 2, 2).unwrap()];
    let expected = parts[0].sub(&(&parts[1] * 2.0).unwrap()).unwrap();
    assert_eq!(found[0].to_vec::<f32>().unwrap(), expected.to_vec::<f32>().unwrap());
}

#[test]
fn a_builder_reports_every_wrong_call_and_none_that_follows_from_one() {
    let mut builder = GraphBuilder::new();
    let x = builder.input(batch());
    let first = builder.call("mm", [x.into(), x.into()]);
    let follows = builder.call("relu", [first.into()]);
    let unknown = builder.call("no_such_operator", [x.into()]);
    let fine = builder.call("exp", [x.into()]);
    let missing = builder.call("add.Tensor", [fine.into()]);
    let errors = builder.finish([follows, unknown, missing]).unwrap_err();
    let text = errors.to_string();
    assert_eq!(errors.errors().len(), 3, "{text}");
    for part in ["mm:", "no_such_operator", "`other` is missing", "graph_show.rs", "3 mistakes"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}
