//! Custom operators in graphs: the documented flows, with sizes that differ from run to run.

mod aot_support;

use aot_support::{add_reduce, example, matrix, same_shape};
use opsmith::{DType, Result, Tensor, TensorOps, autograd};
use opsmith_aot::{AttrValue, Declaration};
use opsmith_graph::{BuilderArg, Graph, GraphBuilder, InputSpec};

fn grad(output: &Tensor, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
    let found = autograd::grad(&[output], inputs, &[None], Default::default())?;
    Ok(found.into_iter().flatten().collect())
}

#[test]
fn the_documented_example_has_four_rows_and_unknown_columns() -> Result<()> {
    let op = add_reduce("aot_graph_documented").declare()?;
    let attributes = [("axis", AttrValue::Int(1)), ("keep_dim", false.into())];
    let spec = || InputSpec::new(DType::F32, [4.into(), "columns".into()]);
    let graph = Graph::trace(|x: &[Tensor]| op.call_with(&[&x[0], &x[1]], &attributes), [spec(), spec()])?;
    assert!(graph.guards().is_empty());
    let ones = matrix(4, 5, |_| 1.0);
    let result = graph.run(&[&ones, &ones])?;
    assert_eq!((result[0].shape(), result[0].to_vec::<f32>()?), (&[4][..], vec![10.0; 4]));
    Ok(())
}

/// One graph for each way to reduce serves every size, in any order.
#[test]
fn growing_sizes_equal_the_reference() -> Result<()> {
    let op = add_reduce("aot_graph_growing").declare()?;
    let ways = [(0, false), (1, false), (0, true), (1, true)];
    let graphs = ways.map(|(axis, keep)| {
        let attributes = [("axis", AttrValue::Int(axis)), ("keep_dim", keep.into())];
        let spec = || InputSpec::new(DType::F32, [4.into(), "columns".into()]);
        Graph::trace(|x: &[Tensor]| op.call_with(&[&x[0], &x[1]], &attributes), [spec(), spec()]).unwrap()
    });
    for columns in [5usize, 50, 500, 5000, 50_000, 500_000, 50, 5_000_000, 5, 500] {
        let x = matrix(4, columns, |index| ((index * 7919) % 1000) as f32 / 500.0);
        let y = matrix(4, columns, |index| ((index * 104_729) % 1000) as f32 / 500.0);
        let sums: Vec<f64> =
            x.to_vec::<f32>()?.iter().zip(y.to_vec::<f32>()?).map(|(x, y)| f64::from(x + y)).collect();
        let by_row: Vec<f64> = sums.chunks(columns).map(|row| row.iter().sum()).collect();
        let by_column: Vec<f64> =
            (0..columns).map(|column| sums[column..].iter().step_by(columns).sum()).collect();
        for ((axis, keep), graph) in ways.into_iter().zip(&graphs) {
            let expected = if axis == 0 { &by_column } else { &by_row };
            let out = &graph.run(&[&x, &y])?[0];
            let kept = expected.len() as i64;
            let shape = match (keep, axis) {
                (false, _) => vec![kept],
                (true, 0) => vec![1, kept],
                (true, _) => vec![kept, 1],
            };
            assert_eq!(out.shape(), shape);
            for (got, want) in out.to_vec::<f32>()?.iter().zip(expected) {
                let error = (f64::from(*got) - want).abs();
                let what = || format!("{columns} columns, axis {axis}: {got} instead of {want}");
                assert!(error <= 1e-6 * want.abs(), "{}", what());
            }
        }
    }
    Ok(())
}

#[test]
fn the_gradient_of_a_square_twice() -> Result<()> {
    let square = Declaration::new("aot_graph_square", example("square.cc:Square")).input("x").output("y");
    let op = same_shape(square, 1)
        .dtypes([DType::F32; 2])
        .bprop(|call| {
            let two = Tensor::scalar(2.0, DType::F32);
            Ok(vec![Some(call.input(0)?.mul(&two)?.mul(&call.grad_or_zeros(0)?)?)])
        })
        .declare()?;
    let spec = InputSpec::new(DType::F32, ["n".into()]).requiring_grad();
    let graph =
        Graph::trace(|x: &[Tensor]| grad(&op.call(&[&op.call(&[&x[0]])?])?.sum()?, &[&x[0]]), [spec])?;
    assert_eq!(graph.run(&[Tensor::of(&[1.0f32, 4.0, 9.0])])?[0].to_vec::<f32>()?, [4.0, 256.0, 2916.0]);
    assert_eq!(graph.run(&[Tensor::of(&[1.0f32])])?[0].to_vec::<f32>()?, [4.0]);
    Ok(())
}

