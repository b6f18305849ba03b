//! The crate's operators as a user calls them: every form, gradients, by name, and their errors.

use opsmith::autograd::Options;
use opsmith::{ErrorKind, Result, Tensor, TensorOps as _, Value};
use opsmith_example_custom_op::{
    AddReduceOptions, GaussianOptions, HeatStepOptions, OpsmithExampleCustomOpExt as _, PlusOptions,
    add_reduce, add_reduce_out, add_reduce_with, call, gaussian, heat_step_with, invert_permutation,
    laplacian, laplacian_out, plus, plus_out, plus_with, transpose_copy, transpose_copy_out,
};

fn arange(rows: i64, columns: i64) -> Tensor {
    let elements: Vec<f32> = (0..rows * columns).map(|element| element as f32).collect();
    Tensor::from_slice(&elements, &[rows, columns]).unwrap()
}

#[track_caller]
fn assert_tensor(tensor: &Tensor, shape: &[i64], elements: &[f32]) {
    assert_eq!((tensor.shape(), &tensor.to_vec::<f32>().unwrap()[..]), (shape, elements));
}

#[track_caller]
fn assert_close(tensor: &Tensor, elements: &[f32]) {
    let found = tensor.to_vec::<f32>().unwrap();
    let close = found.iter().zip(elements).all(|(a, b)| (a - b).abs() <= 1e-6);
    assert!(close && found.len() == elements.len(), "{found:?} is not near {elements:?}");
}

/// An alias in this crate for an operator of the stock library, in every form of call.
#[test]
fn another_name_of_a_stock_operator() -> Result<()> {
    let (x, y) = (Tensor::of(&[1.0f32, 2.0]), Tensor::of(&[10.0f32, 20.0]));
    assert_tensor(&plus(&x, &y)?, &[2], &[11.0, 22.0]);
    let options = PlusOptions::new().alpha(2.0);
    assert_tensor(&plus_with(&x, &y, &options)?, &[2], &[21.0, 42.0]);
    assert_tensor(&x.plus(&y)?, &[2], &[11.0, 22.0]);
    let mut out = Tensor::of(&[0.0f32, 0.0]);
    plus_out(&x, &y, &mut out)?;
    assert_tensor(&out, &[2], &[11.0, 22.0]);
    // By name, with the argument's names of the stock library.
    let named = [("other", (&y).into()), ("alpha", 3i64.into())];
    let by_name = call("plus", &[(&x).into()], &named)?.remove(0).into_tensor()?;
    assert_tensor(&by_name, &[2], &[31.0, 62.0]);
    let error = call("plus", &[(&x).into()], &[("beta", 1i64.into())]).unwrap_err().to_string();
    assert!(error.contains("there is no argument `beta`") && error.contains("self, other, alpha"), "{error}");
    // One definition: the gradient is that of the stock operator, and errors name it.
    let x = x.requires_grad_(true)?;
    plus(&x, &y)?.sum()?.backward()?;
    assert_tensor(&x.grad().unwrap(), &[2], &[1.0, 1.0]);
    let error = plus(&x, &Tensor::of(&[1.0f32; 3])).unwrap_err().to_string();
    assert!(error.starts_with("add.Tensor: "), "{error}");
    Ok(())
}

