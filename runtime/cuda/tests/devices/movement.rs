//! Copies, conversions, constants and sums, compared with the host's.

use opsmith_runtime::backend::{DeviceMemory, Elements, Work};
use opsmith_runtime::copy::{accumulate_elements, convert_elements, fill_elements};
use opsmith_runtime::{Complex, DType, DTypeSet, Device, Result, Scalar, Tensor};

use crate::common::{DEVICE, Layout, Part, assert_same, done, download, elements, on, says, upload};

/// The parts of this file.
pub const PARTS: &[Part] = &[
    ("bytes", bytes),
    ("conversions", conversions),
    ("layouts", layouts),
    ("transposed", transposed),
    ("fills", fills),
    ("sums", sums),
    ("peers", peers),
    ("tensors", tensors),
];

#[test]
fn bytes_arrive() {
    done("bytes", &[]);
    // The driver reads pageable memory as late as it may.
    done("bytes", &[("STANDIN_PAGEABLE", "late")]);
}

#[test]
fn every_pair_of_dtypes_converts_as_on_the_host() {
    done("conversions", &[]);
}

#[test]
fn every_layout_converts_as_on_the_host() {
    done("layouts", &[]);
}

#[test]
fn transposed_elements_move_in_tiles() {
    for order in ["forward", "reversed", "random:5"] {
        done("transposed", &[("STANDIN_ORDER", order), ("STANDIN_CHECK", "1")]);
    }
}

#[test]
fn constants_are_those_of_the_host() {
    done("fills", &[]);
}

#[test]
fn sums_are_those_of_the_host_where_targets_overlap() {
    done("sums", &[]);
    done("sums", &[("STANDIN_ORDER", "reversed")]);
}

#[test]
fn bytes_move_between_devices() {
    let copied = done("peers", &[("STANDIN_DEVICES", "2")]);
    assert!(copied.contains(" peers=0"), "{copied}");
    // Direct access is requested where the machine has it, once.
    let direct = done("peers", &[("STANDIN_DEVICES", "2"), ("STANDIN_PEERS", "1")]);
    assert!(direct.contains(" peers=1"), "{direct}");
}

#[test]
fn tensors_move() {
    done("tensors", &[]);
}

/// Numbers that conversions treat differently.
const NUMBERS: [f64; 30] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.75,
    2.5,
    3.5,
    127.0,
    128.5,
    255.0,
    256.0,
    -129.0,
    300.7,
    65_504.0,
    65_520.0,
    65_535.9,
    70_000.0,
    -70_000.0,
    1e-7,
    6e-8,
    -3e-8,
    2_147_483_648.0,
    -2_147_483_649.0,
    9.3e18,
    -9.3e18,
    1.9e19,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

fn bytes() {
    for length in [1usize, 63, 4096, 65_536, 65_537, (9 << 20) + 5] {
        let mut sent: Vec<u8> = (0..length).map(|position| (position * 7 + position / 251) as u8).collect();
        let memory = upload(DEVICE, &sent);
        let expected = sent.clone();
        // The bytes were read when the request returned.
        sent.fill(0);
        assert!(download(&memory, length).unwrap() == expected, "{length}");
    }
    // More copies at once than there are buffers.
    let all: Vec<DeviceMemory> = (0..100u8).map(|value| upload(DEVICE, &[value; 1000])).collect();
    for (value, memory) in all.iter().enumerate() {
        assert_eq!(download(memory, 1000).unwrap(), [value as u8; 1000]);
    }
}

