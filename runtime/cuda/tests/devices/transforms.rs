//! Fourier transforms by cuFFT: kinds, precisions, dimensions, and those that are left to kernels of our own.

use std::f64::consts::PI;

use opsmith_cuda::{LibraryState, libraries};
use opsmith_runtime::backend::{LibraryTransform, Work};
use opsmith_runtime::{Complex64, DType, Result};

use crate::common::{DEVICE, Part, STAND_INS, done, download, empty, says, start, upload};

/// The parts of this file.
pub const PARTS: &[Part] = &[
    ("transforms", transforms),
    ("transforms_left", transforms_left),
    ("transforms_missing", transforms_missing),
    ("transforms_old", transforms_old),
    ("transforms_refused", transforms_refused),
    ("transforms_demanded", transforms_demanded),
    ("transforms_by_threads", transforms_by_threads),
];

#[test]
fn transforms_of_every_kind() {
    let text = done("transforms", &[("STANDIN_CUFFT_LOG", "1")]);
    for kind in ["0x29", "0x2a", "0x2c", "0x69", "0x6a", "0x6c"] {
        assert!(text.contains(&format!("kind={kind} rank=1")), "no kind {kind}: {text}");
    }
    assert!(text.contains("rank=2") && text.contains("rank=3"), "{text}");
    done("transforms", &[("OPSMITH_CUDA_SYNC", "1")]);
    done("transforms_by_threads", &[]);
}

#[test]
fn other_transforms_are_left() {
    done("transforms_left", &[]);
}

#[test]
fn transforms_without_a_library_are_left() {
    let folder = empty("no-cufft");
    opsmith_stand_in::driver(&folder);
    for name in ["libcufft.so", "libcufft.so.12", "libcufft.so.11"] {
        std::fs::write(folder.join(name), "no library").unwrap();
    }
    let nowhere = ("PATH", "/nonexistent");
    for (part, folder, variables) in [
        ("transforms_missing", &folder, vec![nowhere]),
        ("transforms_missing", &*STAND_INS, vec![("OPSMITH_CUDA_LIBRARIES", "cublaslt")]),
        ("transforms_demanded", &folder, vec![nowhere, ("OPSMITH_CUDA_LIBRARIES", "cufft")]),
        ("transforms_old", &STAND_INS, vec![nowhere, ("STANDIN_CUFFT_VERSION", "13000")]),
        ("transforms_refused", &STAND_INS, vec![("STANDIN_CUFFT_FAIL", "6")]),
    ] {
        let output = start(part, folder, &variables);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("DONE"), "{part} {variables:?}: {text}\n{errors}");
    }
}

/// Transforms of some numbers.
#[derive(Clone, Copy, Debug)]
struct Case<'a> {
    dtypes: [DType; 2],
    sizes: &'a [i64],
    count: i64,
    is_inverse: bool,
}

const LINE: Case<'static> =
    Case { dtypes: [DType::C64, DType::C64], sizes: &[12], count: 3, is_inverse: false };

/// Numbers as bytes of a dtype.
fn encoded(numbers: &[Complex64], dtype: DType) -> Vec<u8> {
    let parts = numbers.iter().flat_map(|number| {
        let parts = [number.re, number.im];
        parts.into_iter().take(if dtype.is_complex() { 2 } else { 1 })
    });
    match dtype.to_real() {
        DType::F64 => parts.flat_map(f64::to_ne_bytes).collect(),
        _ => parts.flat_map(|part| (part as f32).to_ne_bytes()).collect(),
    }
}

fn decoded(bytes: &[u8], dtype: DType) -> Vec<Complex64> {
    let parts: Vec<f64> = match dtype.to_real() {
        DType::F64 => {
            bytes.chunks_exact(8).map(|part| f64::from_ne_bytes(part.try_into().unwrap())).collect()
        }
        _ => bytes
            .chunks_exact(4)
            .map(|part| f64::from(f32::from_ne_bytes(part.try_into().unwrap())))
            .collect(),
    };
    match dtype.is_complex() {
        true => parts.chunks_exact(2).map(|parts| Complex64::new(parts[0], parts[1])).collect(),
        false => parts.into_iter().map(Complex64::from).collect(),
    }
}

