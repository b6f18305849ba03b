//! Kernels that do not write every element of their outputs, in each form that calls them.

#[path = "support/ops.rs"]
mod ops;
mod support;

use std::cell::Cell;

use ops::{call, unary};
use opsmith_runtime::generated::call::{invoke_inplace, invoke_out};
use opsmith_runtime::internals::check_written;
use opsmith_runtime::op::KernelCall;
use opsmith_runtime::random::{Normal, default_generator};
use opsmith_runtime::{DType, Error, ErrorKind, Generator, Result, Tensor};
use support::strided;

type Outs = &'static [(Option<&'static str>, DType)];
const FLOAT: Outs = &[(None, DType::F32)];
const BOOL: Outs = &[(None, DType::Bool)];
const BYTE: Outs = &[(Some("codes"), DType::U8)];
const TWO: Outs = &[(Some("low"), DType::F32), (Some("high"), DType::F32)];

fn x() -> Tensor {
    Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap()
}

/// A debug build returns this error for a call; a release build does not check.
#[track_caller]
fn refused<R>(result: Result<R>, message: &str) {
    if cfg!(debug_assertions) {
        check(result.err().expect("an element is left unwritten"), message);
    }
}

#[track_caller]
fn check(error: Error, message: &str) {
    assert_eq!((error.kind(), error.message()), (ErrorKind::Kernel, message));
    assert!(matches!(error.op(), Some("op" | "tests.out" | "tests_")), "{error}");
}

fn all_but_the_fifth(call: &KernelCall<'_>) -> Result<()> {
    let x: Vec<f32> = call.view::<f32>(0).iter().collect();
    let mut out = call.view_mut::<f32>(0);
    let positions: Vec<i64> = out.positions().collect();
    for (index, position) in positions.into_iter().enumerate().filter(|(index, _)| *index != 4) {
        // SAFETY: the position is one of the view's.
        unsafe { out.set(position, x[index]) };
    }
    Ok(())
}

const FIFTH: &str = "the kernel `tests::kernel` did not write every element of the output: the first is at [1, 1] of the shape (2, 3)";

#[test]
fn an_element_that_is_left_is_an_error() {
    let op = unary("op", all_but_the_fifth, FLOAT, false);
    refused(call(op, &x()), FIFTH);
    check(check_written(op, &[(&x()).into()]).unwrap_err(), FIFTH);
    // In the caller's own memory, row-major or not; in place.
    for mut out in [Tensor::of(&[0.0f32; 6]), strided(&[0.0f32; 20], &[2, 3], &[1, 6], 2)] {
        if out.dim() == 1 {
            out = Tensor::from_slice(&[0.0f32; 6], &[2, 3]).unwrap();
        }
        refused(invoke_out(op, &[(&x()).into()], &mut [&mut out]), FIFTH);
    }
    refused(invoke_inplace(op, &[(&x()).into()]), FIFTH);
}

#[test]
fn a_kernel_that_writes_row_major_outputs_only() {
    fn kernel(call: &KernelCall<'_>) -> Result<()> {
        if let Some(out) = call.view_mut::<f32>(0).as_mut_slice() {
            out.fill(1.0);
        }
        Ok(())
    }
    let op = unary("op", kernel, FLOAT, false);
    assert_eq!(call(op, &x()).unwrap()[0].to_vec::<f32>().unwrap(), [1.0; 6]);
    let mut out = strided(&[0.0f32; 20], &[2, 3], &[1, 6], 2);
    let message = FIFTH.replace("[1, 1]", "[0, 0]");
    refused(invoke_out(op, &[(&x()).into()], &mut [&mut out]), &message);
    check(check_written(op, &[(&x()).into()]).unwrap_err(), &message);
}

#[test]
fn a_write_with_too_few_values_is_an_error_in_every_build() {
    fn kernel(call: &KernelCall<'_>) -> Result<()> {
        call.view_mut::<f32>(0).write([1.0; 5])
    }
    let error = call(unary("op", kernel, FLOAT, false), &x()).unwrap_err();
    check(error, "a kernel has 5 values for the 6 elements of an output of the shape (2, 3)");

    fn endless(call: &KernelCall<'_>) -> Result<()> {
        call.view_mut::<f32>(0).write(std::iter::repeat(2.0))
    }
    assert_eq!(call(unary("op", endless, FLOAT, false), &x()).unwrap()[0].to_vec::<f32>().unwrap(), [2.0; 6]);
}

#[test]
fn a_write_takes_no_more_values_than_there_are_elements() {
    fn kernel(call: &KernelCall<'_>) -> Result<()> {
        let mut values = (0..12).map(|value| value as f32);
        call.view_mut::<f32>(0).write(&mut values)?;
        call.view_mut::<f32>(1).write(&mut values)
    }
    let outs = call(unary("op", kernel, TWO, false), &x()).unwrap();
    assert_eq!(outs[1].to_vec::<f32>().unwrap(), [6.0, 7.0, 8.0, 9.0, 10.0, 11.0]);
}

#[test]
fn truth_values_and_bytes_that_are_left() {
    fn flags(call: &KernelCall<'_>) -> Result<()> {
        let x: Vec<f32> = call.view::<f32>(0).iter().collect();
        let mut out = call.view_mut::<bool>(0);
        let Some(out) = out.as_mut_slice() else { return out.write(x.iter().map(|x| *x > 2.0)) };
        assert!(out.iter().all(|value| u8::from(*value) <= 1));
        out.iter_mut().zip(&x).take(5).for_each(|(out, x)| *out = *x > 2.0);
        Ok(())
    }
    let message = FIFTH.replace("[1, 1]", "[1, 2]");
    let op = unary("op", flags, BOOL, false);
    refused(call(op, &x()), &message);
    check(check_written(op, &[(&x()).into()]).unwrap_err(), &message);

    fn codes(call: &KernelCall<'_>) -> Result<()> {
        if let Some(out) = call.view_mut::<u8>(0).as_mut_slice() {
            out[1..].fill(0xA5);
        }
        Ok(())
    }
    let message = FIFTH.replace("[1, 1]", "[0, 0]").replace("the output", "the output `codes`");
    refused(call(unary("op", codes, BYTE, false), &x()), &message);
}

