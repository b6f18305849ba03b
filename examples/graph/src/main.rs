//! A network before it runs: declare, infer, check, plan, run.
//!
//! `cargo run --release -p opsmith-example-graph` prints all tensors with their inferred shapes and draws the network.

use anyhow::{Context as _, Result, ensure};
use opsmith::graph::{Graph, InputSpec};
use opsmith::{DType, Tensor, TensorOps};
use opsmith_example_graph::{GatedCellOptions, gated_cell_with, join_rows, split_sign};

/// The network. It is a function like any other: eager mode runs it, and `Graph::trace` records it.
fn network(weights: &Weights, inputs: &[Tensor]) -> opsmith::Result<Vec<Tensor>> {
    let [x, hidden, cell] = inputs else { unreachable!("the graph has three inputs") };
    // Eleven inputs, of which five are optional: the first and the last of those are given.
    let ones = opsmith::ones([x.size(0)?])?;
    let options = GatedCellOptions::default().lengths(&ones).project(&weights.project);
    let (output, state) =
        gated_cell_with(x, &weights.weight, &weights.recurrent, &weights.bias, hidden, cell, &options)?;
    // Any number of inputs.
    let rows = join_rows(&[&state, &state, &state])?;
    // Elements of a tensor determine the shape: it is a constant of the graph.
    let table = rows.reshape_by(&weights.shape)?;
    // The second result follows the first, which follows the input.
    let (positive, negative) = split_sign(&table)?;
    Ok(vec![output, (positive + negative)?])
}

struct Weights {
    weight: Tensor,
    recurrent: Tensor,
    bias: Tensor,
    project: Tensor,
    shape: Tensor,
}

fn numbers(shape: &[i64]) -> Tensor {
    let numel = shape.iter().product::<i64>();
    let values: Vec<f32> = (0..numel).map(|at| ((at * 37 + 11) % 23) as f32 / 11.0 - 1.0).collect();
    Tensor::from_slice(&values, shape).expect("as many as the shape says")
}

fn main() -> Result<()> {
    let (inner, width, columns) = (6, 8, 4);
    let weights = Weights {
        weight: numbers(&[inner, width]),
        recurrent: numbers(&[width, width]),
        bias: numbers(&[width]),
        project: numbers(&[width, columns]),
        shape: Tensor::of(&[-1i64, 3, columns]),
    };

    // Declared: the operators in ops.yaml, the inputs here. The number of rows is not known yet.
    let input =
        |name: &str, columns: i64| InputSpec::new(DType::F32, ["rows".into(), columns.into()]).named(name);
    let inputs = [input("x", inner), input("hidden", width), input("cell", width)];

    // Inferred: every shape and dtype, as formulas of `rows`.
    let graph = Graph::trace(|inputs: &[Tensor]| network(&weights, inputs), &inputs)?;
    for (number, output) in graph.outputs().iter().enumerate() {
        let info = &graph.tensors()[output.0 as usize];
        let sizes: Vec<String> = info.layout.sizes.iter().map(|size| graph.text(size)).collect();
        println!("output {number}: {} ({})", info.dtype, sizes.join(", "));
    }

    // Checked: all inference, before anything runs.
    graph.check()?;

    // Planned: the offset of every tensor in one block of memory.
    println!("\n{}", graph.describe_at(&[("rows", 5)])?);

    // Drawn: one page, with shapes on the edges and memory over time.
    let page = std::env::temp_dir().join("opsmith_graph.html");
    std::fs::write(&page, graph.to_html()).with_context(|| format!("cannot write {}", page.display()))?;
    println!("drawn in {}", page.display());

    // Run: the same numbers as in eager mode, for any number of rows.
    for rows in [5, 1, 32] {
        let inputs = [numbers(&[rows, inner]), numbers(&[rows, width]), numbers(&[rows, width])];
        let (eager, found) = (network(&weights, &inputs)?, graph.run(&inputs)?);
        for (eager, found) in eager.iter().zip(&found) {
            ensure!(eager.shape() == found.shape() && eager.to_vec::<f32>()? == found.to_vec::<f32>()?);
        }
        println!("{rows} rows: outputs of shape {:?} and {:?}", found[0].shape(), found[1].shape());
    }
    Ok(())
}