/// The transform of whole lines along one dimension, by its definition.
fn along(numbers: &[Complex64], sizes: &[i64], dim: usize, sign: f64) -> Vec<Complex64> {
    let inner = sizes[dim + 1..].iter().product::<i64>() as usize;
    let size = sizes[dim] as usize;
    let place = |at: usize, k: usize| at / (size * inner) * size * inner + k * inner + at % inner;
    (0..numbers.len())
        .map(|at| {
            let frequency = at / inner % size;
            let term = |k: usize| {
                let angle = sign * 2.0 * PI * (k * frequency % size) as f64 / size as f64;
                numbers[place(at, k)] * Complex64::from_polar(1.0, angle)
            };
            (0..size).map(term).sum()
        })
        .collect()
}

/// The first half of the last dimension.
fn half(numbers: &[Complex64], last: usize) -> Vec<Complex64> {
    numbers.chunks_exact(last).flat_map(|line| &line[..last / 2 + 1]).copied().collect()
}

impl Case<'_> {
    /// Source and result by definition, of all transforms.
    fn expected(&self) -> (Vec<Complex64>, Vec<Complex64>) {
        let each = self.sizes.iter().product::<i64>() as usize;
        let last = self.sizes[self.sizes.len() - 1] as usize;
        let number = |at: usize| {
            let part = |mix: usize| ((at * 37 + mix * 11 + at * at / 3) % 19) as f64 / 8.0 - 1.0;
            Complex64::new(
                part(1),
                if self.dtypes[0].is_complex() && self.dtypes[1].is_complex() { part(2) } else { 0.0 },
            )
        };
        let sign = if self.is_inverse { 1.0 } else { -1.0 };
        let transformed = |numbers: &[Complex64], sign: f64| {
            (0..self.sizes.len())
                .fold(numbers.to_vec(), |numbers, dim| along(&numbers, self.sizes, dim, sign))
        };
        let (mut from, mut to) = (Vec::new(), Vec::new());
        for transform in 0..self.count as usize {
            let numbers: Vec<Complex64> = (0..each).map(|at| number(transform * each + at)).collect();
            match self.dtypes.map(DType::is_complex) {
                [true, true] => {
                    to.extend(transformed(&numbers, sign));
                    from.extend(numbers);
                }
                [false, _] => {
                    to.extend(half(&transformed(&numbers, sign), last));
                    from.extend(numbers);
                }
                // Frequencies of real numbers, whose inverse is those times their number.
                _ => {
                    from.extend(half(&transformed(&numbers, -1.0), last));
                    to.extend(numbers.iter().map(|number| number * each as f64));
                }
            }
        }
        (from, to)
    }

    /// The result; `None` if it is left.
    fn run(&self) -> Result<Option<Vec<Complex64>>> {
        let (from, to) = self.expected();
        let source = upload(DEVICE, &encoded(&from, self.dtypes[0]));
        let bytes = encoded(&to, self.dtypes[1]).len();
        let target = upload(DEVICE, &vec![0; bytes.max(1)]);
        let transform = LibraryTransform {
            from: source.start(),
            to: target.start(),
            dtypes: self.dtypes,
            sizes: self.sizes,
            count: self.count,
            is_inverse: self.is_inverse,
        };
        let work = Work::on(DEVICE)?;
        // SAFETY: both are on the device, and kept until their last use.
        let computed = unsafe { work.runtime().transform(work.queue(), &transform)? };
        source.note_use(&work)?;
        target.note_use(&work)?;
        let found = decoded(&download(&target, bytes)?, self.dtypes[1]);
        Ok(computed.then_some(found))
    }

    #[track_caller]
    fn check(&self) {
        let found = self.run().unwrap().unwrap_or_else(|| panic!("{self:?} is left"));
        let (_, expected) = self.expected();
        let unit =
            if self.dtypes[1].to_real() == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
        let largest = expected.iter().fold(1.0, |most: f64, number| most.max(number.norm()));
        assert_eq!(found.len(), expected.len());
        for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let near = (found - expected).norm() <= 20.0 * unit * largest;
            assert!(near, "{self:?}, number {at}: {found}, not {expected}");
        }
    }
}