/// MindSpore's tutorial example of an operator of one's own.
#[test]
fn transpose_and_its_gradient() -> Result<()> {
    let x = arange(2, 3).requires_grad_(true)?;
    let y = transpose_copy(&x, [1, 0])?;
    assert_tensor(&y, &[3, 2], &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);

    let sens = arange(3, 2);
    y.backward_with(Some(&sens), Options::default())?;
    assert_tensor(&x.grad().unwrap(), &[2, 3], &[0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
    Ok(())
}

#[test]
fn transpose_of_every_dtype_and_of_views() -> Result<()> {
    let bytes = Tensor::from_slice(&[1u8, 2, 3, 4], &[2, 2])?;
    assert_eq!(transpose_copy(&bytes, [1, 0])?.to_vec::<u8>()?, [1, 3, 2, 4]);
    let cube = Tensor::from_slice(&(0..24).collect::<Vec<i64>>(), &[2, 3, 4])?;
    let turned = transpose_copy(&cube, [2, 0, 1])?;
    assert_eq!(turned.shape(), [4, 2, 3]);
    assert_eq!(turned.to_vec::<i64>()?[..8], [0, 4, 8, 12, 16, 20, 1, 5]);
    // Turning back through the inverse gives the original.
    let back = transpose_copy(&turned, invert_permutation([2, 0, 1])?)?;
    assert_eq!(back.to_vec::<i64>()?, cube.to_vec::<i64>()?);
    Ok(())
}

const GRID: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
const LAPLACIAN: [f32; 6] = [2.0, 1.0, -4.0, -10.0, -8.0, -16.0];

#[test]
fn laplacian_in_every_form() -> Result<()> {
    let grid = Tensor::from_slice(&GRID, &[2, 3])?;
    assert_tensor(&laplacian(&grid)?, &[2, 3], &LAPLACIAN);
    let mut out = Tensor::of::<f32>(&[]);
    laplacian_out(&grid, &mut out)?;
    assert_tensor(&out, &[2, 3], &LAPLACIAN);
    grid.laplacian_()?;
    assert_tensor(&grid, &[2, 3], &LAPLACIAN);
    Ok(())
}

#[test]
fn laplacian_is_its_own_derivative() -> Result<()> {
    let grid = arange(2, 3).requires_grad_(true)?;
    let sens = Tensor::from_slice(&GRID, &[2, 3])?;
    grid.laplacian()?.backward_with(Some(&sens), Options::default())?;
    assert_tensor(&grid.grad().unwrap(), &[2, 3], &LAPLACIAN);
    Ok(())
}

#[test]
fn gaussian_by_expression() -> Result<()> {
    let x = Tensor::of(&[0.0f32, 1.0, -2.0]).requires_grad_(true)?;
    let y = gaussian(&x)?;
    assert_close(&y, &[1.0, 0.606_530_66, 0.135_335_28]);
    y.backward_with(Some(&Tensor::of(&[1.0f32, 1.0, 1.0])), Options::default())?;
    assert_close(&x.grad().unwrap(), &[0.0, -0.606_530_66, 0.270_670_57]);

    let wide = x.detach().gaussian_with(GaussianOptions::new().width(2.0))?;
    assert_close(&wide, &[1.0, 0.882_496_9, 0.606_530_66]);
    // Integers become floats, as the dtype rule says.
    assert_close(&gaussian(&Tensor::of(&[0i32, 1]))?, &[1.0, 0.606_530_66]);
    Ok(())
}

#[test]
fn a_decomposed_operator_has_the_gradient_of_its_parts() -> Result<()> {
    let grid = Tensor::from_slice(&GRID, &[2, 3])?.requires_grad_(true)?;
    let next = heat_step_with(&grid, HeatStepOptions::new().rate(0.5))?;
    assert_tensor(&next, &[2, 3], &[2.0, 2.5, 1.0, -1.0, 1.0, -2.0]);
    let sens = Tensor::from_slice(&GRID, &[2, 3])?;
    next.backward_with(Some(&sens), Options::default())?;
    assert_tensor(&grid.grad().unwrap(), &[2, 3], &[2.0, 2.5, 1.0, -1.0, 1.0, -2.0]);
    Ok(())
}

#[test]
fn calls_by_name_find_own_and_stock_operators() -> Result<()> {
    let x = Value::Tensor(arange(2, 3));
    let transposed = call("transpose_copy", &[x.clone(), Value::Ints(vec![1, 0])], &[])?;
    assert_tensor(&transposed[0].clone().into_tensor()?, &[3, 2], &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    let sum = call("add.Tensor", &[x.clone(), x.clone()], &[("alpha", Value::Int(2))])?;
    assert_tensor(&sum[0].clone().into_tensor()?, &[2, 3], &[0.0, 3.0, 6.0, 9.0, 12.0, 15.0]);
    let inverse = call("invert_permutation", &[Value::Ints(vec![2, 0, 1])], &[])?;
    assert!(matches!(&inverse[..], [Value::Ints(inverse)] if inverse == &[1, 2, 0]));

    let out = Value::Tensor(Tensor::of::<f32>(&[]));
    let written = call("laplacian.out", std::slice::from_ref(&x), &[("out", out)])?;
    assert_eq!(written[0].clone().into_tensor()?.shape(), [2, 3]);

    let error = call("laplacean", &[x], &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no operator `laplacean`\n  help: did you mean `laplacian`, `laplacian.out`, `laplacian_`?"
    );
    Ok(())
}

#[track_caller]
fn assert_error<T: std::fmt::Debug>(result: Result<T>, kind: ErrorKind, lines: &[&str]) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), kind);
    assert_eq!(error.to_string(), lines.join("\n"));
}