#[test]
fn the_output_is_named() {
    fn kernel(call: &KernelCall<'_>) -> Result<()> {
        call.view_mut::<f32>(0).write(std::iter::repeat(1.0))
    }
    let message = FIFTH.replace("[1, 1]", "[0, 0]").replace("the output", "the output `high`");
    refused(call(unary("op", kernel, TWO, false), &x()), &message);
}

/// Elements equal to the filling, in a kernel that writes all of them.
#[test]
fn elements_that_look_unwritten() {
    thread_local!(static RUNS: Cell<usize> = const { Cell::new(0) });
    fn codes(call: &KernelCall<'_>) -> Result<()> {
        RUNS.set(RUNS.get() + 1);
        call.view_mut::<u8>(0).write([0xA5, 0xE0, 0x5A, 0xC3, 0xFF, 0])
    }
    let op = unary("op", codes, BYTE, false);
    let outs = call(op, &x()).unwrap();
    assert_eq!(outs[0].to_vec::<u8>().unwrap(), [0xA5, 0xE0, 0x5A, 0xC3, 0xFF, 0]);
    assert_eq!(RUNS.get(), if cfg!(debug_assertions) { 2 } else { 1 });
    check_written(op, &[(&x()).into()]).unwrap();

    fn floats(call: &KernelCall<'_>) -> Result<()> {
        call.view_mut::<f32>(0).write([f32::from_bits(0xA5A5_A5A5); 6])
    }
    let outs = call(unary("op", floats, FLOAT, false), &x()).unwrap();
    assert_eq!(outs[0].to_vec::<f32>().unwrap(), [f32::from_bits(0xA5A5_A5A5); 6]);
}

/// A random kernel draws once per call, although the check runs it again.
#[test]
fn random_kernels_draw_once() {
    fn kernel(call: &KernelCall<'_>) -> Result<()> {
        let mut numbers = [0.0f32; 6];
        default_generator().fill(&Normal::<f32>::new(), &mut numbers);
        call.view_mut::<bool>(0).write(numbers.map(|number| number > 0.0))
    }
    let op = unary("op", kernel, BOOL, false);
    let expected: Vec<bool> = {
        let generator = Generator::new(5);
        let draw = || {
            let mut numbers = [0.0f32; 6];
            generator.fill(&Normal::<f32>::new(), &mut numbers);
            numbers.map(|number| number > 0.0)
        };
        [draw(), draw(), draw()].concat()
    };
    opsmith_runtime::random::manual_seed(5);
    let found: Vec<bool> =
        (0..3).flat_map(|_| call(op, &x()).unwrap()[0].to_vec::<bool>().unwrap()).collect();
    assert_eq!(found, expected);
    check_written(op, &[(&x()).into()]).unwrap();
}

/// A kernel with results that vary independent of random numbers still writes them.
#[test]
fn kernels_of_many_results() {
    thread_local!(static RUNS: Cell<u64> = const { Cell::new(1) });
    fn kernel(call: &KernelCall<'_>) -> Result<()> {
        call.view_mut::<bool>(0).write(std::iter::repeat_with(|| {
            // Marsaglia's xorshift.
            let mut state = RUNS.get();
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            RUNS.set(state);
            state & 1 == 1
        }))
    }
    for _ in 0..200 {
        call(unary("op", kernel, BOOL, false), &x()).unwrap();
    }
    check_written(unary("op", kernel, BOOL, false), &[(&x()).into()]).unwrap();
}

#[test]
fn a_kernel_that_fails_leaves_the_callers_tensor() {
    fn kernel(_: &KernelCall<'_>) -> Result<()> {
        Err(Error::value("no"))
    }
    let op = unary("op", kernel, FLOAT, false);
    let mut out = strided(&[7.0f32; 20], &[2, 3], &[1, 6], 2);
    let error = invoke_out(op, &[(&x()).into()], &mut [&mut out]).unwrap_err();
    assert_eq!(error.message(), "no");
    assert_eq!(out.to_vec::<f32>().unwrap(), [7.0; 6]);
}

#[test]
fn results_that_depend_on_what_was_in_memory() {
    fn kernel(call: &KernelCall<'_>) -> Result<()> {
        let x: Vec<f32> = call.view::<f32>(0).iter().collect();
        let mut out = call.view_mut::<f32>(0);
        let old: Vec<f32> = out.as_view().iter().collect();
        out.write(
            x.iter().zip(old).enumerate().map(|(index, (x, old))| if index == 3 { x + old } else { *x }),
        )
    }
    let error = check_written(unary("op", kernel, FLOAT, false), &[(&x()).into()]).unwrap_err();
    check(
        error,
        "the kernel `tests::kernel` computes the output from what is in its memory before: the first such element \
         is at [1, 0] of the shape (2, 3)",
    );
}

/// In place, an element-wise kernel reads its own output's memory, which keeps its contents.
#[test]
fn elements_that_are_inputs_too_are_left_alone() {
    fn kernel(call: &KernelCall<'_>) -> Result<()> {
        opsmith_runtime::generated::pointwise::map1(call, [0], |x: f32| x + 1.0)
    }
    let op = unary("op", kernel, FLOAT, true);
    let x = x();
    invoke_inplace(op, &[(&x).into()]).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
}