/// Converts on the device and on the host, and compares the whole target buffers.
#[track_caller]
fn check_conversion(to: DType, to_layout: Layout<'_>, from: DType, from_layout: Layout<'_>, source: &[u8]) {
    let length = (source.len() / from.size()).max(200) as u32;
    let numbers: Vec<f64> = (0..length).map(|position| f64::from(position % 2)).collect();
    let mut expected = elements(&numbers, to);
    let device = upload(DEVICE, &expected);
    let from_device = upload(DEVICE, source);
    let work = Work::on(DEVICE).unwrap();
    // SAFETY: the layouts are inside the buffers, which are kept.
    unsafe {
        let (to, from) = (to_layout.of(device.start(), to), from_layout.of(from_device.start(), from));
        work.runtime().convert(work.queue(), to, from).unwrap();
    }
    device.note_use(&work).unwrap();
    from_device.note_use(&work).unwrap();
    // SAFETY: the layouts are inside the buffers.
    unsafe {
        let source = source.as_ptr().cast_mut();
        convert_elements(to_layout.of(expected.as_mut_ptr(), to), from_layout.of(source, from)).unwrap();
    }
    let found = download(&device, expected.len()).unwrap();
    assert_same(&found, &expected, to, &format!("{from} to {to}, {to_layout:?}, {from_layout:?}"));
}

fn conversions() {
    let row = Layout { first: 0, sizes: &[NUMBERS.len() as i64], strides: &[1] };
    // Not aligned for access to several elements at once.
    let shifted = Layout { first: 1, sizes: &[NUMBERS.len() as i64 - 1], strides: &[1] };
    // The host converts dtypes that only store.
    for from in DTypeSet::ALL.iter() {
        let mut source = elements(&NUMBERS, from);
        if from.is_int() {
            // All bits of integers.
            for (position, byte) in source.iter_mut().enumerate() {
                *byte = byte.wrapping_add((position * 89) as u8);
            }
        }
        if from.is_complex() {
            // An imaginary part alone is not zero.
            let one = elements(&[1.0], from.to_real());
            source[from.size() / 2..from.size()].copy_from_slice(&one);
        }
        for to in DTypeSet::ALL.iter() {
            check_conversion(to, row, from, row, &source);
            check_conversion(to, shifted, from, shifted, &source);
        }
    }
}

fn layouts() {
    let sizes: &[i64] = &[3, 4, 5];
    let targets = [
        Layout { first: 0, sizes, strides: &[20, 5, 1] },
        Layout { first: 3, sizes, strides: &[1, 3, 12] },
        Layout { first: 7, sizes, strides: &[40, 10, 2] },
        Layout { first: 119, sizes, strides: &[-20, 5, -1] },
    ];
    let sources = [
        Layout { first: 0, sizes, strides: &[20, 5, 1] },
        Layout { first: 2, sizes, strides: &[1, 3, 12] },
        Layout { first: 9, sizes, strides: &[0, 0, 2] },
        Layout { first: 60, sizes, strides: &[20, -5, 3] },
    ];
    let numbers: Vec<f64> = (0..200).map(|number| f64::from(number) - 90.0).collect();
    for (from, to) in [
        (DType::F32, DType::F32),
        (DType::F32, DType::F16),
        (DType::BF16, DType::F64),
        (DType::C128, DType::C128),
        (DType::I16, DType::C64),
        (DType::U8, DType::U8),
        (DType::F16, DType::Bool),
    ] {
        let source = elements(&numbers, from);
        for to_layout in targets {
            for from_layout in sources {
                check_conversion(to, to_layout, from, from_layout, &source);
            }
        }
    }
    // More dimensions than a kernel takes: none of them joins with a neighbour.
    let sizes = [2i64; 7];
    let spread = Layout { first: 0, sizes: &sizes, strides: &[1, 2, 4, 8, 16, 32, 64] };
    let reversed = Layout { first: 0, sizes: &sizes, strides: &[64, 32, 16, 8, 4, 2, 1] };
    check_conversion(DType::F32, spread, DType::F32, reversed, &elements(&numbers, DType::F32));
    let sizes = [1i64, 2, 1, 2, 2, 2, 2, 1, 2, 1, 2, 1];
    let from = Layout { first: 0, sizes: &sizes, strides: &[9, 1, 9, 2, 4, 8, 0, 9, 16, 9, 32, 9] };
    let to = Layout { first: 0, sizes: &sizes, strides: &[0, 64, 0, 32, 16, 8, 4, 0, 2, 0, 1, 0] };
    check_conversion(DType::F64, to, DType::F32, from, &elements(&numbers, DType::F32));
    // No elements.
    let none = Layout { first: 0, sizes: &[0, 3], strides: &[3, 1] };
    check_conversion(DType::F32, none, DType::I64, none, &elements(&numbers, DType::I64));
}