#[test]
fn gradients_of_several_outputs() -> Result<()> {
    let bprop = Declaration::new("aot_graph_amd_bprop", example("add_mul_div.cc:AddMulDivBprop"));
    let bprop = ["x", "y", "dsum", "dproduct", "dquotient"].into_iter().fold(bprop, Declaration::input);
    let bprop = same_shape(bprop.output("dx").output("dy").output_dtypes([DType::F32; 2]), 2).declare()?;
    let op = Declaration::new("aot_graph_amd", example("add_mul_div.cc:AddMulDiv"));
    let op = op.input("x").input("y").output("sum").output("product").output("quotient");
    let op = same_shape(op.dtypes([DType::F32; 5]).bprop_operator(&bprop), 3).declare()?;
    let function = |x: &[Tensor]| {
        let outs = op.call_several(&[&x[0], &x[1]])?;
        grad(&outs[0].add(&outs[1])?.mul(&outs[2])?.sum()?, &[&x[0], &x[1]])
    };
    let spec = || InputSpec::new(DType::F32, ["n".into()]).requiring_grad();
    let graph = Graph::trace(function, [spec(), spec()])?;
    let found = graph.run(&[Tensor::of(&[1.0f32, 4.0, 9.0]), Tensor::of(&[1.0f32, 1.0, 1.0])])?;
    assert_eq!(found[0].to_vec::<f32>()?, [5.0, 17.0, 37.0]);
    assert_eq!(found[1].to_vec::<f32>()?, [-1.0, -16.0, -81.0]);
    // Nothing flows to the product and the quotient: their gradients are zeros that the graph makes.
    let one = |x: &[Tensor]| grad(&op.call_several(&[&x[0], &x[1]])?[0].sum()?, &[&x[0], &x[1]]);
    let graph = Graph::trace(one, [spec(), spec()])?;
    let found = graph.run(&[Tensor::of(&[1.0f32, 4.0]), Tensor::of(&[1.0f32, 1.0])])?;
    assert_eq!((found[0].to_vec::<f32>()?, found[1].to_vec::<f32>()?), (vec![1.0; 2], vec![1.0; 2]));
    Ok(())
}

#[test]
fn a_transpose_and_its_gradient() -> Result<()> {
    let declare = |name: &str| {
        let new = Declaration::new(name, aot_support::kernel("transpose.cc:Transpose"));
        new.input("x").output("y").dtypes([DType::F32; 2])
    };
    let back = declare("aot_graph_transpose_back").declare()?;
    let op = declare("aot_graph_transpose")
        .bprop(move |call| Ok(vec![Some(back.call(&[&call.grad_or_zeros(0)?])?)]))
        .declare()?;
    let function = |x: &[Tensor]| {
        let y = op.call(&[&x[0]])?;
        let dx = autograd::grad(&[&y], &[&x[0]], &[Some(&x[1])], Default::default())?;
        Ok([y.detach(), dx[0].clone().expect("y depends on x")])
    };
    let spec = |dims: [&str; 2]| InputSpec::new(DType::F32, dims.map(Into::into));
    let graph = Graph::trace(function, [spec(["r", "c"]).requiring_grad(), spec(["c", "r"])])?;
    let found = graph.run(&[matrix(2, 3, |index| index as f32), matrix(3, 2, |index| index as f32)])?;
    assert_eq!(
        (found[0].shape(), found[0].to_vec::<f32>()?),
        (&[3, 2][..], vec![0.0, 3.0, 1.0, 4.0, 2.0, 5.0])
    );
    assert_eq!(
        (found[1].shape(), found[1].to_vec::<f32>()?),
        (&[2, 3][..], vec![0.0, 2.0, 4.0, 1.0, 3.0, 5.0])
    );
    Ok(())
}

