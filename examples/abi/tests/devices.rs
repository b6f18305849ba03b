//! The C interface with memory of a device of CUDA, in a stream of the calling program: values, derivatives, order, mistakes. The
//! stand-ins of driver and compiler run the kernels (`tests/cuda`), in processes of their own.

mod device_support;

use std::ffi::c_int;
use std::path::Path;
use std::ptr;
use std::sync::LazyLock;

use device_support::{Array, Driver, Places, api, default, integer, operator, outcome, value};
use opsmith_abi::structures::{self, Operator, Outputs, Stream, Value};
use opsmith_core::abi::DeviceKind;
// The runtime of CUDA's devices, which a library has by the feature `cuda` of `opsmith`.
use opsmith_cuda as _;
use opsmith_runtime::DType;
use opsmith_stand_in::process::{self, Part, StandIns};

const PARTS: &[Part] = &[
    ("runs", runs),
    ("places", places),
    ("derivatives", derivatives),
    ("mistakes", mistakes),
    ("streams", streams),
    ("two", two),
];

/// The process started by the tests below.
#[test]
fn worker() {
    process::work(PARTS);
}

static STAND_INS: LazyLock<StandIns> =
    LazyLock::new(|| StandIns::new(Path::new(env!("CARGO_TARGET_TMPDIR")).join("abi-devices"), "off"));

#[test]
fn calls_run_in_the_callers_stream_and_wait_for_nothing() {
    STAND_INS.done_strictly("runs", &[]);
}

#[test]
fn results_are_copied_handed_over_and_converted_on_the_device() {
    STAND_INS.done_strictly("places", &[]);
}

#[test]
fn derivatives_of_both_modes_and_orders_are_on_the_device() {
    STAND_INS.done_strictly("derivatives", &[]);
}

#[test]
fn mistakes_name_the_device() {
    STAND_INS.done("mistakes", &[]);
}

#[test]
fn streams_that_no_two_libraries_share_are_refused() {
    STAND_INS.done("streams", &[]);
}

#[test]
fn a_call_is_on_the_second_of_two_devices() {
    STAND_INS.done("two", &[("STANDIN_DEVICES", "2")]);
}

/// The program: a driver, and a stream of its own.
struct Program {
    driver: Driver,
    stream: Stream,
}

impl Program {
    fn new() -> Program {
        let driver = Driver::of_device(0);
        let handle = ptr::with_exposed_provenance_mut(driver.stream());
        Program { driver, stream: Stream { device_type: DeviceKind::Cuda as i32, device_id: 0, handle } }
    }

    fn handle(&self) -> usize {
        self.stream.handle.expose_provenance()
    }

    fn sent(&self, numbers: &[f32], sizes: &[i64]) -> Array {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        Array::new(self.driver.sent(&bytes, self.handle()), sizes, DType::F32)
    }

    fn floats(&self, array: &Array) -> Vec<f32> {
        self.driver.wait(self.handle());
        let bytes = self.driver.bytes(array.address, array.size());
        bytes.chunks_exact(4).map(|item| f32::from_ne_bytes(item.try_into().unwrap())).collect()
    }

    /// Runs an operator with an error that has these texts.
    fn refused(&self, stream: Option<&Stream>, op: *const Operator, arguments: &[Value], texts: &[&str]) {
        let mut places = Places::new(&self.driver);
        let error = places.call(stream, |outputs| run(op, arguments, outputs)).unwrap_err();
        assert!(texts.iter().all(|text| error.contains(text)), "{error}");
    }

    /// Runs an operator in the stream.
    fn run(&self, places: &mut Places<'_>, op: &str, arguments: &[Value]) -> Result<(), String> {
        places.call(Some(&self.stream), |outputs| run(operator(op), arguments, outputs))
    }
}

fn run(op: *const Operator, arguments: &[Value], outputs: *const Outputs) -> c_int {
    // SAFETY: the arguments are values of the interface, whose memory is the program's.
    unsafe { (api().run)(op, arguments.as_ptr(), arguments.len() as i64, outputs) }
}

fn close(found: &[f32], expected: &[f32]) {
    let is_close = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * b.abs().max(1.0);
    assert!(
        found.len() == expected.len() && found.iter().zip(expected).all(is_close),
        "{found:?}\n{expected:?}"
    );
}

const X: [f32; 6] = [-1.0, 0.5, 2.0, 0.25, -0.125, 1.5];

fn bell(x: f32) -> f32 {
    (-x * x / 2.0).exp()
}

