//! Custom operators loaded at run time: numbers, gradients, inference, declarations.

mod aot_support;

use aot_support::{add_reduce, example, matrix, same_shape};
use opsmith::{DType, Result, Tensor, TensorOps, Value, autograd};
use opsmith_aot::{AttrValue, Declaration, Operator};

#[test]
fn the_documented_example() -> Result<()> {
    let op = add_reduce("aot_documented").declare()?;
    let ones = matrix(4, 5, |_| 1.0);
    let result = op.call_with(&[&ones, &ones], &[("axis", 1.into())])?;
    assert_eq!(result[0].shape(), [4]);
    assert_eq!(result[0].to_vec::<f32>()?, [10.0, 10.0, 10.0, 10.0]);
    // By name, as graphs and Python call.
    let args = [Value::from(&ones), Value::from(&ones), Value::from(1i64), Value::from(true)];
    let by_name = opsmith::call("aot_documented", &args, &[])?;
    let [Value::Tensor(kept)] = by_name.as_slice() else { panic!("{by_name:?}") };
    assert_eq!((kept.shape(), kept.to_vec::<f32>()?), (&[4, 1][..], vec![10.0; 4]));
    Ok(())
}

/// Workspaces and attributes follow every change of shape, in any order.
#[test]
fn every_size_in_any_order_equals_the_reference() -> Result<()> {
    let op = add_reduce("aot_growing").declare()?;
    for (step, columns) in
        [5usize, 50, 500, 5000, 50_000, 500_000, 50, 5_000_000, 5, 500].into_iter().enumerate()
    {
        // Rows repeat a pattern, which differs from row to row and from step to step.
        let row = |seed: usize| (0..columns).map(move |index| ((index % 997) * seed % 1000) as f32 / 500.0);
        let xs: Vec<f32> = (0..4).flat_map(|index| row(7919 + index + step)).collect();
        let ys: Vec<f32> = (0..4).flat_map(|index| row(104_729 + 3 * index + step)).collect();
        let sums: Vec<f64> = xs.iter().zip(&ys).map(|(x, y)| f64::from(x + y)).collect();
        let shape = [4, columns as i64];
        let (x, y) = (Tensor::from_slice(&xs, &shape)?, Tensor::from_slice(&ys, &shape)?);
        let by_row: Vec<f64> = sums.chunks(columns).map(|row| row.iter().sum()).collect();
        let by_column: Vec<f64> =
            (0..columns).map(|column| sums[column..].iter().step_by(columns).sum()).collect();
        for (axis, keep) in [(0, false), (1, false), (0, true), (1, true)] {
            let attributes = [("axis", AttrValue::Int(axis)), ("keep_dim", keep.into())];
            let out = &op.call_with(&[&x, &y], &attributes)?[0];
            let expected = if axis == 0 { &by_column } else { &by_row };
            let kept = expected.len() as i64;
            let expected_shape = match (keep, axis) {
                (false, _) => vec![kept],
                (true, 0) => vec![1, kept],
                (true, _) => vec![kept, 1],
            };
            assert_eq!(out.shape(), expected_shape);
            for (got, want) in out.to_vec::<f32>()?.iter().zip(expected) {
                let error = (f64::from(*got) - want).abs();
                assert!(
                    error <= 1e-6 * want.abs(),
                    "{columns} columns, axis {axis}: {got} instead of {want}"
                );
            }
        }
    }
    Ok(())
}

fn square(name: &str) -> Declaration {
    same_shape(Declaration::new(name, example("square.cc:Square")).input("x").output("y"), 1)
        .dtypes([DType::F32; 2])
}

