//! Convolutions by cuDNN: parts, dimensions, groups, dtypes and layouts, bit for bit, and those that are left to kernels of our own.
//!
//! Numbers are multiples of a quarter, so that all sums are exact.

use opsmith_cuda::{LibraryState, libraries};
use opsmith_runtime::backend::{ConvolutionPart, DeviceMemory, Elements, LibraryConvolution, Work};
use opsmith_runtime::{DType, Result};

use crate::common::{DEVICE, Part, STAND_INS, done, download, elements, says, start, upload};

/// The parts of this file.
pub const PARTS: &[Part] = &[
    ("convolutions", convolutions),
    ("convolutions_left", convolutions_left),
    ("convolutions_without_algorithm", convolutions_without_algorithm),
    ("convolutions_refused", convolutions_refused),
    ("convolutions_old", convolutions_old),
    ("convolutions_tf32", convolutions_tf32),
    ("convolutions_by_threads", convolutions_by_threads),
];

#[test]
fn convolutions_of_every_part() {
    let text = done("convolutions", &[("STANDIN_CUDNN_LOG", "1")]);
    for line in ["part=0", "part=1", "part=2", "dims=3", "groups=2", "beta=1", "type=9"] {
        assert!(text.contains(line), "no convolution has {line}: {text}");
    }
    // Single precision is not rounded to TF32, and no order is left to chance.
    assert!(text.contains("type=0 dims=2 groups=1 algorithm=12") && !text.contains("algorithm=10"), "{text}");
    assert!(!text.contains("type=0 dims=2 groups=1 algorithm=11"), "{text}");
    done("convolutions", &[("OPSMITH_CUDA_SYNC", "1")]);
    done("convolutions_by_threads", &[]);
}

#[test]
fn other_convolutions_are_left() {
    done("convolutions_left", &[]);
    done("convolutions_without_algorithm", &[("STANDIN_CUDNN_NONE", "1")]);
    for (part, variables) in [
        ("convolutions_refused", ("STANDIN_CUDNN_FAIL", "5000")),
        ("convolutions_old", ("STANDIN_CUDNN_VERSION", "8907")),
    ] {
        let output = start(part, &STAND_INS, &[variables, ("PATH", "/nonexistent")]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("DONE"), "{part}: {text}\n{errors}");
    }
}

#[test]
fn convolutions_are_rounded_if_the_program_allows_it() {
    done("convolutions_tf32", &[]);
}

/// A convolution of numbers.
#[derive(Clone, Copy, Debug)]
struct Case<'a> {
    dtype: DType,
    part: ConvolutionPart,
    samples: i64,
    /// Channels of a group of the image, and of the output.
    channels: [i64; 2],
    groups: i64,
    places: &'a [i64],
    window: &'a [i64],
    padding: &'a [i64],
    stride: &'a [i64],
    dilation: &'a [i64],
    has_bias: bool,
    /// Whether channels lie behind places.
    channels_last: bool,
}

const PLANE: Case<'static> = Case {
    dtype: DType::F32,
    part: ConvolutionPart::Output,
    samples: 2,
    channels: [3, 4],
    groups: 1,
    places: &[6, 5],
    window: &[3, 2],
    padding: &[1, 0],
    stride: &[1, 2],
    dilation: &[1, 1],
    has_bias: false,
    channels_last: false,
};

/// An operand: sizes, strides, and numbers in the order of memory.
struct Operand {
    sizes: Vec<i64>,
    strides: Vec<i64>,
    numbers: Vec<f64>,
}

impl Operand {
    fn new(sizes: Vec<i64>, channels_last: bool, seed: usize) -> Operand {
        let dims = sizes.len();
        // From the slowest dimension.
        let mut order: Vec<usize> = (0..dims).collect();
        if channels_last {
            order.remove(1);
            order.push(1);
        }
        let mut strides = vec![0; dims];
        let mut step = 1;
        for &dim in order.iter().rev() {
            strides[dim] = step;
            step *= sizes[dim];
        }
        let number = |at: usize| ((at * 7 + seed * 5 + at * at / 5) % 9) as f64 / 4.0 - 1.0;
        Operand { sizes, strides, numbers: (0..step as usize).map(number).collect() }
    }

    fn place(&self, index: &[i64]) -> usize {
        index.iter().zip(&self.strides).map(|(index, stride)| index * stride).sum::<i64>() as usize
    }

    fn elements(&self, memory: &DeviceMemory, dtype: DType) -> Elements<'_> {
        Elements { start: memory.start(), dtype, sizes: &self.sizes, strides: &self.strides }
    }
}