fn runs() {
    let program = Program::new();
    let x = program.sent(&X, &[2, 3]);
    let described = x.described();
    let mut places = Places::new(&program.driver);
    program.run(&mut places, "gaussian", &[value(&described), default()]).unwrap();
    // Neither the copy to the device nor the kernel was waited for.
    assert!(!program.driver.is_done(program.handle()), "the host waited");
    close(&program.floats(places.only()), &X.map(bell));
    // A row alone, by strides and an offset, and the default stream.
    let strides = [0_i64, 1];
    let sizes = [2_i64, 3];
    let row =
        structures::Tensor { strides: strides.as_ptr(), shape: sizes.as_ptr(), byte_offset: 12, ..described };
    let default_stream = Stream { handle: ptr::null_mut(), ..program.stream };
    let mut places = Places::new(&program.driver);
    let sum = [value(&row), value(&described), integer(2)];
    places.call(Some(&default_stream), |outputs| run(operator("add.Tensor"), &sum, outputs)).unwrap();
    program.driver.wait(0);
    let expected: Vec<f32> = (0..6).map(|at| X[3 + at % 3] + 2.0 * X[at]).collect();
    close(&program.floats(places.only()), &expected);
    // No elements.
    let empty = Array::new(0, &[0, 3], DType::F32);
    let mut places = Places::new(&program.driver);
    program.run(&mut places, "gaussian", &[value(&empty.described()), default()]).unwrap();
    assert_eq!(places.only().sizes, [0, 3]);
    // Truth values.
    let mut places = Places::new(&program.driver);
    program.run(&mut places, "gt.Scalar", &[value(&described), integer(0)]).unwrap();
    program.driver.wait(program.handle());
    assert_eq!(program.driver.bytes(places.only().address, 6), [0, 1, 1, 1, 0, 1]);
}

fn places() {
    let program = Program::new();
    let x = program.sent(&X, &[2, 3]);
    let described = x.described();
    // A composition, whose small result is copied.
    let mut places = Places::new(&program.driver);
    program.run(&mut places, "softmax.int", &[value(&described), integer(1), default()]).unwrap();
    assert!(places.owners.is_empty());
    let found = program.floats(places.only());
    close(&[found[..3].iter().sum(), found[3..].iter().sum()], &[1.0, 1.0]);
    // The memory of a large one is handed over, and used by the receiver in the stream until it is released.
    let large = program.sent(&vec![0.0; 200 * 200], &[200, 200]);
    let mut places = Places::new(&program.driver);
    program.run(&mut places, "softmax.int", &[value(&large.described()), integer(1), default()]).unwrap();
    assert_eq!(places.owners.len(), 1);
    assert!(!program.driver.is_done(program.handle()), "the host waited");
    close(&program.floats(places.only())[..3], &[0.005; 3]);
    let (owner, release) = places.owners[0];
    // SAFETY: the owner is released once.
    unsafe { release(ptr::with_exposed_provenance_mut(owner)) };
    // Two results; integers of 64 bits are narrowed on the device.
    let mut places = Places::new(&program.driver);
    program.run(&mut places, "sort", &[value(&described), integer(1), default()]).unwrap();
    let [(0, values), (1, indices)] = &places.results[..] else { panic!("{:?}", places.results) };
    assert_eq!(indices.dtype, DType::I64);
    let narrow = Array::new(program.driver.memory(24), &[2, 3], DType::I32);
    let (target, source) = (narrow.described(), indices.described());
    // SAFETY: both are arrays of the program.
    let code = unsafe { (api().convert)(&raw const target, &raw const source, &raw const program.stream) };
    outcome(code).unwrap();
    assert!(!program.driver.is_done(program.handle()), "the host waited");
    close(&program.floats(values), &[-1.0, 0.5, 2.0, -0.125, 0.25, 1.5]);
    let bytes = program.driver.bytes(narrow.address, 24);
    let numbers = bytes.chunks_exact(4).map(|item| i32::from_ne_bytes(item.try_into().unwrap()));
    assert_eq!(numbers.collect::<Vec<_>>(), [0, 1, 2, 1, 0, 2]);
    // A place that is not apart from an argument, or not aligned.
    let mut places = Places::new(&program.driver);
    places.given = Some(x.address + 8);
    let error = program.run(&mut places, "gaussian", &[value(&described), default()]).unwrap_err();
    assert!(error.starts_with("Aliasing: ") && error.contains("that of another tensor"), "{error}");
    places.given = Some(program.driver.memory(64) + 1);
    let error = program.run(&mut places, "gaussian", &[value(&described), default()]).unwrap_err();
    assert!(error.contains("not aligned"), "{error}");
}

