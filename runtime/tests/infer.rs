//! The inference rules: shapes, dtypes and devices of results.

mod support;

use opsmith_runtime::infer::{self, Operand, dtype, shape};
use opsmith_runtime::internals::TensorInternals as _;
use opsmith_runtime::{Arg, Complex64, DType, Device, Dims, Layout, Result, Scalar, Tensor};
use support::strided;

/// A tensor of that shape over a single element.
fn of_shape(sizes: &[i64]) -> Tensor {
    strided(&[0.0f32], sizes, &vec![0; sizes.len()], 0)
}

fn of_shapes(shapes: &[&[i64]]) -> Vec<Tensor> {
    shapes.iter().map(|sizes| of_shape(sizes)).collect()
}

fn of_dtype(dtype: DType, sizes: &[i64]) -> Tensor {
    let one = Tensor::scalar(1, dtype);
    // SAFETY: every index refers to the one element.
    unsafe {
        let layout = Layout { sizes: sizes.into(), strides: vec![0; sizes.len()].into(), offset: 0 };
        Tensor::from_parts(one.storage().clone(), layout, dtype, Device::CPU)
    }
}

#[track_caller]
fn check(found: Result<Dims>, expected: &[i64]) {
    assert_eq!(found.unwrap()[..], *expected);
}

#[track_caller]
fn check_error<T: std::fmt::Debug>(found: Result<T>, expected: &str) {
    assert_eq!(found.unwrap_err().to_string(), expected);
}

fn broadcast(shapes: &[&[i64]]) -> Result<Dims> {
    let tensors = of_shapes(shapes);
    shape::broadcast(&tensors.iter().map(Operand::Tensor).collect::<Vec<_>>())
}

#[test]
fn shapes_broadcast() {
    check(broadcast(&[]), &[]);
    check(broadcast(&[&[2, 3]]), &[2, 3]);
    check(broadcast(&[&[2, 3], &[2, 3]]), &[2, 3]);
    check(broadcast(&[&[2, 1], &[3]]), &[2, 3]);
    check(broadcast(&[&[3], &[2, 1]]), &[2, 3]);
    check(broadcast(&[&[], &[2, 1], &[4, 1, 1]]), &[4, 2, 1]);
    check(broadcast(&[&[3, 1], &[1, 0]]), &[3, 0]);
    let tensors = of_shapes(&[&[2, 1], &[5]]);
    let operands = [Operand::Scalar(Scalar::Int(1)), Operand::Tensors(&tensors), Operand::Absent];
    check(shape::broadcast(&operands), &[2, 5]);
}

#[test]
fn shapes_that_do_not_broadcast_are_errors() {
    let help = "\n  help: sizes must be equal or 1, counted from the last dimension";
    check_error(
        broadcast(&[&[2, 3], &[4, 5, 7]]),
        &format!(
            "the shapes (2, 3) and (4, 5, 7) do not broadcast: dimension -2 has the sizes 2 and 5{help}"
        ),
    );
    check_error(
        broadcast(&[&[0], &[2]]),
        &format!("the shapes (0) and (2) do not broadcast: dimension -1 has the sizes 0 and 2{help}"),
    );
    check_error(
        broadcast(&[&[1 << 35, 1], &[1 << 35]]),
        "the shape (34359738368, 34359738368) has more elements than memory can hold",
    );
}

#[test]
fn dimensions_are_reduced() {
    let reduce =
        |sizes: &[i64], dims: Option<&[i64]>, keepdim| shape::reduce(&of_shape(sizes), dims, keepdim);
    check(reduce(&[2, 3, 4], Some(&[1]), false), &[2, 4]);
    check(reduce(&[2, 3, 4], Some(&[0, -1]), false), &[3]);
    check(reduce(&[2, 3, 4], Some(&[-1, 0]), true), &[1, 3, 1]);
    check(reduce(&[2, 3, 4], None, false), &[]);
    check(reduce(&[2, 3, 4], Some(&[]), true), &[1, 1, 1]);
    check(reduce(&[], Some(&[0]), true), &[]);
    check(reduce(&[], Some(&[-1]), false), &[]);
    check_error(reduce(&[2, 3], Some(&[0, -2]), false), "dimension -2 is given twice");
    check_error(reduce(&[], Some(&[0, -1]), false), "dimension -1 is given twice");
    check_error(
        reduce(&[2, 3], Some(&[2]), false),
        "dimension 2 is out of range for a tensor with 2 dimensions\n  help: use -2 to 1",
    );
}