/// All indices of some sizes.
fn indices(sizes: &[i64]) -> Vec<Vec<i64>> {
    sizes.iter().fold(vec![Vec::new()], |all, &size| {
        all.iter().flat_map(|front| (0..size).map(move |index| [&front[..], &[index]].concat())).collect()
    })
}

impl Case<'_> {
    fn operands(&self) -> [Operand; 3] {
        let positions: Vec<i64> = (0..self.places.len())
            .map(|dim| {
                let window = (self.window[dim] - 1) * self.dilation[dim] + 1;
                (self.places[dim] + 2 * self.padding[dim] - window) / self.stride[dim] + 1
            })
            .collect();
        let [of_image, of_output] = self.channels;
        let sizes = |first: [i64; 2], rest: &[i64]| [&first[..], rest].concat();
        [
            Operand::new(sizes([self.samples, of_image * self.groups], self.places), self.channels_last, 1),
            Operand::new(sizes([of_output * self.groups, of_image], self.window), false, 2),
            Operand::new(sizes([self.samples, of_output * self.groups], &positions), self.channels_last, 3),
        ]
    }

    fn bias(&self, channel: i64) -> f64 {
        if self.has_bias { channel as f64 / 2.0 - 1.0 } else { 0.0 }
    }

    fn expected(&self, [image, weight, output]: &[Operand; 3]) -> Vec<f64> {
        let target = [output, image, weight][self.part as usize];
        let mut sums = vec![0.0; target.numbers.len()];
        for y in indices(&output.sizes) {
            for w in indices(&weight.sizes[1..]) {
                let mut x = vec![y[0], y[1] / self.channels[1] * self.channels[0] + w[0]];
                for dim in 0..self.places.len() {
                    x.push(
                        y[dim + 2] * self.stride[dim] - self.padding[dim] + w[dim + 1] * self.dilation[dim],
                    );
                }
                if x[2..].iter().zip(self.places).any(|(at, size)| !(0..*size).contains(at)) {
                    continue;
                }
                let w = [&y[1..2], &w[..]].concat();
                let [x, w, y] = [image.place(&x), weight.place(&w), output.place(&y)];
                let (place, product) = match self.part {
                    ConvolutionPart::Output => (y, image.numbers[x] * weight.numbers[w]),
                    ConvolutionPart::Image => (x, output.numbers[y] * weight.numbers[w]),
                    ConvolutionPart::Weight => (w, image.numbers[x] * output.numbers[y]),
                };
                sums[place] += product;
            }
        }
        for index in indices(&target.sizes) {
            sums[target.place(&index)] += self.bias(index[1]);
        }
        sums
    }

    /// The result's bytes; `None` if the convolution is left.
    fn run(&self, operands: &[Operand; 3]) -> Result<Option<Vec<u8>>> {
        let [image, weight, output] = operands;
        let uploaded = |operand: &Operand| upload(DEVICE, &elements(&operand.numbers, self.dtype));
        let memory = operands.each_ref().map(uploaded);
        let target = [output, image, weight][self.part as usize];
        let numbers: Vec<f64> = (0..target.sizes[1]).map(|channel| self.bias(channel)).collect();
        let of_bias = upload(DEVICE, &elements(&numbers, self.dtype));
        let mut bias_strides = vec![0; target.sizes.len()];
        bias_strides[1] = 1;
        let bias = Elements {
            start: of_bias.start(),
            dtype: self.dtype,
            sizes: &target.sizes,
            strides: &bias_strides,
        };
        let convolution = LibraryConvolution {
            image: image.elements(&memory[0], self.dtype),
            weight: weight.elements(&memory[1], self.dtype),
            output: output.elements(&memory[2], self.dtype),
            part: self.part,
            added: self.has_bias.then_some(bias),
            padding: self.padding,
            stride: self.stride,
            dilation: self.dilation,
            groups: self.groups,
        };
        let work = Work::on(DEVICE)?;
        // SAFETY: operands are on the device, and kept until their last use.
        let computed = unsafe { work.runtime().convolution(work.queue(), &convolution)? };
        for memory in memory.iter().chain([&of_bias]) {
            memory.note_use(&work)?;
        }
        let found = [2, 0, 1][self.part as usize];
        let bytes = download(&memory[found], target.numbers.len() * self.dtype.size())?;
        Ok(computed.then_some(bytes))
    }

    #[track_caller]
    fn check(&self) {
        let operands = self.operands();
        let found = self.run(&operands).unwrap().unwrap_or_else(|| panic!("{self:?} is left"));
        let expected = elements(&self.expected(&operands), self.dtype);
        assert!(found == expected, "{self:?}: {found:?}, not {expected:?}");
    }
}

const CONVOLUTION_PARTS: [ConvolutionPart; 3] =
    [ConvolutionPart::Output, ConvolutionPart::Image, ConvolutionPart::Weight];