fn derivatives() {
    let program = Program::new();
    let (x, ones) = (program.sent(&X, &[6]), program.sent(&[1.0; 6], &[6]));
    let (described, gradient) = (x.described(), ones.described());
    let (arguments, op) = ([value(&described), default()], operator("gaussian"));
    let mut places = Places::new(&program.driver);
    program.run(&mut places, "gaussian", &arguments).unwrap();
    let result = places.only().described();
    let (results, ones) = ([&raw const result], [&raw const gradient]);
    let (given, count, wanted) = (arguments.as_ptr(), 2, [1_u8]);
    let slope: Vec<f32> = X.iter().map(|x| -x * bell(*x)).collect();
    let bend: Vec<f32> = X.iter().map(|x| (x * x - 1.0) * bell(*x)).collect();
    let check = |call: &dyn Fn(*const Outputs) -> c_int, index: i64, expected: &[f32]| {
        let mut places = Places::new(&program.driver);
        places.call(Some(&program.stream), call).unwrap();
        assert!(!program.driver.is_done(program.handle()), "the host waited");
        assert_eq!(places.results[0].0, index);
        close(&program.floats(places.only()), expected);
    };
    let (ones, of_call, none) = (ones.as_ptr(), results.as_ptr(), [ptr::null()]);
    let wanted = wanted.as_ptr();
    // SAFETY: the lists are as long as the counts say, of arrays of the program.
    let pull = |results, gradients, outputs| unsafe {
        (api().gradient)(op, given, count, results, gradients, 1, wanted, 1, outputs)
    };
    check(&|outputs| pull(of_call, ones, outputs), 0, &slope);
    check(&|outputs| pull(ptr::null(), ones, outputs), 0, &slope);
    check(&|outputs| pull(of_call, none.as_ptr(), outputs), 0, &[0.0; 6]);
    let needed = [0_u8, 1];
    // SAFETY: as above.
    let second = |outputs| unsafe {
        let needed = needed.as_ptr();
        (api().second_gradient)(op, given, count, of_call, ones, 1, wanted, 1, ones, 1, needed, 2, outputs)
    };
    check(&second, 1, &bend);
    // SAFETY: as above.
    let push = |others, outputs| unsafe {
        let function = api().tangent;
        function(op, given, count, ones, others, 1, wanted, 1, outputs)
    };
    check(&|outputs| push(ptr::null(), outputs), 0, &slope);
    check(&|outputs| push(ones, outputs), 0, &bend);
}

fn mistakes() {
    let program = Program::new();
    let x = program.sent(&X, &[6]);
    let (described, op) = (x.described(), operator("gaussian"));
    let arguments = [value(&described), default()];
    let refused = |stream: Option<&Stream>, arguments: &[Value], op, start: &str, text: &str| {
        program.refused(stream, op, arguments, &[start, text]);
    };
    refused(
        None,
        &arguments,
        op,
        "Interface",
        "on a device of the kind 2, number 0, and the call names no stream of it",
    );
    let of = |device_type, device_id| Stream { device_type, device_id, ..program.stream };
    refused(
        Some(&of(10, 1)),
        &arguments,
        op,
        "Interface",
        "of the kind 10, number 1; the kinds are 1 (the host), 2",
    );
    refused(Some(&of(2, 7)), &arguments, op, "Device", "7");
    let there = structures::Tensor { device_id: 1, ..described };
    let elsewhere = [value(&there), default()];
    refused(
        Some(&program.stream),
        &elsewhere,
        op,
        "Device",
        "is on cuda:1, and the call's stream is of cuda:0",
    );
    // The host and a device.
    let numbers = X;
    let host = Array {
        address: numbers.as_ptr().expose_provenance(),
        device: (DeviceKind::Host as i32, 0),
        ..x.clone()
    };
    let host = host.described();
    let mixed = [value(&described), value(&host), default()];
    refused(Some(&program.stream), &mixed, operator("add.Tensor"), "Device", "cpu");
    // A kernel for the host alone.
    let sizes = [2_i64, 3];
    let matrix = structures::Tensor { ndim: 2, shape: sizes.as_ptr(), ..described };
    refused(Some(&program.stream), &[value(&matrix)], operator("laplacian"), "NotImplemented", "CUDA");
}

fn streams() {
    let program = Program::new();
    let x = program.sent(&X, &[6]);
    let (described, op) = (x.described(), operator("gaussian"));
    let arguments = [value(&described), default()];
    let refused = |stream, text| program.refused(Some(stream), op, &arguments, &["Device", text]);
    // A stream that is another one in each thread.
    let each = Stream { handle: ptr::without_provenance_mut(2), ..program.stream };
    refused(&each, "default stream of each thread");
    // The stream was left after the mistake.
    let mut places = Places::new(&program.driver);
    program.run(&mut places, "gaussian", &arguments).unwrap();
    close(&program.floats(places.only()), &X.map(bell));
    // A record forbids other requests of the process.
    let recorded =
        Stream { handle: ptr::with_exposed_provenance_mut(program.driver.stream()), ..program.stream };
    program.driver.record(recorded.handle.expose_provenance());
    refused(&recorded, "recorded by another library");
}

fn two() {
    let driver = Driver::of_device(1);
    let handle = driver.stream();
    let stream = Stream {
        device_type: DeviceKind::Cuda as i32,
        device_id: 1,
        handle: ptr::with_exposed_provenance_mut(handle),
    };
    let bytes: Vec<u8> = X.iter().flat_map(|number| number.to_ne_bytes()).collect();
    let array = Array { device: (2, 1), ..Array::new(driver.sent(&bytes, handle), &[6], DType::F32) };
    let mut places = Places::new(&driver);
    places.device = 1;
    let described = array.described();
    let arguments = [value(&described), default()];
    places.call(Some(&stream), |outputs| run(operator("gaussian"), &arguments, outputs)).unwrap();
    driver.wait(handle);
    let found = driver.bytes(places.only().address, 24);
    let found = found.chunks_exact(4).map(|item| f32::from_ne_bytes(item.try_into().unwrap()));
    close(&found.collect::<Vec<_>>(), &X.map(bell));
}