/// For an unknown rank, an operator's own inference determines as much as it can.
#[test]
fn operators_of_any_rank_in_a_graph_of_calls() -> Result<()> {
    let square = |name: &str| Declaration::new(name, example("square.cc:Square")).input("x").output("y");
    same_shape(square("aot_open_same"), 1).dtypes([DType::F32; 2]).declare()?;
    square("aot_open_constant").output_shape([2, 3]).output_dtype(DType::F32).declare()?;
    // These assume a second dimension, or reject unknown sizes.
    square("aot_open_second")
        .output_shape_fn(|call| Ok(vec![vec![call.shape(0)?[0], call.shape(0)?[1]]]))
        .output_dtype(DType::F32)
        .declare()?;
    square("aot_open_refused")
        .output_shape_fn(|call| match call.shape(0)? {
            shape if shape.iter().all(|size| *size >= 0) => Ok(vec![shape.to_vec()]),
            _ => Err(opsmith_runtime::Error::shape("sizes are missing")),
        })
        .output_dtype(DType::F32)
        .declare()?;
    add_reduce("aot_open_library").declare()?;
    let mut builder = GraphBuilder::new();
    let x = builder.input(InputSpec::of_any_rank(DType::F32).named("x"));
    let y = builder.input(InputSpec::new(DType::F32, [(-1).into(), 3.into()]).named("y"));
    let names = ["aot_open_same", "aot_open_constant", "aot_open_second", "aot_open_refused"];
    let mut outputs: Vec<_> = names.iter().map(|name| builder.call(name, [x.into()])).collect();
    outputs.push(builder.call("aot_open_library", [x.into(), x.into(), BuilderArg::from(1i64)]));
    outputs.push(builder.call("aot_open_same", [y.into()]));
    // Later calls are inferred, too.
    outputs.push(builder.call("relu", [outputs[0].into()]));
    outputs.push(builder.call("sum.dim_IntList", [outputs[5].into(), vec![0i64].into()]));
    let graph = builder.open(outputs).map_err(|errors| errors.into_error())?;
    let shape = |number: usize| graph.outputs()[number].shape.named(graph.symbols()).to_string();
    let known: Vec<String> = (0..8).map(shape).collect();
    assert_eq!(known, ["(-2)", "(2, 3)", "(-2)", "(-2)", "(-2)", "(s0, 3)", "(-2)", "(3)"]);
    assert!(graph.outputs().iter().all(|meta| meta.dtype == DType::F32));
    assert!(graph.describe().contains("aot_open_refused"));
    let x = matrix(2, 3, |index| index as f32);
    let found = graph.run(&[&x, &matrix(4, 3, |_| 2.0)])?;
    let squares = vec![0.0, 1.0, 4.0, 9.0, 16.0, 25.0];
    for number in [0, 1, 2, 3, 6] {
        assert_eq!((found[number].shape(), found[number].to_vec::<f32>()?), (&[2, 3][..], squares.clone()));
    }
    assert_eq!(found[4].to_vec::<f32>()?, [6.0, 24.0]);
    assert_eq!(found[7].to_vec::<f32>()?, [16.0; 3]);
    Ok(())
}

/// A mistake of an operator is reported when the graph is made, rather than a lack of results.
#[test]
fn operators_that_cannot_be_inferred_are_refused_with_the_reason() -> Result<()> {
    let no_file = Declaration::new("aot_open_no_file", "kernels/is_not_there.cc:F").input("x").output("y");
    no_file.output_dtype(DType::F32).declare()?;
    let gone =
        same_shape(Declaration::new("aot_open_gone", example("square.cc:Square")).input("x").output("y"), 1);
    let gone = gone.dtypes([DType::F32; 2]).declare()?;
    let list = Declaration::new("aot_open_list", example("square.cc:Square")).input("x").dynamic_output("ys");
    list.output_shape_fn(|call| Ok(vec![vec![1]; usize::try_from(call.shape(0)?[0]).unwrap()]))
        .output_dtype(DType::F32)
        .declare()?;
    let error = |name: &str, unload: bool| {
        let mut builder = GraphBuilder::new();
        let x = builder.input(InputSpec::of_any_rank(DType::F32).named("x"));
        let y = builder.call(name, [x.into()]);
        if unload {
            gone.unload();
        }
        builder.open([y]).map(|_| ()).unwrap_err().to_string()
    };
    let text = error("aot_open_no_file", false);
    assert!(text.contains("aot_open_no_file: ") && text.contains("is_not_there.cc"), "{text}");
    assert!(error("aot_open_list", false).contains("how many"), "{}", error("aot_open_list", false));
    let text = error("aot_open_gone", true);
    assert!(text.contains("aot_open_gone"), "{text}");
    Ok(())
}
