//! The C interface: the headers match the Rust structs, and kernels in C++ run through them.

mod support;

use std::ffi::{c_int, c_void};
use std::fmt::Write as _;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use libloading::Library;
use opsmith_runtime::generated::foreign::{
    self, ForeignDevice, ForeignGenerator, ForeignScalar, ForeignTensor, KernelContext, List, ListOfLists,
    RawContext,
};
use opsmith_runtime::random::{Generator, Integers, Normal, Stream, Uniform};
use opsmith_runtime::{
    Backend, Complex64, DType, Device, ErrorKind, MemoryFormat, Scalar, Tensor, bf16, f16, parallel,
};
use support::{strided, temporary_folder};

const INCLUDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels/include");
const KERNELS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/foreign/kernels.cpp");

/// Runs a compiler and prints its output if it fails.
fn compile(compiler: &str, arguments: &[&str], source: &Path) {
    let output = Command::new(compiler)
        .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", INCLUDE])
        .args(arguments)
        .arg(source)
        .output()
        .unwrap_or_else(|error| panic!("cannot run the compiler `{compiler}`: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn compiler(variable: &str, default: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| default.to_owned())
}

macro_rules! assert_fields {
    ($text:ident, $c:literal, $rust:ty, { $($field:ident = $c_field:literal),* }) => {
        write!($text, "ASSERT(sizeof({}) == {});\n", $c, size_of::<$rust>()).unwrap();
        write!($text, "ASSERT(ALIGNOF({}) == {});\n", $c, align_of::<$rust>()).unwrap();
        $(write!($text, "ASSERT(offsetof({}, {}) == {});\n", $c, $c_field, offset_of!($rust, $field)).unwrap();)*
    };
}

/// Static assertions, in C and C++, that every constant and every struct is as in Rust.
fn assertions() -> String {
    let mut text = String::from(
        "#include \"opsmith/kernel.h\"\n#include \"opsmith/random.h\"\n\
         #ifdef __cplusplus\n#define ASSERT(fact) static_assert(fact, #fact)\n#define ALIGNOF alignof\n\
         #else\n#define ASSERT(fact) _Static_assert(fact, #fact)\n#define ALIGNOF _Alignof\n#endif\n",
    );
    let mut equal = |name: &str, value: usize| writeln!(text, "ASSERT({name} == {value});").unwrap();
    for dtype in DType::ALL {
        equal(&format!("OPSMITH_{}", dtype.name().to_uppercase()), dtype.index());
    }
    equal("OPSMITH_DTYPE_COUNT", DType::COUNT);
    for backend in Backend::ALL {
        equal(&format!("OPSMITH_{}", backend.key()), backend.index());
    }
    equal("OPSMITH_DEVICE_TYPE_COUNT", Backend::COUNT);
    equal("OPSMITH_CONTIGUOUS", MemoryFormat::Contiguous as usize);
    equal("OPSMITH_PRESERVE", MemoryFormat::Preserve as usize);
    equal("OPSMITH_CHANNELS_LAST", MemoryFormat::ChannelsLast as usize);
    equal("OPSMITH_CHANNELS_LAST_3D", MemoryFormat::ChannelsLast3d as usize);
    for (name, scalar) in [
        ("BOOL", Scalar::Bool(true)),
        ("INT", Scalar::Int(1)),
        ("FLOAT", Scalar::Float(1.0)),
        ("COMPLEX", Scalar::Complex(Complex64::new(1.0, 1.0))),
    ] {
        equal(&format!("OPSMITH_SCALAR_{name}"), ForeignScalar::from(scalar).kind as usize);
    }
    equal("OPSMITH_ABI_VERSION", foreign::ABI_VERSION as usize);
    equal("OPSMITH_MESSAGE_SIZE", foreign::MESSAGE_SIZE);
    equal("sizeof(OpsmithContext)", size_of::<RawContext>());
    equal("sizeof(OpsmithGenerator)", size_of::<ForeignGenerator>());
    assert_fields!(text, "OpsmithTensor", ForeignTensor, {
        data = "data", sizes = "sizes", strides = "strides", ndim = "ndim", dtype = "dtype",
        device_type = "device_type", device_index = "device_index"
    });
    assert_fields!(text, "OpsmithScalar", ForeignScalar, {
        kind = "kind", reserved = "reserved", integer = "integer", real = "real", imag = "imag"
    });
    assert_fields!(text, "OpsmithDevice", ForeignDevice, { device_type = "type", index = "index" });
    assert_fields!(text, "OpsmithStream", Stream, { seed = "seed", offset = "offset" });
    assert_fields!(text, "OpsmithInts", List<i64>, { data = "data", length = "length" });
    assert_fields!(text, "OpsmithFloats", List<f64>, { data = "data", length = "length" });
    assert_fields!(text, "OpsmithBools", List<bool>, { data = "data", length = "length" });
    assert_fields!(text, "OpsmithScalars", List<ForeignScalar>, { data = "data", length = "length" });
    assert_fields!(text, "OpsmithTensors", List<ForeignTensor>, { data = "data", length = "length" });
    assert_fields!(text, "OpsmithOptionalTensors", List<*const ForeignTensor>, { data = "data", length = "length" });
    assert_fields!(text, "OpsmithStrings", List<List<u8>>, { data = "data", length = "length" });
    assert_fields!(text, "OpsmithDTypes", List<i32>, { data = "data", length = "length" });
    assert_fields!(text, "OpsmithIntLists", ListOfLists<i64>, { data = "data", ends = "ends", length = "length" });
    assert_fields!(text, "OpsmithFloatLists", ListOfLists<f64>, { data = "data", ends = "ends", length = "length" });
    assert_fields!(text, "OpsmithBoolLists", ListOfLists<bool>, { data = "data", ends = "ends", length = "length" });
    assert_fields!(text, "OpsmithScalarLists", ListOfLists<ForeignScalar>, { data = "data", ends = "ends", length = "length" });
    assert_fields!(text, "OpsmithStringLists", ListOfLists<List<u8>>, { data = "data", ends = "ends", length = "length" });
    assert_fields!(text, "OpsmithDTypeLists", ListOfLists<i32>, { data = "data", ends = "ends", length = "length" });
    assert_fields!(text, "OpsmithString", List<u8>, { data = "data", length = "length" });
    text
}

#[test]
fn the_headers_agree_with_rust() {
    let source = temporary_folder("foreign_layout").join("layout.c");
    std::fs::write(&source, assertions()).unwrap();
    compile(&compiler("CC", "cc"), &["-std=c11", "-fsyntax-only", "-x", "c"], &source);
    compile(&compiler("CXX", "c++"), &["-std=c++17", "-fsyntax-only", "-x", "c++"], &source);
}

static LIBRARY: LazyLock<Library> = LazyLock::new(|| {
    let object: PathBuf = temporary_folder("foreign_kernels").join("kernels.so");
    let object_text = object.to_str().expect("a readable path");
    compile(
        &compiler("CXX", "c++"),
        &["-std=c++17", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-o", object_text],
        Path::new(KERNELS),
    );
    // SAFETY: the library was just built from this repository and has no initialisers.
    unsafe { Library::new(object) }.expect("the library was just built")
});

/// The function of that name; the caller provides the type that `kernels.cpp` declares.
fn function<F: Copy>(name: &str) -> F {
    // SAFETY: the caller provides the right type.
    unsafe { *LIBRARY.get::<F>(name).expect("kernels.cpp defines it") }
}

fn context(function: &'static str) -> KernelContext {
    KernelContext::new(function, "tests/foreign/kernels.cpp", Device::CPU)
}

type Scale =
    unsafe extern "C" fn(*mut RawContext, *const ForeignTensor, ForeignScalar, *mut ForeignTensor) -> c_int;

fn scale(tensor: &Tensor, factor: impl Into<Scalar>, out: &Tensor) -> Result<(), String> {
    let mut context = context("test_scale");
    let (input, mut output) = (ForeignTensor::of(tensor), ForeignTensor::of(out));
    // SAFETY: `test_scale` has this type; no other code uses the output.
    let status = unsafe {
        function::<Scale>("test_scale")(context.as_raw(), &input, factor.into().into(), &mut output)
    };
    context.check(status).map_err(|error| error.to_string())
}

#[test]
fn a_kernel_walks_strided_and_broadcast_tensors() {
    // Rows backwards, columns apart; the output transposed.
    let input =
        strided(&[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0], &[3, 2], &[-4, 2], 8);
    let out = strided(&[0.0f32; 6], &[3, 2], &[1, 3], 0);
    scale(&input, 10.0, &out).unwrap();
    assert_eq!(out.to_vec::<f32>().unwrap(), [80.0, 100.0, 40.0, 60.0, 0.0, 20.0]);

    let column = Tensor::from_slice(&[1i32, 2], &[2, 1]).unwrap();
    let out = Tensor::from_slice(&[0i32; 6], &[2, 3]).unwrap();
    scale(&column, 3, &out).unwrap();
    assert_eq!(out.to_vec::<i32>().unwrap(), [3, 3, 3, 6, 6, 6]);

    let out = Tensor::scalar(0, DType::F64);
    scale(&Tensor::scalar(4, DType::F64), 2.5, &out).unwrap();
    assert_eq!(out.to_vec::<f64>().unwrap(), [10.0]);

    let out = Tensor::from_slice(&[0.0f32; 0], &[2, 0]).unwrap();
    scale(&out, 2.5, &out).unwrap();
}

#[test]
fn every_dtype_reaches_its_kernel() {
    for dtype in opsmith_runtime::DTypeSet::ALL.iter() {
        let out = Tensor::scalar(0, dtype);
        scale(&Tensor::scalar(3, dtype), 2, &out).unwrap();
        let expected = if dtype == DType::Bool { 1.0 } else { 6.0 };
        assert_eq!(out.item().unwrap().to_f64(), expected, "{dtype}");
    }
    let value = Complex64::new(0.0, 2.0);
    let out = Tensor::scalar(0, DType::C128);
    scale(&Tensor::scalar(value, DType::C128), value, &out).unwrap();
    assert_eq!(out.to_vec::<Complex64>().unwrap(), [Complex64::new(-4.0, 0.0)]);
}

#[test]
fn a_wrong_dtype_is_an_error() {
    assert_eq!(
        scale(&Tensor::of(&[1.0f32]), 1.0, &Tensor::of(&[0.0f64])).unwrap_err(),
        "the kernel `test_scale` (tests/foreign/kernels.cpp) failed: expected a tensor of float64, got one of float32"
    );
}

#[test]
fn optional_attributes_are_null_when_absent() {
    type Axpy = unsafe extern "C" fn(
        *mut RawContext,
        *const f64,
        *const ForeignTensor,
        *const ForeignTensor,
        *mut ForeignTensor,
    ) -> c_int;
    let (x, y) = (Tensor::of(&[f16::from_f32(1.5)]), Tensor::of(&[f16::from_f32(0.25); 3]));
    for (alpha, expected) in [(None, 1.75), (Some(4.0), 6.25)] {
        let out = Tensor::of(&[f16::ZERO; 3]);
        let mut context = context("test_axpy");
        let (left, right, mut result) =
            (ForeignTensor::of(&x), ForeignTensor::of(&y), ForeignTensor::of(&out));
        // SAFETY: `test_axpy` has this type; no other code uses the output.
        let status = unsafe {
            function::<Axpy>("test_axpy")(
                context.as_raw(),
                foreign::address_or_null(&alpha),
                &left,
                &right,
                &mut result,
            )
        };
        context.check(status).unwrap();
        assert_eq!(out.to_vec::<f16>().unwrap(), [f16::from_f32(expected); 3]);
    }
}

/// Ranges in several threads, and the exception of the first that has one, however they ran.
#[test]
fn loops_of_foreign_kernels_use_several_threads() {
    type Squares = unsafe extern "C" fn(*mut RawContext, i64, *mut ForeignTensor) -> c_int;
    let call = |threads: usize, count: i64, failing: i64| {
        parallel::set_num_threads(threads).unwrap();
        let out = Tensor::from_slice(&vec![-1.0; count as usize], &[count]).unwrap();
        let mut context = context("test_squares");
        let mut result = ForeignTensor::of(&out);
        // SAFETY: `test_squares` has this type; no other code uses the output.
        let status = unsafe {
            function::<Squares>("test_squares")(context.as_raw(), failing, std::ptr::from_mut(&mut result))
        };
        context.check(status).map(|()| out.to_vec::<f64>().unwrap())
    };
    for threads in [1, 2, 5] {
        for count in [0, 1, 999, 1000, 1001, 200_001] {
            let squares = call(threads, count, count).unwrap();
            let expected = (0..count).map(|number| (number * number) as f64);
            assert!(squares.into_iter().eq(expected), "{count} numbers in {threads} threads");
        }
        let error = call(threads, 200_001, 5500).unwrap_err().to_string();
        assert!(error.contains("number 5500 is too large"), "{error}");
    }
    parallel::set_num_threads(2).unwrap();
}

#[test]
fn lists_texts_and_scratch_memory_arrive() {
    type Total = unsafe extern "C" fn(
        *mut RawContext,
        List<ForeignTensor>,
        List<*const ForeignTensor>,
        List<i64>,
        List<u8>,
        *mut ForeignTensor,
    ) -> c_int;
    let call = |name: &str| {
        let (tensors, more) =
            ([Tensor::of(&[1.0, 2.0]), Tensor::of(&[4.0])], [None, Some(Tensor::of(&[8.0]))]);
        let out = Tensor::scalar(0, DType::F64);
        let mut context = context("test_total");
        let tensors = ForeignTensor::of_each(&tensors);
        let more = ForeignTensor::of_each_present(&more);
        let more = foreign::addresses_or_null(&more);
        let mut result = ForeignTensor::of(&out);
        // SAFETY: `test_total` has this type; no other code uses the output.
        let status = unsafe {
            function::<Total>("test_total")(
                context.as_raw(),
                List::of(&tensors),
                List::of(&more),
                List::of(&[16, 32]),
                List::from(name),
                &mut result,
            )
        };
        context.check(status).map(|()| out.item().unwrap().to_f64()).map_err(|error| error.to_string())
    };
    assert_eq!(call("sum"), Ok(63.0));
    assert_eq!(
        call("Größe").unwrap_err(),
        "the kernel `test_total` (tests/foreign/kernels.cpp) failed: the name is Größe"
    );
}

/// Fails in the given way; the whole message.
fn failure(how: i64) -> String {
    type Fail = unsafe extern "C" fn(*mut RawContext, i64) -> c_int;
    let mut context = context("test_fail");
    // SAFETY: `test_fail` has this type.
    let status = unsafe { function::<Fail>("test_fail")(context.as_raw(), how) };
    match context.check(status) {
        Ok(()) => "no failure".to_owned(),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Kernel);
            error.to_string()
        }
    }
}

#[test]
fn failures_become_errors_with_the_kernels_words() {
    let check = |how: i64, expected: &str| {
        let expected = format!("the kernel `test_fail` (tests/foreign/kernels.cpp) failed: {expected}");
        assert_eq!(failure(how), expected);
    };
    check(0, "dim -3 is negative");
    check(
        1,
        "it returned the status 7 without a message\n  help: let the kernel return `opsmith_fail(context, code, \"why\")`",
    );
    check(2, &format!("{} (status 9)", "x".repeat(foreign::MESSAGE_SIZE - 1)));
    check(3, "the sizes differ (status 4)");
    check(4, "index 9");
    check(5, "an exception that is not a std::exception");
    check(6, "out of memory");
    check(7, "there is no kernel for int32");
    assert_eq!(failure(8), "no failure");
}

#[test]
fn random_numbers_are_those_of_rust() {
    type Random = unsafe extern "C" fn(
        *mut RawContext,
        *const ForeignGenerator,
        *mut ForeignTensor,
        *mut ForeignTensor,
        *mut ForeignTensor,
        *mut ForeignTensor,
    ) -> c_int;
    const COUNT: usize = 10_001;
    let generator = Generator::new(0x0123_4567_89ab_cdef);
    let mut uniform = vec![0.0f32; COUNT];
    let mut normal = vec![0.0f32; COUNT];
    let mut wide = vec![0.0f64; COUNT];
    let mut integers = vec![0i64; COUNT];
    generator.fill(&Uniform::<f32>::new(), &mut uniform);
    generator.fill(&Normal::<f32>::new(), &mut normal);
    generator.fill(&Uniform::<f64>::new(), &mut wide);
    let range = Integers::new(-4_611_686_018_427_387_904, 4_611_686_018_427_387_909).unwrap();
    generator.fill(&range, &mut integers);
    let end = generator.state();

    generator.manual_seed(generator.seed());
    let outs = [
        Tensor::of(&vec![0.0f32; COUNT]),
        Tensor::of(&vec![0.0f32; COUNT]),
        Tensor::of(&vec![0.0f64; COUNT]),
        Tensor::of(&vec![0i64; COUNT]),
    ];
    let mut context = context("test_random");
    let foreign = ForeignGenerator::of(Some(&generator));
    let [mut a, mut b, mut c, mut d] = outs.each_ref().map(ForeignTensor::of);
    // SAFETY: `test_random` has this type; no other code uses the outputs.
    let status = unsafe {
        function::<Random>("test_random")(context.as_raw(), &foreign, &mut a, &mut b, &mut c, &mut d)
    };
    context.check(status).unwrap();
    assert_eq!(outs[0].to_vec::<f32>().unwrap(), uniform);
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&outs[1].to_vec::<f32>().unwrap()), bits(&normal));
    assert_eq!(outs[2].to_vec::<f64>().unwrap(), wide);
    assert_eq!(outs[3].to_vec::<i64>().unwrap(), integers);
    assert_eq!(generator.state(), end);
}

