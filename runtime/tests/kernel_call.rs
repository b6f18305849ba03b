//! Calls as kernels receive them: views do not overlap, and loops stay inside their operands.

#[path = "support/ops.rs"]
mod ops;
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};

use ops::{ARGS, LIBRARY, required, unary};
use opsmith_runtime::generated::call;
use opsmith_runtime::generated::pointwise::{self, for_each_row, map0, map1, map2, map3};
use opsmith_runtime::op::{
    ArgKind, ElementType, Forms, Inferred, KernelCall, KernelTable, Kernels, OpDef, ReturnDef, Schema,
    UniformCall,
};
use opsmith_runtime::storage::Storage;
use opsmith_runtime::{Arg, Backend, DType, Device, ErrorKind, Layout, Result, Tensor, copy};
use support::strided;

const OUT: &[(Option<&str>, DType)] = &[(None, DType::F32)];

fn nothing(_: &KernelCall<'_>) -> Result<()> {
    Ok(())
}

fn op(elementwise: bool) -> &'static OpDef {
    unary("op", nothing, OUT, elementwise)
}

/// Makes a call of an operator on private tensors.
fn with_call<R>(
    op: &'static OpDef,
    args: &[&Tensor],
    outs: &[Tensor],
    body: impl FnOnce(&KernelCall<'_>) -> R,
) -> R {
    let args: Vec<Arg<'_>> = args.iter().map(|tensor| Arg::Tensor(tensor)).collect();
    // SAFETY: only this thread has the tests' tensors; if they differ from an operator's arguments, the call itself
    // detects that.
    body(&unsafe { KernelCall::new(op, &args, outs).with_elements() })
}

fn panics(body: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(body)).expect_err("it panics");
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap()
}

#[test]
fn an_output_has_one_view() {
    let (x, out) = (Tensor::of(&[1.0f32, 2.0]), Tensor::of(&[0.0f32; 2]));
    let outs = [out.clone(), Tensor::of(&[0.0f32; 3])];
    let twice = |second: fn(&KernelCall<'_>)| {
        with_call(op(false), &[&x], &outs, |call| {
            let mut view = call.view_mut::<f32>(0);
            let slice = view.as_mut_slice().unwrap();
            let message = panics(|| second(call));
            slice[0] = 7.0;
            message
        })
    };
    assert_eq!(twice(|call| _ = call.view_mut::<f32>(0)), "the elements of output 0 were handed out before");
    assert_eq!(
        twice(|call| drop(call.views_mut::<f32>())),
        "the elements of an output were handed out before"
    );
    assert_eq!(
        twice(|call| _ = call.optional_view_mut::<f32>(0).unwrap()),
        "the elements of output 0 were handed out before"
    );
    assert_eq!(twice(|call| _ = call.foreign_output(0)), "the elements of output 0 were handed out before");
    assert_eq!(out.to_vec::<f32>().unwrap(), [7.0, 0.0]);
    with_call(op(false), &[&x], &outs, |call| {
        let views = call.views_mut::<f32>();
        assert_eq!(views.len(), 2);
        panics(|| _ = call.view_mut::<f32>(1));
        panics(|| drop(call.views_mut::<f32>()));
    });
    // Generated code requests one view of each.
    with_call(op(false), &[&x], &outs, |call| (call.view_mut::<f32>(0), call.view_mut::<f32>(1), ()).2);
}

#[test]
fn of_very_many_outputs_each_has_one_view() {
    let outs: Vec<Tensor> = (0..70).map(|_| Tensor::of(&[0.0f32])).collect();
    with_call(op(false), &[], &outs, |call| assert_eq!(call.views_mut::<f32>().len(), 70));
    with_call(op(false), &[], &outs, |call| {
        let _one = call.view_mut::<f32>(66);
        panics(|| _ = call.view_mut::<f32>(66));
        panics(|| _ = call.view_mut::<f32>(69));
        panics(|| drop(call.views_mut::<f32>()));
    });
}

#[test]
fn loops_do_not_write_what_a_view_has() {
    let (x, out) = (Tensor::of(&[1.0f32, 2.0]), Tensor::of(&[0.0f32; 2]));
    with_call(op(false), &[&x], std::slice::from_ref(&out), |call| {
        let _view = call.view_mut::<f32>(0);
        for error in [
            map0(call, [], || 1.0f32).unwrap_err(),
            map1(call, [0], |x: f32| x).unwrap_err(),
            pointwise::copy(call, 0).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Aliasing);
            assert_eq!(error.message(), "the elements of the output were handed out before");
        }
    });
    // Consecutive loops are allowed.
    with_call(op(false), &[&x], std::slice::from_ref(&out), |call| {
        map1(call, [0], |x: f32| x).unwrap();
        map1(call, [0], |x: f32| 2.0 * x).unwrap();
    });
    assert_eq!(out.to_vec::<f32>().unwrap(), [2.0, 4.0]);
}

