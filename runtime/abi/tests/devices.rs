//! A library without a runtime for devices: a stream of one is an error with the kind, the number and the cure.

use std::ffi::CStr;
use std::ptr;

use opsmith_abi::structures::{Api, Outputs, Stream};
use opsmith_core::abi::{Code, DeviceKind, VERSION};
use opsmith_runtime::library::Library;

static LIBRARY: Library = Library { name: "none", ..Library::EMPTY };

fn api() -> &'static Api {
    // SAFETY: the table of a known version lives as long as the process.
    unsafe { opsmith_abi::api(VERSION, &LIBRARY).as_ref() }.unwrap()
}

fn refused(code: i32, expected: Code, text: &str) {
    // SAFETY: the text is valid until the next call.
    let found = unsafe { CStr::from_ptr((api().error_text)()) }.to_str().unwrap();
    assert!(code == expected as i32 && found.contains(text), "{code}: {found}");
}

#[test]
fn a_device_without_a_runtime_is_named_with_the_cure() {
    let stream =
        Stream { device_type: DeviceKind::Cuda as i32, device_id: 3, handle: ptr::without_provenance_mut(8) };
    // SAFETY: the stream is refused before anything else is read.
    let code = unsafe { (api().convert)(ptr::null(), ptr::null(), &raw const stream) };
    refused(code, Code::Device, "no runtime for cuda:3, a device of the kind 2, number 3");
    refused(code, Code::Device, "build it with the feature `cuda` of `opsmith`");
    let outputs = Outputs {
        size: size_of::<Outputs>(),
        context: ptr::null_mut(),
        allocate: None,
        adopt: None,
        stream: &raw const stream,
    };
    // SAFETY: as above.
    let code = unsafe { (api().run)(ptr::null(), ptr::null(), 0, &raw const outputs) };
    refused(code, Code::Device, "no runtime for cuda:3");
}

#[test]
fn a_stream_of_the_host_is_none() {
    let stream = Stream { device_type: DeviceKind::Host as i32, device_id: 0, handle: ptr::null_mut() };
    // SAFETY: null tensors are refused.
    let code = unsafe { (api().convert)(ptr::null(), ptr::null(), &raw const stream) };
    refused(code, Code::Interface, "the tensor `target` is null");
}

#[test]
fn a_number_that_no_device_has_is_refused() {
    let stream = Stream { device_type: DeviceKind::Cuda as i32, device_id: -1, handle: ptr::null_mut() };
    // SAFETY: the stream is refused before anything else is read.
    let code = unsafe { (api().convert)(ptr::null(), ptr::null(), &raw const stream) };
    refused(code, Code::Interface, "the impossible number -1");
}
