//! The program beside this file produces its documented output, and its operators infer the shapes they compute.

use std::process::Command;

use opsmith::graph::{Graph, InputSpec};
use opsmith::{DType, Result, Tensor};
use opsmith_example_graph::{GatedCellOptions, gated_cell_with, join_rows, split_sign};

#[test]
fn the_program_infers_describes_draws_and_runs() {
    let output = Command::new(env!("CARGO_BIN_EXE_opsmith-example-graph")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for line in [
        "output 0: float32 (rows, 8)",
        "output 1: float32 (rows, 3, 4)",
        "5 rows: outputs of shape [5, 8] and [5, 3, 4]",
        "32 rows: outputs of shape [32, 8] and [32, 3, 4]",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    // The table has every node, the shapes as formulas, and the location of memory.
    for part in ["gated_cell", "join_rows", "reshape.tensor", "split_sign", "(3*rows, 4)", "arena"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let page = text.lines().find_map(|line| line.strip_prefix("drawn in ")).unwrap();
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("gated_cell") && page.contains("<svg"));
}

fn numbers(shape: &[i64]) -> Tensor {
    let numel = shape.iter().product::<i64>();
    Tensor::from_slice(&(0..numel).map(|at| (at % 7) as f32 / 4.0 - 0.6).collect::<Vec<_>>(), shape).unwrap()
}

/// Each combination of the five optional inputs, in eager mode and in a graph for any number of rows.
#[test]
fn optional_inputs_may_be_absent_anywhere() -> Result<()> {
    let (weight, recurrent, bias) = (numbers(&[6, 8]), numbers(&[8, 8]), numbers(&[8]));
    let (row, project) = (numbers(&[8]), numbers(&[8, 3]));
    for present in 0..32 {
        let function = |x: &[Tensor]| {
            let ones = opsmith::ones([x[0].size(0)?])?;
            let there = |bit: i32| present & 1 << bit != 0;
            let mut options = GatedCellOptions::default();
            if there(0) {
                options = options.lengths(&ones);
            }
            if there(1) {
                options = options.peephole(&row);
            }
            if there(2) {
                options = options.gain(&row);
            }
            if there(3) {
                options = options.mask(&ones);
            }
            if there(4) {
                options = options.project(&project);
            }
            gated_cell_with(&x[0], &weight, &recurrent, &bias, &x[1], &x[2], &options)
        };
        let spec = |columns: i64| InputSpec::new(DType::F32, ["n".into(), columns.into()]);
        let graph = Graph::trace(function, [spec(6), spec(8), spec(8)])?;
        let state = &graph.tensors()[graph.outputs()[1].0 as usize].layout.sizes;
        assert_eq!(graph.text(&state[0]), "n");
        assert_eq!(graph.text(&state[1]), if present & 16 != 0 { "3" } else { "8" });
        let inputs = [numbers(&[4, 6]), numbers(&[4, 8]), numbers(&[4, 8])];
        let (eager, found) = (function(&inputs)?, graph.run(&inputs)?);
        assert_eq!(eager.0.to_vec::<f32>()?, found[0].to_vec::<f32>()?);
        assert_eq!(eager.1.to_vec::<f32>()?, found[1].to_vec::<f32>()?);
        assert_eq!(eager.1.shape(), [4, if present & 16 != 0 { 3 } else { 8 }]);
    }
    Ok(())
}

#[test]
fn the_number_of_inputs_may_differ() -> Result<()> {
    for count in 1..4 {
        let function = |x: &[Tensor]| join_rows(&vec![x[0].clone(); count]);
        let graph = Graph::trace(function, [InputSpec::new(DType::F32, ["n".into(), 2.into()])])?;
        assert_eq!(graph.run(&[numbers(&[3, 2])])?[0].shape(), [3 * count as i64, 2]);
    }
    let none: [Tensor; 0] = [];
    assert!(join_rows(&none).unwrap_err().to_string().contains("no parts"));
    Ok(())
}

#[test]
fn results_follow_the_input_one_after_the_other() -> Result<()> {
    let (positive, negative) = split_sign(&Tensor::of(&[1.0f64, -2.0, 0.0]))?;
    assert_eq!((positive.dtype(), negative.dtype()), (DType::F64, DType::F64));
    assert_eq!(positive.to_vec::<f64>()?, [1.0, 0.0, 0.0]);
    assert_eq!(negative.to_vec::<f64>()?, [0.0, -2.0, 0.0]);
    Ok(())
}