#[test]
fn matrix_products_have_pytorchs_shapes() {
    let matmul = |a: &[i64], b: &[i64]| shape::matmul(&of_shape(a), &of_shape(b));
    check(matmul(&[3], &[3]), &[]);
    check(matmul(&[2, 3], &[3, 4]), &[2, 4]);
    check(matmul(&[3], &[5, 3, 4]), &[5, 4]);
    check(matmul(&[5, 4, 3], &[3]), &[5, 4]);
    check(matmul(&[5, 1, 4, 3], &[6, 3, 2]), &[5, 6, 4, 2]);
    check(matmul(&[0, 3], &[3, 0]), &[0, 0]);
    check_error(
        matmul(&[2, 3], &[4]),
        "the inner sizes of the product differ: 3 columns on the left, 4 rows on the right",
    );
    check_error(matmul(&[], &[4]), "a matrix product needs operands with at least one dimension");
    check_error(
        matmul(&[5, 2, 3], &[6, 3, 2]),
        "the shapes (5) and (6) do not broadcast: dimension -1 has the sizes 5 and 6\n  \
         help: sizes must be equal or 1, counted from the last dimension",
    );
    check_error(
        matmul(&[1 << 35, 1], &[1, 1 << 35]),
        "the shape (34359738368, 34359738368) has more elements than memory can hold",
    );
}

#[test]
fn tensors_are_joined() {
    let cat = |shapes: &[&[i64]], dim| shape::cat(&of_shapes(shapes), dim);
    check(cat(&[&[2, 3], &[2, 1]], 1), &[2, 4]);
    check(cat(&[&[2, 3], &[2, 0]], -1), &[2, 3]);
    check(cat(&[&[0], &[2, 3], &[0], &[1, 3]], 0), &[3, 3]);
    check(cat(&[&[0], &[0]], 0), &[0]);
    check_error(cat(&[], 0), "an empty list of tensors cannot be joined");
    check_error(
        cat(&[&[], &[0]], 0),
        "tensors without dimensions cannot be joined\n  help: give each a dimension first",
    );
    check_error(
        cat(&[&[2, 3], &[2, 2]], 0),
        "tensor 1 of shape (2, 2) does not fit the first of shape (2, 3): \
         all sizes but that of dimension 0 must be equal",
    );
    let half = opsmith_runtime::layout::MAX_NUMEL / 2 + 1;
    check_error(
        cat(&[&[half], &[half]], 0),
        &format!("the shape ({}) has more elements than memory can hold", 2 * half),
    );
}

#[test]
fn given_sizes_are_checked() {
    check(shape::full(&[2, 0]), &[2, 0]);
    check_error(shape::full(&[2, -3]), "the shape (2, -3) has a negative size");
}

/// PyTorch's name for a dtype; its complex types of 16-bit parts are `complex64` here.
fn parse_dtype(name: &str) -> Option<DType> {
    match name {
        "complex32" | "bcomplex32" => Some(DType::C64),
        "-" => None,
        known => Some(DType::from_name(known).unwrap()),
    }
}

#[test]
fn pairs_promote_as_in_pytorch() {
    let number = |dtype: DType| match dtype {
        DType::Bool => Scalar::Bool(true),
        DType::I64 => Scalar::Int(1),
        DType::F32 => Scalar::Float(1.5),
        _ => Scalar::Complex(Complex64::new(0.0, 1.0)),
    };
    let mut lines = include_str!("data/promotion.txt").lines().filter(|line| !line.starts_with('#'));
    let (mut kinds, mut columns, mut count) = (("", ""), Vec::new(), 0);
    while let Some(line) = lines.next() {
        if let Some(section) = line.strip_prefix('[') {
            kinds = section.trim_end_matches(']').split_once(' ').unwrap();
            columns = lines.next().unwrap().split(' ').map(|name| DType::from_name(name).unwrap()).collect();
            continue;
        }
        let Some((row, cells)) = line.split_once(": ") else { continue };
        let row = DType::from_name(row).unwrap();
        for (column, expected) in columns.iter().zip(cells.split(' ')) {
            let tensor = |kind: &str, dtype| of_dtype(dtype, if kind == "dim" { &[2] } else { &[] });
            let (first, second) = (tensor(kinds.0, row), tensor(kinds.1, *column));
            let second = match kinds.1 {
                "number" => Operand::Scalar(number(*column)),
                _ => Operand::Tensor(&second),
            };
            let context = format!("{row} ({}) with {column} ({})", kinds.0, kinds.1);
            let found = dtype::promote(&[Operand::Tensor(&first), second]);
            assert_eq!(found.ok(), parse_dtype(expected), "{context}");
            let found = dtype::promote(&[second, Operand::Tensor(&first)]);
            assert_eq!(found.ok(), parse_dtype(expected), "{context}, exchanged");
            count += 1;
        }
    }
    assert_eq!(count, 3 * 225 + 2 * 60);
}