#[test]
fn sixteen_bit_floats_convert_as_in_rust() {
    let half_to_float: extern "C" fn(u16) -> f32 = function("test_half_to_float");
    let bfloat_to_float: extern "C" fn(u16) -> f32 = function("test_bfloat_to_float");
    let half_from_float: extern "C" fn(f32) -> u16 = function("test_half_from_float");
    let bfloat_from_float: extern "C" fn(f32) -> u16 = function("test_bfloat_from_float");
    for bits in 0..=u16::MAX {
        assert_eq!(half_to_float(bits).to_bits(), f16::from_bits(bits).to_f32().to_bits(), "f16 {bits:#06x}");
        let expected = bf16::from_bits(bits).to_f32();
        // Rust's conversion makes signalling NaNs quiet; C++ keeps the bits.
        if !expected.is_nan() {
            assert_eq!(bfloat_to_float(bits).to_bits(), expected.to_bits(), "bf16 {bits:#06x}");
        }
    }
    // Every exponent and sign with mantissas around the ties of both formats.
    for upper in 0..=u16::MAX {
        for lower in [0, 1, 0x0fff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0xffff] {
            let value = f32::from_bits(u32::from(upper) << 16 | lower);
            assert_eq!(half_from_float(value), f16::from_f32(value).to_bits(), "{value:?}");
            assert_eq!(bfloat_from_float(value), bf16::from_f32(value).to_bits(), "{value:?}");
        }
    }
}

#[test]
fn a_stream_reaches_the_kernel() {
    let mut stream = 0u8;
    let address: *mut c_void = (&raw mut stream).cast();
    let mut context = context("none").with_stream(address);
    // The third field of the C struct, after two 32-bit numbers.
    // SAFETY: the context begins with the C struct, whose layout the header test checks.
    assert_eq!(unsafe { *context.as_raw().cast::<*mut c_void>().add(1) }, address);
}