#[test]
fn the_gradient_of_a_square_twice() -> Result<()> {
    let by_function = square("aot_square_function")
        .bprop(|call| {
            let two = Tensor::scalar(2.0, DType::F32);
            Ok(vec![Some(call.input(0)?.mul(&two)?.mul(&call.grad_or_zeros(0)?)?)])
        })
        .declare()?;
    let bprop = Declaration::new("aot_square_bprop", example("square.cc:SquareBprop"))
        .input("x")
        .input("out")
        .input("dout")
        .output("dx")
        .output_dtype(DType::F32);
    let bprop = same_shape(bprop, 1).declare()?;
    let by_operator = square("aot_square_operator").bprop_operator(&bprop).declare()?;
    for op in [by_function, by_operator] {
        let x = Tensor::of(&[1.0f32, 4.0, 9.0]).requires_grad_(true)?;
        let y = op.call(&[&op.call(&[&x])?])?;
        assert_eq!(y.to_vec::<f32>()?, [1.0, 256.0, 6561.0]);
        y.sum()?.backward()?;
        assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [4.0, 256.0, 2916.0], "{op:?}");
    }
    // A gradient that is made of recorded operators can be differentiated again: d²(x²)/dx² = 2.
    let x = Tensor::of(&[3.0f32]).requires_grad_(true)?;
    let options = autograd::Options { create_graph: true, ..Default::default() };
    let y = by_function.call(&[&x])?;
    let first = autograd::grad(&[&y], &[&x], &[None], options)?;
    let second = autograd::grad(&[first[0].as_ref().unwrap()], &[&x], &[None], Default::default())?;
    assert_eq!(second[0].as_ref().unwrap().to_vec::<f32>()?, [2.0]);
    Ok(())
}

#[test]
fn gradients_of_several_outputs() -> Result<()> {
    let bprop = Declaration::new("aot_add_mul_div_bprop", example("add_mul_div.cc:AddMulDivBprop"))
        .input("x")
        .input("y")
        .input("dsum")
        .input("dproduct")
        .input("dquotient")
        .output("dx")
        .output("dy")
        .output_dtypes([DType::F32; 2]);
    let bprop = same_shape(bprop, 2).declare()?;
    let op = Declaration::new("aot_add_mul_div", example("add_mul_div.cc:AddMulDiv"))
        .input("x")
        .input("y")
        .output("sum")
        .output("product")
        .output("quotient")
        .dtypes([DType::F32; 5])
        .bprop_operator(&bprop);
    let op = same_shape(op, 3).declare()?;
    let x = Tensor::of(&[1.0f32, 4.0, 9.0]).requires_grad_(true)?;
    let y = Tensor::of(&[1.0f32, 1.0, 1.0]).requires_grad_(true)?;
    let outs = op.call_several(&[&x, &y])?;
    let net = outs[0].add(&outs[1])?.mul(&outs[2])?;
    net.sum()?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [5.0, 17.0, 37.0]);
    assert_eq!(y.grad().unwrap().to_vec::<f32>()?, [-1.0, -16.0, -81.0]);
    // One output alone: the other outputs' gradients are zeros for the kernel.
    let z = Tensor::of(&[2.0f32]).requires_grad_(true)?;
    op.call_several(&[&z, &z.detach()])?[1].sum()?.backward()?;
    assert_eq!(z.grad().unwrap().to_vec::<f32>()?, [2.0]);
    Ok(())
}

#[test]
fn without_a_gradient_the_operator_is_named() -> Result<()> {
    let op = square("aot_square_without").declare()?;
    let x = Tensor::of(&[2.0f32]).requires_grad_(true)?;
    let y = op.call(&[&x])?;
    assert_eq!(y.to_vec::<f32>()?, [4.0]);
    let error = y.sum()?.backward().unwrap_err().to_string();
    assert!(error.contains("the gradient of `aot_square_without` is not defined"), "{error}");
    assert!(error.contains("bprop"), "{error}");
    Ok(())
}

#[test]
fn inference_is_separate_and_knows_unknown_sizes() -> Result<()> {
    let op = add_reduce("aot_inference").declare()?;
    let infer = |shape: &[i64], axis: i64, keep: bool| {
        let inputs = [(shape, DType::F32), (shape, DType::F32)];
        op.infer(&inputs, &[("axis", axis.into()), ("keep_dim", keep.into())])
    };
    assert_eq!(infer(&[4, -1], 1, false)?, [(vec![4], DType::F32)]);
    assert_eq!(infer(&[4, -1], 0, false)?, [(vec![-1], DType::F32)]);
    assert_eq!(infer(&[4, -1], 0, true)?, [(vec![1, -1], DType::F32)]);
    assert_eq!(infer(&[-2], 0, true)?, [(vec![-2], DType::F32)]);
    Ok(())
}

fn combos(op: &str) -> Result<Operator> {
    square(op).dtypes([DType::I32, DType::I32]).declare()
}

