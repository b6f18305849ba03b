//! Products by cuBLASLt: every dtype, layout, factor and addend, bit for bit, and those that are left to kernels of our own.
//!
//! Numbers are multiples of an eighth from -1 to 1, so that all sums are exact, and results differ by nothing from sums in
//! double precision, rounded once. Gaps between the elements of an operand hold not-a-number.

use opsmith_runtime::backend::{Activation, DeviceMemory, Elements, LibraryProduct, Work};
use opsmith_runtime::{DType, Scalar};

use crate::common::{DEVICE, Part, STAND_INS, done, download, start, upload};
use crate::product_cases::{Case, Order, PLAIN, indices};

/// The parts of this file.
pub const PARTS: &[Part] = &[
    ("product_layouts", product_layouts),
    ("addends", addends),
    ("activations", activations),
    ("one_activation", one_activation),
    ("left", left),
    ("tf32", tf32),
    ("many_threads", many_threads),
];

#[test]
fn products_of_every_dtype_and_layout() {
    let text = done("product_layouts", &[("STANDIN_CUBLASLT_LOG", "1")]);
    for line in [
        "type=0 compute=68",
        "type=1 compute=70",
        "type=2 compute=68",
        "type=14 compute=68",
        "type=4 compute=68",
    ] {
        assert!(text.contains(line), "no product has {line}: {text}");
    }
    // Sums in parts have working memory.
    assert!(text.contains("k=40 ") && text.contains("workspace=1024"), "{text}");
    for transposed in ["ops=00", "ops=01", "ops=10", "ops=11"] {
        assert!(text.contains(transposed), "no product has {transposed}");
    }
    done("product_layouts", &[("OPSMITH_CUDA_SYNC", "1")]);
}

#[test]
fn addends_are_biases_matrices_or_copies() {
    let text = done("addends", &[("STANDIN_CUBLASLT_LOG", "1")]);
    assert!(text.contains("epilogue=4"), "{text}");
    // Without an epilogue of the library the bias is copied to the result first.
    let text = done("addends", &[("STANDIN_CUBLASLT_LOG", "1"), ("STANDIN_CUBLASLT_NONE", "epilogue")]);
    assert!(text.contains("epilogue=1") && !text.contains("epilogue=4"), "{text}");
}

#[test]
fn activations_are_steps_of_the_library() {
    let text = done("activations", &[("STANDIN_CUBLASLT_LOG", "1")]);
    for epilogue in ["epilogue=2 ", "epilogue=6 ", "epilogue=32 ", "epilogue=36 "] {
        assert!(text.contains(epilogue), "{epilogue}: {text}");
    }
    done("one_activation", &[("STANDIN_CUBLASLT_NONE", "epilogue")]);
}

#[test]
fn other_products_are_left() {
    done("left", &[]);
}

#[test]
fn factors_are_rounded_if_the_program_allows_it() {
    done("tf32", &[]);
    done("tf32", &[("OPSMITH_CUDA_TF32", "1")]);
}

#[test]
fn threads_share_plans() {
    done("many_threads", &[]);
}

#[test]
fn failures_have_the_librarys_text() {
    for (variables, texts) in [
        (
            ("STANDIN_CUBLASLT_START", "1"),
            [
                "cuBLASLt cannot start on device 0: CUBLAS_STATUS_NOT_INITIALIZED",
                "OPSMITH_CUDA_LIBRARIES=off",
            ],
        ),
        (
            ("STANDIN_CUBLASLT_FAIL", "13"),
            [
                "cannot multiply matrices: CUBLAS_STATUS_EXECUTION_FAILED (the stand-in was told to fail)",
                "=off",
            ],
        ),
    ] {
        let output = start("product_layouts", &STAND_INS, &[variables]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{variables:?}");
        for text in texts {
            assert!(errors.contains(text), "no `{text}` in: {errors}");
        }
    }
}

const DTYPES: [DType; 6] = [DType::F32, DType::F64, DType::F16, DType::BF16, DType::C64, DType::C128];

fn product_layouts() {
    use Order::{Columns, GappedColumns, GappedRows, Rows, Shared};
    for dtype in DTYPES {
        for left in [Rows, Columns, GappedRows, GappedColumns] {
            for right in [Rows, Columns, GappedRows, GappedColumns] {
                for out in [Rows, Columns, GappedRows, GappedColumns] {
                    Case { dtype, sizes: [1, 5, 4, 6], orders: [left, right, out], ..PLAIN }.check();
                }
            }
            Case { dtype, sizes: [3, 5, 4, 40], orders: [left, Shared, Rows], ..PLAIN }.check();
            Case { dtype, sizes: [3, 2, 7, 3], orders: [Shared, left, Columns], scale: -1.5, ..PLAIN }
                .check();
            Case { dtype, sizes: [2, 4, 3, 2], orders: [left, GappedRows, GappedRows], ..PLAIN }.check();
        }
        // A vector on either side, and one number.
        for sizes in [[1, 1, 9, 6], [1, 9, 1, 6], [1, 1, 1, 50], [1, 9, 8, 1], [4, 1, 1, 1]] {
            for order in [Rows, Columns, GappedRows, GappedColumns] {
                Case { dtype, sizes, orders: [order, Rows, order], ..PLAIN }.check();
            }
        }
        Case { dtype, sizes: [1, 9, 1, 6], orders: [Rows, Order::Sparse, Rows], ..PLAIN }.check();
    }
    let report = &opsmith_cuda::libraries().unwrap()[0];
    assert!(report.computed > 500 && report.left == 0, "{report:?}");
    assert!(
        matches!(&report.state, opsmith_cuda::LibraryState::Found { path, version }
        if path.ends_with("libcublasLt.so.13") | path.ends_with("libcublasLt.so") && version == "13.1.0"),
        "{report:?}"
    );
}

fn addends() {
    use Order::{Columns, GappedColumns, GappedRows, OneColumn, OneNumber, OneRow, Rows, Shared, Sparse};
    for dtype in DTYPES {
        for out in [Rows, GappedColumns] {
            for added in
                [Rows, Columns, GappedRows, GappedColumns, OneRow, OneColumn, OneNumber, Shared, Sparse]
            {
                for factor in [1.0, -0.75] {
                    for (sizes, scale) in [([1, 5, 4, 6], 1.0), ([3, 5, 4, 6], 0.5), ([1, 6, 1, 5], 1.0)] {
                        let orders = [Rows, Rows, out];
                        Case { dtype, sizes, orders, scale, added: Some((added, factor)), ..PLAIN }.check();
                    }
                }
            }
        }
    }
}

fn activations() {
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        for added in
            [None, Some((Order::OneRow, 1.0)), Some((Order::Rows, 1.0)), Some((Order::OneNumber, 0.5))]
        {
            Case { dtype, added, activation: Some(Activation::Relu), ..PLAIN }.check();
        }
    }
    for added in [None, Some((Order::OneRow, 1.0))] {
        let case = Case { added, activation: Some(Activation::TanhGelu), ..PLAIN };
        let [_, found] = case.run().unwrap().unwrap();
        let ([left, right, out], addend) = case.operands();
        for at in indices(out.sizes) {
            let expected = case.expected(addend.as_ref(), &left, &right, at).re;
            let bytes = &found[out.place(at) * 4..][..4];
            let found = f64::from(f32::from_ne_bytes(bytes.try_into().unwrap()));
            assert!(
                (found - expected).abs() <= 4e-7 * (1.0 + expected.abs()),
                "{at:?}: {found}, not {expected}"
            );
        }
    }
}