#[test]
fn an_error_of_the_c_plus_plus_kernel() {
    assert_error(
        transpose_copy(&arange(2, 3), [0, 0]),
        ErrorKind::Kernel,
        &[
            "transpose_copy: the kernel `custom_transpose_copy` (kernels/transpose.cc) failed: \
             dimension 0 appears twice in perm",
            "  x: float32 (2, 3)",
        ],
    );
}

#[test]
fn errors_before_a_kernel_runs() {
    let x = arange(2, 3);
    assert_error(
        transpose_copy(&x, [0]),
        ErrorKind::Shape,
        &[
            "transpose_copy: `perm.len() == x.dim()` does not hold: the left side is 1, the right side 2",
            "  x: float32 (2, 3)",
            "  help: the operator's documentation says what it accepts",
        ],
    );
    assert_error(
        transpose_copy(&x, [0, 7]),
        ErrorKind::Index,
        &[
            "transpose_copy: dimension 7 is out of range for a tensor with 2 dimensions",
            "  x: float32 (2, 3)",
            "  help: use -2 to 1",
        ],
    );
    assert_error(
        laplacian(&Tensor::from_slice(&[1i64], &[1, 1]).unwrap()),
        ErrorKind::NotImplemented,
        &[
            "laplacian: there is no CPU kernel for int64",
            "  self: int64 (1, 1)",
            "  help: there are kernels for CPU: float16, bfloat16, float32, float64",
        ],
    );
    let mut integers = Tensor::of(&[1i64]);
    assert_error(
        transpose_copy_out(&x, [1, 0], &mut integers),
        ErrorKind::DType,
        &[
            "transpose_copy.out: the result is float32, which cannot be written into out of dtype int64",
            "  x: float32 (2, 3)",
            "  help: give an `out` of dtype float32",
        ],
    );
    assert_error(
        invert_permutation([1, 1]),
        ErrorKind::Value,
        &["invert_permutation: [1, 1] names dimension 1 twice", "  help: name each of the 2 dimensions once"],
    );
}

/// A custom kernel has every feature of the spec: functions, forms, calls by name, a gradient.
#[test]
fn a_custom_kernel_is_an_operator_like_all_others() -> Result<()> {
    let ones = Tensor::from_slice(&[1.0f32; 20], &[4, 5])?;
    assert_eq!(add_reduce(&ones, &ones)?.to_vec::<f32>()?, [10.0; 4]);
    let kept = add_reduce_with(&ones, &ones, AddReduceOptions::new().axis(0).keep_dim(true))?;
    assert_eq!((kept.shape(), kept.to_vec::<f32>()?), (&[1, 5][..], vec![8.0; 5]));

    // Outputs that are not row-major get the same result.
    let x = Tensor::from_slice(&[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0], &[2, 3])?;
    let wide = Tensor::from_slice(&[0.0f32; 4], &[2, 2])?;
    let mut column = wide.select(1, 1)?;
    add_reduce_out(&x, &x, &mut column)?;
    assert_eq!(wide.to_vec::<f32>()?, [0.0, 6.0, 0.0, 24.0]);

    let x = x.requires_grad_(true)?;
    add_reduce(&x, &x.detach())?.mul(&Tensor::of(&[1.0f32, 10.0]))?.sum()?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [1.0, 1.0, 1.0, 10.0, 10.0, 10.0]);
    // The spec's formula is one for each argument, and for every attribute.
    let y = Tensor::from_slice(&[1.0f32; 6], &[2, 3])?.requires_grad_(true)?;
    let options = AddReduceOptions::new().axis(0).keep_dim(true);
    let kept = add_reduce_with(&x.detach(), &y, &options)?;
    kept.mul(&Tensor::of(&[1.0f32, 2.0, 3.0]))?.sum()?.backward()?;
    assert_eq!(y.grad().unwrap().to_vec::<f32>()?, [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);

    let error = add_reduce(&x, &ones).unwrap_err().to_string();
    assert!(error.contains("x.size(0) == y.size(0)"), "{error}");
    Ok(())
}