#[test]
fn dtypes_of_several_operands_combine() {
    let (long, double0) = (of_dtype(DType::I64, &[2]), of_dtype(DType::F64, &[]));
    let half = of_dtype(DType::F16, &[2]);
    let check = |operands: &[Operand<'_>], expected| assert_eq!(dtype::promote(operands).unwrap(), expected);
    check(&[Operand::Tensor(&long), Operand::Tensor(&double0)], DType::F64);
    check(&[Operand::Tensor(&long), Operand::Tensor(&double0), Operand::Tensor(&half)], DType::F16);
    check(&[Operand::Tensor(&long), Operand::Scalar(2.5.into()), Operand::Absent], DType::F32);
    check(&[Operand::Tensors(&[long.clone(), half.clone()])], DType::F16);
    check(&[Operand::Scalar(Scalar::Int(1))], DType::I64);
    check(&[Operand::Absent], DType::F32);
    check_error(
        dtype::promote(&[Operand::Tensor(&of_dtype(DType::U16, &[2])), Operand::Tensor(&long)]),
        "uint16 and int64 have no common dtype\n  help: convert one of them",
    );
}

#[test]
fn the_other_dtype_rules() {
    let (int, half, complex) =
        (of_dtype(DType::I32, &[2]), of_dtype(DType::F16, &[2]), of_dtype(DType::C128, &[2]));
    assert_eq!(dtype::promote_float(&[Operand::Tensor(&int)]).unwrap(), DType::F32);
    assert_eq!(dtype::promote_float(&[Operand::Tensor(&half)]).unwrap(), DType::F16);
    assert_eq!(dtype::real(&complex).unwrap(), DType::F64);
    assert_eq!(dtype::accumulate(&int, None).unwrap(), DType::I64);
    assert_eq!(dtype::accumulate(&int, Some(DType::F64)).unwrap(), DType::F64);
    assert_eq!(dtype::accumulate(&half, None).unwrap(), DType::F16);
    assert_eq!(dtype::or_default(None).unwrap(), DType::F32);
    assert_eq!(dtype::same(&[Operand::Tensor(&int), Operand::Scalar(1.5.into())]).unwrap(), DType::I32);
    check_error(
        dtype::same(&[Operand::Tensor(&int), Operand::Tensors(&[half])]),
        "the operands have different dtypes, int32 and float16\n  \
         help: convert one of them; this operator does not promote",
    );
}

#[test]
fn tensors_without_dimensions_go_with_any_device() {
    let on = |device, sizes: &[i64]| Tensor::described(Layout::contiguous(sizes), DType::F32, device);
    let (cpu, cpu0) = (on(Device::CPU, &[2]), on(Device::CPU, &[]));
    let (first, second) = (on(Device::cuda(0), &[2]), on(Device::cuda(1), &[]));
    let device_of = |tensors: &[&Tensor]| {
        infer::device_of(&tensors.iter().map(|tensor| Arg::Tensor(tensor)).collect::<Vec<_>>())
    };
    assert_eq!(device_of(&[]).unwrap(), Device::CPU);
    assert_eq!(device_of(&[&cpu, &cpu0]).unwrap(), Device::CPU);
    assert_eq!(device_of(&[&cpu0, &first]).unwrap(), Device::cuda(0));
    assert_eq!(device_of(&[&first, &cpu0]).unwrap(), Device::cuda(0));
    let help = "\n  help: move them to one device first";
    check_error(
        device_of(&[&first, &cpu]),
        &format!("the operands are on different devices, cuda:0 and cpu{help}"),
    );
    check_error(
        device_of(&[&cpu0, &first, &second]),
        &format!("the operands are on different devices, cuda:0 and cuda:1{help}"),
    );
}