/// Where the library has no epilogue, an activation is left to others.
fn one_activation() {
    for added in [None, Some((Order::OneRow, 1.0))] {
        let case = Case { added, activation: Some(Activation::Relu), ..PLAIN };
        assert!(case.run().unwrap().is_none());
    }
    PLAIN.check();
}

fn left() {
    let cases = [
        Case { dtype: DType::I32, ..PLAIN },
        Case { dtype: DType::U8, ..PLAIN },
        // No numbers, and no addends.
        Case { sizes: [1, 0, 4, 6], ..PLAIN },
        Case { sizes: [1, 5, 0, 6], ..PLAIN },
        Case { sizes: [0, 5, 4, 6], ..PLAIN },
        Case { sizes: [1, 5, 4, 0], added: Some((Order::Rows, 1.0)), ..PLAIN },
        // The library does not look at infinite elements then.
        Case { scale: 0.0, ..PLAIN },
        Case { scale: -0.0, ..PLAIN },
        // Neither rows nor columns are contiguous.
        Case { orders: [Order::Sparse, Order::Rows, Order::Rows], ..PLAIN },
        Case { orders: [Order::Rows, Order::Sparse, Order::Rows], ..PLAIN },
        Case { orders: [Order::Rows, Order::Rows, Order::Sparse], ..PLAIN },
        // An epilogue of complex numbers.
        Case { dtype: DType::I64, added: Some((Order::OneRow, 1.0)), ..PLAIN },
    ];
    for case in cases {
        assert!(case.run().unwrap().is_none(), "{case:?}");
    }
    let report = &opsmith_cuda::libraries().unwrap()[0];
    assert_eq!((report.computed, report.left), (0, cases.len() as u64));
}

/// One factor has more than ten bits of a fraction.
fn tf32() {
    let long = 1.0 + f32::EPSILON;
    let [left, right] = [long, 1.0f32].map(|number| upload(DEVICE, &number.to_ne_bytes()));
    let out = upload(DEVICE, &[0; 4]);
    let elements = |memory: &DeviceMemory| {
        let start = memory.start();
        Elements { start, dtype: DType::F32, sizes: &[1, 1, 1], strides: &[1, 1, 1] }
    };
    let product = LibraryProduct {
        left: elements(&left),
        right: elements(&right),
        out: elements(&out),
        scale: Scalar::Int(1),
        added: None,
        activation: None,
    };
    let found = || {
        let work = Work::on(DEVICE).unwrap();
        // SAFETY: operands are on the device, and kept until their last use.
        assert!(unsafe { work.runtime().product(work.queue(), &product).unwrap() });
        for memory in [&left, &right, &out] {
            memory.note_use(&work).unwrap();
        }
        f32::from_ne_bytes(download(&out, 4).unwrap().try_into().unwrap())
    };
    let allowed = std::env::var("OPSMITH_CUDA_TF32").is_ok();
    assert_eq!(opsmith_cuda::allows_tf32(), allowed);
    assert_eq!(found(), if allowed { 1.0 } else { long });
    opsmith_cuda::set_allow_tf32(!allowed);
    assert_eq!(found(), if allowed { long } else { 1.0 });
}

/// A bias is a part of the library's description, which threads share; and working memory of one stream serves no other.
fn many_threads() {
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for round in 0..20 {
                    let added = Some((Order::OneRow, 1.0));
                    let inner = 40 + (thread + round) % 2;
                    Case { sizes: [1, 8, 8, inner], added, ..PLAIN }.check();
                }
            });
        }
    });
}