fn convolutions() {
    let mut count = 0;
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        for part in CONVOLUTION_PARTS {
            for groups in [1, 2] {
                for has_bias in [false, true] {
                    let plane = Case { dtype, part, groups, has_bias, ..PLANE };
                    let line = Case {
                        places: &[9],
                        window: &[3],
                        padding: &[2],
                        stride: &[2],
                        dilation: &[2],
                        ..plane
                    };
                    let body = Case {
                        samples: 1,
                        channels: [2, 1],
                        places: &[3, 4, 5],
                        window: &[2, 1, 3],
                        padding: &[0, 1, 1],
                        stride: &[1, 1, 2],
                        dilation: &[1, 1, 1],
                        ..plane
                    };
                    let last = Case { channels_last: true, ..plane };
                    let point = Case { window: &[1, 1], padding: &[0, 0], ..plane };
                    for case in [plane, line, body, last, point] {
                        case.check();
                        count += 1;
                    }
                }
            }
        }
    }
    let report = &libraries().unwrap()[2];
    assert_eq!((report.name, report.computed, report.left), ("cudnn", count, 0));
    assert!(
        matches!(&report.state, LibraryState::Found { version, .. } if version == "9.28.1"),
        "{report:?}"
    );
}

fn convolutions_left() {
    let cases = [
        Case { dtype: DType::C64, ..PLANE },
        Case { dtype: DType::I32, ..PLANE },
        Case { samples: 0, ..PLANE },
        // One number for two dimensions.
        Case { padding: &[0, 0, 0], ..PLANE },
    ];
    for case in cases {
        let operands = case.operands();
        assert!(case.run(&operands).unwrap().is_none(), "{case:?}");
    }
    // A weight of another order, and an image of which one place is repeated.
    for (number, strides) in [(1, vec![1, 4, 12, 36]), (0, vec![30, 10, 0, 1])] {
        let mut operands = PLANE.operands();
        operands[number].strides = strides;
        assert!(PLANE.run(&operands).unwrap().is_none());
    }
    // Fewer positions than windows fit, as a transposed convolution has that pads its output by a step or more.
    let line = Case { places: &[9], window: &[3], padding: &[1], stride: &[2], dilation: &[1], ..PLANE };
    for (case, dim) in [(PLANE, 2), (PLANE, 3), (line, 2)] {
        for part in [ConvolutionPart::Output, ConvolutionPart::Image, ConvolutionPart::Weight] {
            let case = Case { part, ..case };
            assert!(case.run(&case.operands()).unwrap().is_some(), "{case:?}");
            let mut operands = case.operands();
            let shorter = operands[2].sizes.iter().enumerate();
            let shorter = shorter.map(|(at, size)| size - i64::from(at == dim)).collect();
            operands[2] = Operand::new(shorter, false, 3);
            assert!(case.run(&operands).unwrap().is_none(), "{case:?}");
        }
    }
    assert_eq!(libraries().unwrap()[2].left, 15);
}

fn convolutions_without_algorithm() {
    assert!(PLANE.run(&PLANE.operands()).unwrap().is_none());
    assert_eq!(libraries().unwrap()[2].left, 1);
}

fn convolutions_refused() {
    let texts = [
        "cuDNN cannot compute a convolution: CUDNN_STATUS_EXECUTION_FAILED (status 5000)",
        "OPSMITH_CUDA_LIBRARIES=off",
    ];
    says(PLANE.run(&PLANE.operands()), &texts);
}

fn convolutions_old() {
    assert!(PLANE.run(&PLANE.operands()).unwrap().is_none());
    let state = &libraries().unwrap()[2].state;
    assert!(matches!(state, LibraryState::Missing { .. }), "{state:?}");
}

fn convolutions_tf32() {
    let mut operands =
        Case { samples: 1, channels: [1, 1], places: &[1, 1], window: &[1, 1], padding: &[0, 0], ..PLANE }
            .operands();
    let long = 1.0 + f64::from(f32::EPSILON);
    operands[0].numbers = vec![long];
    operands[1].numbers = vec![1.0];
    let found = || {
        let case = Case { padding: &[0, 0], ..PLANE };
        let bytes = case.run(&operands).unwrap().unwrap();
        f32::from_ne_bytes(bytes[..4].try_into().unwrap())
    };
    assert_eq!(found(), long as f32);
    opsmith_cuda::set_allow_tf32(true);
    assert_eq!(found(), 1.0);
}

/// The library's handle serves one thread at a time.
fn convolutions_by_threads() {
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                let part = CONVOLUTION_PARTS[thread % 3];
                (0..10).for_each(|_| Case { part, has_bias: true, ..PLANE }.check());
            });
        }
    });
}