#[test]
fn a_loop_that_ended_leaves_views_to_others() {
    let (x, out) = (Tensor::of(&[1.0f32, 2.0]), Tensor::of(&[0.0f32; 2]));
    with_call(op(false), &[&x], std::slice::from_ref(&out), |call| {
        map1(call, [0], |x: f32| x).unwrap();
        call.view_mut::<f32>(0).write([5.0, 6.0]).unwrap();
    });
    assert_eq!(out.to_vec::<f32>().unwrap(), [5.0, 6.0]);
}

#[test]
fn an_input_that_is_the_output_has_no_views() {
    let x = Tensor::of(&[1.0f32, 2.0]);
    with_call(op(true), &[&x], std::slice::from_ref(&x), |call| {
        panics(|| _ = call.view::<f32>(0));
        panics(|| _ = call.view_mut::<f32>(0));
        panics(|| drop(call.views_mut::<f32>()));
        map1(call, [0], |x: f32| x + 1.0).unwrap();
    });
    assert_eq!(x.to_vec::<f32>().unwrap(), [2.0, 3.0]);
}

/// Shapes that do not broadcast to the output's, by the number of elements: fewer, more, as many, none.
#[test]
fn loops_refuse_inputs_of_other_shapes() {
    let numbers = |count: usize, shape: &[i64]| Tensor::from_slice(&vec![1.0f32; count], shape).unwrap();
    let outs = [numbers(6, &[2, 3]), strided(&[0.0f32; 12], &[2, 3], &[6, 2], 0), numbers(0, &[0, 3])];
    let wrong = [
        numbers(2, &[2]),
        numbers(1, &[1, 1, 1]),
        numbers(12, &[4, 3]),
        numbers(6, &[3, 2]),
        numbers(6, &[6]),
        numbers(0, &[0]),
        strided(&[0.0f32; 1], &[2], &[0], 0),
        strided(&[0.0f32; 1], &[0], &[0], 0),
        strided(&[0.0f32; 1], &[5, 2, 3], &[0, 0, 0], 0),
    ];
    for out in &outs {
        for input in &wrong {
            if out.numel() == 0 && input.dim() == 1 && input.shape() == [1] {
                continue;
            }
            let right = numbers(1, &[]);
            let refused = |result: Result<()>| {
                let error = result.expect_err("the shape is refused");
                assert_eq!(error.kind(), ErrorKind::Shape, "{error}");
                assert!(
                    error.message().contains("which does not broadcast to that of the output"),
                    "{error}"
                );
            };
            with_call(op(true), &[input, &right], std::slice::from_ref(out), |call| {
                refused(map1(call, [0], |x: f32| x));
                refused(map2(call, [1, 0], |x: f32, y: f32| x + y));
                refused(map3(call, [1, 1, 0], |x: f32, y: f32, z: f32| x + y + z));
                refused(pointwise::copy(call, 0));
                map2(call, [1, 1], |x: f32, y: f32| x + y).unwrap();
            });
            refused(copy::copy(out, input));
            refused(for_each_row(&[out, &right, input], &mut |_| {}));
        }
    }
    let error =
        with_call(op(true), &[&wrong[0]], &outs[..1], |call| map1(call, [0], |x: f32| x).unwrap_err());
    assert_eq!(
        error.to_string(),
        "input 0 of a pointwise loop has the shape (2), which does not broadcast to that of the output, (2, 3)\n  \
         help: inference gives the output the shape that all inputs broadcast to"
    );
}

#[test]
fn loops_refuse_what_is_not_there_or_of_another_type() {
    let (x, out) = (Tensor::of(&[1.0f32, 2.0]), Tensor::of(&[0.0f32; 2]));
    let refused = |result: Result<()>, kind: ErrorKind| assert_eq!(result.unwrap_err().kind(), kind);
    with_call(op(true), &[&x], std::slice::from_ref(&out), |call| {
        refused(map1(call, [1], |x: f32| x), ErrorKind::Argument);
        refused(map1(call, [usize::MAX], |x: f32| x), ErrorKind::Argument);
        refused(map1(call, [0], |x: f64| x as f32), ErrorKind::DType);
        refused(map1(call, [0], |x: f32| f64::from(x)), ErrorKind::DType);
        refused(map1(call, [0], |x: f32| x > 0.0), ErrorKind::DType);
        refused(map0(call, [], || 1i32), ErrorKind::DType);
        refused(pointwise::copy(call, 1), ErrorKind::Argument);
    });
    with_call(op(true), &[&x], &[], |call| refused(map1(call, [0], |x: f32| x), ErrorKind::Argument));
    let number = [Arg::Float(1.0), Arg::None];
    // SAFETY: as in `with_call`.
    let call = unsafe { KernelCall::new(op(true), &number, std::slice::from_ref(&out)) };
    refused(map1(&call, [0], |x: f32| x), ErrorKind::Argument);
    refused(map1(&call, [1], |x: f32| x), ErrorKind::Argument);
    let many = [&x; 9];
    refused(for_each_row(&many, &mut |_| {}), ErrorKind::Argument);
    refused(for_each_row(&[], &mut |_| {}), ErrorKind::Argument);
}