#[test]
fn combinations_of_dtypes() -> Result<()> {
    let op = combos("aot_combinations")?;
    let of = |x: &Tensor| op.call(&[x]).map(|y| y.dtype());
    assert_eq!(of(&Tensor::of(&[1.0f32]))?, DType::F32);
    // The documented conversions.
    assert_eq!(op.call(&[&Tensor::of(&[1.5f64])])?.to_vec::<f32>()?, [2.25]);
    assert_eq!(of(&Tensor::of(&[1i64]))?, DType::I32);
    let error = of(&Tensor::of(&[1u8])).unwrap_err().to_string();
    assert!(error.contains("no combination of dtypes takes (uint8)"), "{error}");
    assert!(error.contains("(float32) -> (float32), (int32) -> (int32)"), "{error}");
    Ok(())
}

#[test]
fn tensors_that_are_not_contiguous_are_made_so() -> Result<()> {
    let op = square("aot_strided").declare()?;
    let x = matrix(2, 3, |index| index as f32);
    assert_eq!(op.call(&[&x.t()?])?.to_vec::<f32>()?, [0.0, 9.0, 1.0, 16.0, 4.0, 25.0]);
    Ok(())
}

#[test]
fn mistakes_in_declarations() {
    let new = |kernel: &str| Declaration::new("aot_mistake", kernel).input("x").output("y");
    let messages = [
        (new("kernel.cc").declare(), "`kernel.cc` does not name a kernel"),
        (new("k.cc:F").input("x").declare(), "`x` is declared twice"),
        (new("k.cc:F").input("1").declare(), "`1` is no name"),
        (Declaration::new("aot_mistake", "k.cc:F").declare(), "no output is declared"),
        (
            new("k.cc:F").dtypes([DType::F32]).declare(),
            "a combination has 1 dtypes, for 1 inputs and 1 outputs",
        ),
        (
            Declaration::new("mm", "k.cc:F").input("x").output("y").declare(),
            "`mm` is an operator of the library",
        ),
    ];
    for (result, expected) in messages {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_name_is_taken_once_and_free_after_unloading() -> Result<()> {
    let first = square("aot_name").declare()?;
    let error = square("aot_name").declare().unwrap_err().to_string();
    assert!(error.contains("is already declared"), "{error}");
    square("aot_name").unlisted().declare()?.call(&[&Tensor::of(&[1.0f32])])?;
    first.unload();
    let error = first.call(&[&Tensor::of(&[1.0f32])]).unwrap_err().to_string();
    assert!(error.contains("unloaded"), "{error}");
    let second = square("aot_name").declare()?;
    assert!(std::ptr::eq(first.definition(), second.definition()), "the definition serves again");
    second.call(&[&Tensor::of(&[1.0f32])])?;
    Ok(())
}

/// The record of the documented example, as the other framework writes it.
#[test]
fn a_registration_record() -> Result<()> {
    let record = |axis: i64, keep: bool| {
        format!(
            r#"{{"op_name": "reduce_kernel_cpu",
                "inputs": [{{"index": 0, "name": "x1", "paramType": "required"}},
                           {{"index": 0, "name": "x2", "paramType": "required"}}],
                "outputs": [{{"index": 0, "name": "y", "paramType": "required"}}],
                "attr": [{{"name": "axis", "paramType": "required", "type": "float", "value": {axis}}},
                         {{"name": "keep_dim", "paramType": "required", "type": "all", "value": {keep}}}],
                "fusion_type": "OPAQUE", "imply_type": "CPU",
                "dtype_format": [[["float32", "DefaultFormat"], ["float32", "DefaultFormat"], ["float32", "DefaultFormat"]]],
                "target": "CPU"}}"#
        )
    };
    let ones = matrix(4, 5, |_| 1.0);
    // Several records of one name, with other values of attributes, do not get in each other's way.
    for (axis, keep, expected) in [(1, false, vec![10.0; 4]), (0, true, vec![8.0; 5])] {
        let op = Declaration::from_record(example("add_reduce.cc:CustomKernel"), &record(axis, keep))?
            .declare()?;
        assert_eq!(op.call(&[&ones, &ones])?.to_vec::<f32>()?, expected);
    }
    // An attribute without a value is given by calls; rows of any dtype; an optional input.
    let text = r#"{"op_name": "later", "inputs": [{"name": "x"}, {"name": "y"}, {"name": "z", "paramType": "optional"}],
        "outputs": [{"name": "out"}], "attr": [{"name": "axis", "type": "int"}, {"name": "keep_dim", "type": "bool", "defaultValue": true}],
        "dtype_format": [[["None", ""], ["None", ""], ["None", ""], ["None", ""]]]}"#;
    let op = Declaration::from_record(example("add_reduce.cc:CustomKernel"), text)?.listed().declare()?;
    assert_eq!(
        op.definition().schema.text,
        "later(Tensor x, Tensor y, Tensor? z, int axis, bool keep_dim=true) -> Tensor out"
    );
    for (record, expected) in [
        ("[1]", "this is no registration record"),
        (r#"{"op_name": "f", "target": "Ascend"}"#, "f: the record is for the target Ascend"),
        (
            r#"{"op_name": "f", "inputs": [{"name": "x", "paramType": "maybe"}]}"#,
            "`x` has the paramType `maybe`",
        ),
        (r#"{"op_name": "f", "attr": [{"name": "a", "type": "all"}]}"#, "`a` has neither a value nor a type"),
        (r#"{"op_name": "f", "dtype_format": [[["float32", "FracNZ"]]]}"#, "has the format FracNZ"),
        (r#"{"op_name": "f", "dtype_format": [[["hifloat8", "ND"]]]}"#, "has the dtype hifloat8"),
    ] {
        let error = Declaration::from_record("k.cc:F", record).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    Ok(())
}

/// A record may have only attributes: inputs come from calls, outputs from inference.
#[test]
fn a_record_of_attributes_only() -> Result<()> {
    let record = r#"{"op_name": "any", "attr": [{"name": "axis", "type": "int", "value": 1},
        {"name": "keep_dim", "type": "bool", "value": false}], "target": "CPU"}"#;
    let kernel = || example("add_reduce.cc:CustomKernel");
    let ones = matrix(4, 5, |_| 1.0);
    let op = Declaration::from_record(kernel(), record)?.output_dtype(DType::F32).declare()?;
    assert_eq!(op.definition().schema.text, "any(Tensor[] inputs) -> Tensor output");
    assert_eq!(op.call(&[&ones, &ones])?.to_vec::<f32>()?, [10.0; 4]);
    // Named inputs count, and so does a declared number of outputs.
    let named = Declaration::from_record(kernel(), record)?.input("x").input("y").output("sums");
    let named = named.dtypes([DType::F32; 3]).declare()?;
    assert_eq!(named.definition().schema.text, "any(Tensor x, Tensor y) -> Tensor sums");
    assert_eq!(named.call(&[&ones, &ones])?.to_vec::<f32>()?, [10.0; 4]);
    let record = r#"{"op_name": "several", "attr": [{"name": "inputs", "type": "int", "value": 1}]}"#;
    let several = Declaration::from_record(example("add_mul_div.cc:AddMulDiv"), record)?;
    let several = several
        .output_shape_fn(|call| Ok(vec![call.shape(0)?.to_vec(); 3]))
        .output_dtypes([DType::F32; 3])
        .declare()?;
    assert_eq!(
        several.definition().schema.text,
        "several(Tensor[] inputs_) -> (Tensor output0, Tensor output1, Tensor output2)"
    );
    // A manual declaration must still be complete.
    let error = Declaration::new("aot_nothing", kernel()).declare().map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("no output is declared"), "{error}");
    Ok(())
}

#[test]
fn a_transpose_and_its_gradient() -> Result<()> {
    let declare = |name: &str| {
        let new = Declaration::new(name, aot_support::kernel("transpose.cc:Transpose"));
        new.input("x").output("y").dtypes([DType::F32; 2])
    };
    let back = declare("aot_transpose_back").declare()?;
    let op = declare("aot_transpose")
        .bprop(move |call| Ok(vec![Some(back.call(&[&call.grad_or_zeros(0)?])?)]))
        .declare()?;
    let x = matrix(2, 3, |index| index as f32).requires_grad_(true)?;
    let y = op.call(&[&x])?;
    assert_eq!((y.shape(), y.to_vec::<f32>()?), (&[3, 2][..], vec![0.0, 3.0, 1.0, 4.0, 2.0, 5.0]));
    let dout = matrix(3, 2, |index| index as f32);
    let dx = autograd::grad(&[&y], &[&x], &[Some(&dout)], Default::default())?;
    let dx = dx[0].as_ref().unwrap();
    assert_eq!((dx.shape(), dx.to_vec::<f32>()?), (&[2, 3][..], vec![0.0, 2.0, 4.0, 1.0, 3.0, 5.0]));
    Ok(())
}
