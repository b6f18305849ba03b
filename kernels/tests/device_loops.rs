//! Loops over elements of the device library visit every element once, with its own operands.
//!
//! In: loops as the generator writes them, compiled and launched by the stand-ins. Out: comparisons with the same loop here:
//! contiguous operands, aligned or not, with and without a rest; strided ones of up to eight dimensions, broadcast and
//! backwards; operands of several types; loops without inputs or constants.

mod device_support;

use std::ffi::c_void;

use device_support::launch::{Device, device};
use half::bf16;
use opsmith_kernels::device::HEADERS;

#[repr(C)]
struct Contiguous<const N: usize> {
    count: u64,
    pointers: [*const c_void; N],
}

#[repr(C)]
struct Strided<const N: usize, Index> {
    count: u64,
    dims: u32,
    padding: u32,
    sizes: [Index; 8],
    strides: [[i64; 8]; N],
    pointers: [*const c_void; N],
}

fn text(
    inputs: usize,
    constants: &str,
    parameters: &str,
    result: &str,
    value: &str,
    kind: &str,
    ty: &str,
) -> String {
    format!(
        "{}namespace opsmith {{\ntemplate <class T> struct Loop0 {{\n  using C = Compute<T>;\n  using R = {result};\n  \
         static constexpr int kInputs = {inputs};\n  {constants}\n  DEVICE R operator()({parameters}) const {{ return {value}; }}\n}};\n\
         }}\nOPSMITH_LOOP(opsmith_kernel, Loop0<{ty}>, {kind})\n",
        HEADERS.concat()
    )
}

fn launch(device: &Device, text: &str, count: usize, parameters: &[*const c_void; 2]) {
    device.launch(device.function(text), [count.div_ceil(1024).max(1) as u32, 1], [256, 1], parameters);
}

/// `self + alpha * other`, of a type and its constant's.
fn contiguous<T: Copy + Default + PartialEq + std::fmt::Debug, C: Copy>(
    ty: &str,
    element: fn(usize) -> T,
    alpha: C,
    twin: fn(T, T) -> T,
) {
    let device = device();
    let value = "from_compute<T>(add(to_compute(self), mul(constant0, to_compute(other))))";
    let text = text(2, "C constant0;", "T self, T other", "T", value, "contiguous", ty);
    for (count, shift) in [(1, 0), (5, 0), (2048, 0), (4099, 0), (4099, 1), (70_001, 3)] {
        // Operands after elements that shift their addresses.
        let elements =
            |start: usize| (0..shift + count).map(|index| element(start + index)).collect::<Vec<T>>();
        let (first, second) = (elements(0), elements(977));
        let memory = [&elements(5), &first, &second].map(|elements| device.copied(elements));
        let address =
            |place: usize| memory[place].pointer().wrapping_byte_add(shift * size_of::<T>()).cast_const();
        let geometry = Contiguous { count: count as u64, pointers: [address(0), address(1), address(2)] };
        launch(&device, &text, count, &[(&raw const alpha).cast(), (&raw const geometry).cast()]);
        let found = memory[0].read::<T>(shift + count);
        assert_eq!(found[..shift], elements(5)[..shift], "{ty}: elements before the first stay");
        let wanted: Vec<T> = (shift..shift + count).map(|index| twin(first[index], second[index])).collect();
        assert_eq!(found[shift..], wanted, "{ty}: {count} elements, addresses shifted by {shift}");
    }
}

#[test]
fn contiguous_operands_of_every_width() {
    contiguous("i8", |index| index as i8, 3i8, |a, b| a.wrapping_add(b.wrapping_mul(3)));
    contiguous(
        "bf16",
        |index| bf16::from_f32((index % 50) as f32),
        2f32,
        |a, b| bf16::from_f32(a.to_f32() + 2.0 * b.to_f32()),
    );
    contiguous("float", |index| index as f32, 0.5f32, |a, b| a + 0.5 * b);
    contiguous("double", |index| index as f64, 0.5f64, |a, b| a + 0.5 * b);
    contiguous(
        "c64",
        |index| [index as f64, 1.0],
        [2.0f64, 0.0],
        |a, b| [a[0] + 2.0 * b[0], a[1] + 2.0 * b[1]],
    );
}