/// Memory with arbitrary former bytes.
fn dirty(sizes: &[i64], strides: &[i64], bytes: usize, dtype: DType) -> Tensor {
    let storage = Storage::uninitialized(bytes).unwrap();
    // SAFETY: only this test has the storage, which has that many bytes.
    unsafe { storage.data().write_bytes(0xC7, bytes) };
    let layout = Layout { sizes: sizes.into(), strides: strides.into(), offset: 0 };
    // SAFETY: the layout is inside; no element is read before a view initialises it.
    unsafe { Tensor::from_parts(storage, layout, dtype, Device::CPU) }
}

#[test]
fn every_truth_value_that_a_kernel_sees_is_one() {
    let outs = [dirty(&[3], &[1], 3, DType::Bool), dirty(&[2, 2], &[5, 2], 9, DType::Bool)];
    // SAFETY: no other code has these tensors.
    let call = unsafe { KernelCall::new(op(false), &[], &outs) };
    for index in 0..2 {
        let view = call.view_mut::<bool>(index);
        assert!(view.as_view().iter().all(|value| !value));
        let bytes: Vec<u8> =
            // SAFETY: each position is an element's, a byte that is initialised.
            view.positions().map(|at| unsafe { view.as_view().as_ptr().cast::<u8>().offset(at as isize).read() }).collect();
        assert!(bytes.iter().all(|byte| *byte == 0), "{bytes:?}");
    }
    // The bytes in between belong to other elements.
    // SAFETY: the storage has that many bytes.
    let bytes = unsafe { std::slice::from_raw_parts(outs[1].storage().data(), 9) };
    assert_eq!(bytes, [0, 0xC7, 0, 0xC7, 0xC7, 0, 0xC7, 0, 0xC7]);
    // A kernel in C gets the same.
    let out = [dirty(&[3], &[1], 3, DType::Bool)];
    // SAFETY: no other code has this tensor.
    let call = unsafe { KernelCall::new(op(false), &[], &out) };
    let _ = call.foreign_output(0);
    assert_eq!(out[0].to_vec::<bool>().unwrap(), [false; 3]);
}

#[test]
fn new_memory_has_values() {
    // Larger than any cached block, so that the system provides it.
    for bytes in [3 << 20, (3 << 20) + 1, 50 << 20] {
        let storage = Storage::uninitialized(bytes).unwrap();
        assert_eq!(storage.data().addr() % 64, 0);
        // SAFETY: the storage has that many bytes, and every one is initialised.
        let content = unsafe { std::slice::from_raw_parts(storage.data(), bytes) };
        assert!(content.iter().all(|byte| *byte == 0));
    }
}

/// An operator whose forms may not overwrite their input, although it needs no inference.
static SHIFTED: OpDef = OpDef {
    forms: Forms { inplace: Some("shifted_"), out: Some("shifted.out"), elementwise: false, ..Forms::NONE },
    infer: Some(|args| {
        let input = args[0].tensor();
        Ok(Inferred::new([(input.shape().into(), input.dtype())], input.dtype(), input.device()))
    }),
    uniform: UniformCall::Same,
    element_types: &[ElementType::Dispatch],
    // SAFETY: the kernel accesses the call by safe functions, which check it.
    kernels: unsafe {
        Kernels::of({
            static TABLE: KernelTable = KernelTable::new().with(
                Backend::Cpu,
                "tests::shifted",
                &[(DType::F32, |call| {
                    let (x, mut out) = (call.view::<f32>(0), call.view_mut::<f32>(0));
                    assert_ne!(x.as_ptr(), out.as_mut_ptr().cast_const(), "two views of one element");
                    let x: Vec<f32> = x.iter().collect();
                    out.write(x[1..].iter().chain(&x[..1]).copied())
                })],
            );
            &TABLE
        })
    },
    ..OpDef::new(
        "shifted",
        Schema { text: "", args: ARGS, returns: &[ReturnDef { name: None, ty: required(ArgKind::Tensor) }] },
        "tests.yaml:1",
        &LIBRARY,
    )
};

#[test]
fn forms_that_may_not_write_over_their_input_do_not() {
    let mut x = Tensor::of(&[1.0f32, 2.0, 3.0]);
    call::invoke_inplace(&SHIFTED, &[Arg::Tensor(&x)]).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [2.0, 3.0, 1.0]);
    let input = x.clone();
    let error = call::invoke_out(&SHIFTED, &[Arg::Tensor(&input)], &mut [&mut x]).unwrap_err();
    assert_eq!(error.message(), "out shares memory with the input `self`");
}