fn transposed() {
    let numbers: Vec<f64> = (0..3 * 40 * 35 + 10).map(|number| f64::from(number % 120)).collect();
    let sizes: &[i64] = &[3, 40, 35];
    let row = Layout { first: 0, sizes, strides: &[1400, 35, 1] };
    let columns = Layout { first: 4, sizes, strides: &[1400, 1, 40] };
    for dtype in [DType::Bool, DType::BF16, DType::F32, DType::I64, DType::C128] {
        let source = elements(&numbers, dtype);
        for (to, from) in [(row, columns), (columns, row)] {
            check_conversion(dtype, to, dtype, from, &source);
        }
    }
    let source = elements(&numbers, DType::F32);
    check_conversion(DType::F64, row, DType::F32, columns, &source);
    // Repeated along the outer dimension.
    let repeated = Layout { strides: &[0, 1, 40], ..columns };
    check_conversion(DType::F32, row, DType::F32, repeated, &source);
}

fn fills() {
    let values = [
        Scalar::Bool(true),
        Scalar::Int(-3),
        Scalar::Float(0.1),
        Scalar::Float(f64::NAN),
        Scalar::Complex(Complex::new(1.5, -2.0)),
        Scalar::Int(0),
    ];
    let layouts = [
        Layout { first: 0, sizes: &[8, 12], strides: &[12, 1] },
        Layout { first: 5, sizes: &[3, 4], strides: &[2, 9] },
        Layout { first: 5, sizes: &[3, 4], strides: &[0, 3] },
        Layout { first: 5, sizes: &[], strides: &[] },
        Layout { first: 5, sizes: &[3, 0], strides: &[1, 1] },
    ];
    let work = Work::on(DEVICE).unwrap();
    for dtype in DType::ALL {
        for (value, layout) in values.iter().flat_map(|value| layouts.map(|layout| (*value, layout))) {
            let mut expected = elements(&[1.0; 100], dtype);
            let device = upload(DEVICE, &expected);
            // SAFETY: the layouts are inside the buffers, which are kept.
            unsafe {
                work.runtime().fill(work.queue(), layout.of(device.start(), dtype), value).unwrap();
                fill_elements(layout.of(expected.as_mut_ptr(), dtype), value).unwrap();
            }
            device.note_use(&work).unwrap();
            let found = download(&device, expected.len()).unwrap();
            assert_same(&found, &expected, dtype, &format!("{value:?} as {dtype}, {layout:?}"));
        }
    }
}

/// Adds on the device.
///
/// # Safety
/// The layouts are inside the buffers.
unsafe fn add(work: &Work, to: Elements<'_>, from: Elements<'_>) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { work.runtime().accumulate(work.queue(), to, from) }
}