#[test]
fn operands_of_several_types_and_a_truth_value() {
    let device = device();
    let value = "math::truth(mask) && lt(to_compute(self), static_cast<C>(position))";
    let text = text(3, "", "bool mask, T self, i64 position", "bool", value, "contiguous", "f16");
    let count = 3001;
    let masks: Vec<bool> = (0..count).map(|index| index % 3 != 0).collect();
    let halves: Vec<half::f16> = (0..count).map(|index| half::f16::from_f32((index % 17) as f32)).collect();
    let positions: Vec<i64> = (0..count as i64).map(|index| index % 11).collect();
    let (mask, x, position) = (device.copied(&masks), device.copied(&halves), device.copied(&positions));
    let out = device.memory::<bool>(count);
    let pointers = [&out, &mask, &x, &position].map(|memory| memory.pointer().cast_const());
    let geometry = Contiguous { count: count as u64, pointers };
    // A loop without constants still is a parameter, of one byte.
    launch(&device, &text, count, &[(&raw const masks[0]).cast(), (&raw const geometry).cast()]);
    let wanted: Vec<bool> =
        (0..count).map(|i| masks[i] && halves[i].to_f32() < positions[i] as f32).collect();
    assert_eq!(out.read::<bool>(count), wanted);
}

#[test]
fn a_loop_without_inputs_fills() {
    let device = device();
    let text = text(0, "C constant0;", "", "T", "constant0", "contiguous", "i64");
    let (seven, out) = (7i64, device.memory::<i64>(1000));
    let geometry = Contiguous { count: 1000, pointers: [out.pointer().cast_const()] };
    launch(&device, &text, 1000, &[(&raw const seven).cast(), (&raw const geometry).cast()]);
    assert_eq!(out.read::<i64>(1000), [7; 1000]);
}

/// Sizes, and strides of the output and of two inputs with an offset of the first element.
type Case = (&'static [u64], [&'static [i64]; 3], [i64; 3]);

const CASES: [Case; 5] = [
    // Row-major output, transposed input, and one that is broadcast.
    (&[5, 7], [&[7, 1], &[1, 5], &[0, 1]], [0; 3]),
    // Backwards, and every second element.
    (&[6, 4], [&[4, 1], &[-4, -1], &[8, 2]], [0, 23, 0]),
    (
        &[2, 3, 2, 2, 1, 2, 3, 2],
        [&[144, 48, 24, 12, 12, 6, 2, 1], &[1, 2, 6, 12, 24, 24, 48, 144], &[0, 0, 0, 0, 0, 0, 0, 1]],
        [0; 3],
    ),
    (&[1300], [&[2], &[1], &[0]], [0; 3]),
    (&[], [&[], &[], &[]], [0; 3]),
];

fn strided<Index: Copy + Default>(kind: &str, convert: fn(u64) -> Index) {
    let device = device();
    let (three, value) = (3i32, "sub(self, mul(constant0, other))");
    let text = text(2, "C constant0;", "T self, T other", "T", value, kind, "i32");
    for (sizes, strides, starts) in CASES {
        let count = sizes.iter().product::<u64>() as usize;
        let elements: Vec<i32> = (0..4000).collect();
        let memory = [&vec![-1; 4000], &elements, &elements].map(|elements| device.copied(elements));
        let mut geometry = Strided {
            count: count as u64,
            dims: sizes.len() as u32,
            padding: 0,
            sizes: [Index::default(); 8],
            strides: [[0; 8]; 3],
            pointers: [0, 1, 2].map(|place| {
                memory[place].pointer().wrapping_byte_offset(4 * starts[place] as isize).cast_const()
            }),
        };
        let mut wanted = vec![-1; 4000];
        geometry.sizes.iter_mut().zip(sizes).for_each(|(size, &given)| *size = convert(given));
        for (operand, strides) in strides.iter().enumerate() {
            geometry.strides[operand][..strides.len()].copy_from_slice(strides);
        }
        for index in 0..count as u64 {
            let mut rest = index;
            let mut places = starts;
            for dim in (0..sizes.len()).rev() {
                let position = (rest % sizes[dim]) as i64;
                rest /= sizes[dim];
                places.iter_mut().zip(strides).for_each(|(place, strides)| *place += position * strides[dim]);
            }
            wanted[places[0] as usize] = elements[places[1] as usize] - 3 * elements[places[2] as usize];
        }
        launch(&device, &text, count, &[(&raw const three).cast(), (&raw const geometry).cast()]);
        assert_eq!(memory[0].read::<i32>(4000), wanted, "{kind}: sizes {sizes:?}");
    }
}

#[test]
fn strided_operands() {
    strided::<u32>("strided32", |size| size as u32);
    strided::<u64>("strided64", |size| size);
}