fn transforms() {
    use DType::{C64, C128, F32, F64};
    let sizes: [&[i64]; 9] = [&[1], &[2], &[12], &[13], &[4, 6], &[5, 1], &[3, 7], &[2, 3, 4], &[3, 2, 5]];
    for [real, complex] in [[F32, C64], [F64, C128]] {
        for sizes in sizes {
            for count in [1, 3] {
                for is_inverse in [false, true] {
                    Case { dtypes: [complex, complex], sizes, count, is_inverse }.check();
                }
                Case { dtypes: [real, complex], sizes, count, is_inverse: false }.check();
                Case { dtypes: [complex, real], sizes, count, is_inverse: true }.check();
            }
        }
    }
    let report = &libraries().unwrap()[1];
    assert_eq!((report.name, report.computed, report.left), ("cufft", 144, 0));
    assert!(
        matches!(&report.state, LibraryState::Found { path, version } if path.is_file() && version == "12.0.0"),
        "{report:?}"
    );
    assert!(Work::on(DEVICE).unwrap().runtime().has_transforms().unwrap());
}

fn transforms_left() {
    let cases = [
        Case { sizes: &[1, 2, 2, 2], ..LINE },
        Case { sizes: &[], ..LINE },
        Case { count: 0, ..LINE },
        Case { dtypes: [DType::F32, DType::C128], ..LINE },
        Case { dtypes: [DType::F32, DType::C64], is_inverse: true, ..LINE },
        Case { dtypes: [DType::BF16, DType::C64], ..LINE },
    ];
    for case in cases {
        let memory = upload(DEVICE, &[0; 4096]);
        let transform = LibraryTransform {
            from: memory.start(),
            to: memory.start(),
            dtypes: case.dtypes,
            sizes: case.sizes,
            count: case.count,
            is_inverse: case.is_inverse,
        };
        let work = Work::on(DEVICE).unwrap();
        // SAFETY: there is memory for all of these numbers, of which none is read.
        assert!(!unsafe { work.runtime().transform(work.queue(), &transform).unwrap() }, "{case:?}");
    }
    assert_eq!(libraries().unwrap()[1].left, cases.len() as u64);
}

fn transforms_missing() {
    assert!(LINE.run().unwrap().is_none());
    assert!(!Work::on(DEVICE).unwrap().runtime().has_transforms().unwrap());
    let state = &libraries().unwrap()[1].state;
    assert!(matches!(state, LibraryState::Missing { .. } | LibraryState::Off), "{state:?}");
}

fn transforms_old() {
    assert!(LINE.run().unwrap().is_none());
    let state = &libraries().unwrap()[1].state;
    let LibraryState::Missing { places } = state else { panic!("{state:?}") };
    let reason = "it is of CUDA 14, newer than the driver, which is of CUDA 13";
    assert!(places.iter().any(|place| place.contains(reason)), "{places:?}");
}

fn transforms_refused() {
    says(
        LINE.run(),
        &["cuFFT cannot transform numbers: CUFFT_EXEC_FAILED (status 6)", "OPSMITH_CUDA_LIBRARIES=off"],
    );
}

fn transforms_demanded() {
    says(LINE.run(), &["demands cufft, and no cuFFT was found", "pip install nvidia-cufft", "OPSMITH_CUFFT"]);
}

/// A plan has one stream and one working memory at a time.
fn transforms_by_threads() {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..20).for_each(|_| LINE.check()));
        }
    });
}