fn sums() {
    let sizes: &[i64] = &[4, 3, 5];
    let source = Layout { first: 0, sizes, strides: &[15, 5, 1] };
    let targets: [&[i64]; 7] =
        [&[15, 5, 1], &[0, 5, 1], &[5, 0, 1], &[3, 1, 0], &[0, 0, 0], &[1, 1, 1], &[2, 0, 3]];
    // Sums of such numbers depend on the order.
    let numbers: Vec<f64> =
        (0..60).map(|number| f64::from(number % 7 - 3) * 10f64.powi(number % 5 * 2 - 4)).collect();
    let work = Work::on(DEVICE).unwrap();
    for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_differentiable()) {
        for strides in targets {
            let target = Layout { first: 2, sizes, strides };
            let addends = elements(&numbers, dtype);
            let mut expected = elements(&[0.25; 80], dtype);
            let (device, from) = (upload(DEVICE, &expected), upload(DEVICE, &addends));
            // SAFETY: the layouts are inside the buffers, which are kept.
            unsafe {
                add(&work, target.of(device.start(), dtype), source.of(from.start(), dtype)).unwrap();
                let addends = source.of(addends.as_ptr().cast_mut(), dtype);
                in_row_major_order(target.of(expected.as_mut_ptr(), dtype), addends);
            }
            device.note_use(&work).unwrap();
            from.note_use(&work).unwrap();
            let found = download(&device, expected.len()).unwrap();
            assert_same(&found, &expected, dtype, &format!("{dtype} into {strides:?}"));
        }
    }
    let whole = upload(DEVICE, &[1; 480]);
    // SAFETY: the layout is inside the buffer; an error is returned before any work.
    let refused = unsafe {
        let elements = source.of(whole.start(), DType::I64);
        add(&work, elements, elements)
    };
    says(refused, &["a gradient of dtype int64 cannot be added"]);
}

/// Adds one element after the other on the host, which has no order of its own to choose then.
///
/// # Safety
/// The layouts are inside the buffers.
unsafe fn in_row_major_order(to: Elements<'_>, from: Elements<'_>) {
    let (sizes, size) = (to.sizes, to.dtype.size() as i64);
    for position in 0..sizes.iter().product::<i64>() {
        let index = [position / (sizes[1] * sizes[2]), position / sizes[2] % sizes[1], position % sizes[2]];
        let start = |elements: Elements<'_>| {
            let offset: i64 =
                std::iter::zip(index, elements.strides).map(|(index, stride)| index * stride).sum();
            elements.start.wrapping_offset((offset * size) as isize)
        };
        let one = |elements: Elements<'_>| Elements {
            start: start(elements),
            dtype: elements.dtype,
            sizes: &[],
            strides: &[],
        };
        // SAFETY: the caller's promise.
        unsafe { accumulate_elements(one(to), one(from)).unwrap() };
    }
}

fn peers() {
    let second = Device::cuda(1);
    let sent: Vec<u8> = (0..70_000).map(|position| (position % 251) as u8).collect();
    let first = upload(DEVICE, &sent);
    for device in [DEVICE, second] {
        let other = DeviceMemory::new(device, sent.len()).unwrap();
        let work = Work::on(DEVICE).unwrap();
        work.follow(other.last_use()).unwrap();
        // SAFETY: both sides have as many bytes, and are kept.
        unsafe {
            let (to, from) = (on(device, other.start()), on(DEVICE, first.start()));
            work.runtime().transfer(work.queue(), to, from, sent.len()).unwrap();
        }
        other.note_use(&work).unwrap();
        first.note_use(&work).unwrap();
        // The other device's stream follows the copy.
        assert!(download(&other, sent.len()).unwrap() == sent);
    }
    assert_eq!(opsmith_cuda::device_count().unwrap(), 2);
}

fn tensors() {
    let host = Tensor::from_slice(&[1.0f32, -2.0, 3.5, 4.0, 5.0, 6.0], &[2, 3]).unwrap();
    let moved = host.to_device(DEVICE).unwrap();
    assert_eq!(moved.device(), DEVICE);
    assert_eq!(moved.to_vec::<f32>().unwrap(), [1.0, -2.0, 3.5, 4.0, 5.0, 6.0]);
    assert_eq!(moved.to_device(Device::CPU).unwrap().to_vec::<f32>().unwrap()[2], 3.5);
    let truth = Tensor::of(&[true, false, true]).to_device(DEVICE).unwrap();
    assert_eq!(truth.to_vec::<bool>().unwrap(), [true, false, true]);
    assert_eq!(Tensor::of(&[7i64]).to_device(DEVICE).unwrap().item().unwrap(), Scalar::Int(7));
}
