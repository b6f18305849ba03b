//! A made-up program that calls the C interface with memory of a device and a stream of its own, as other libraries do.
//!
//! In: the driver's library, which is a stand-in. Out: arrays in its memory, places of results there, and calls in a stream.

use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr;

use libloading::Library;
use opsmith_abi::structures::{self, Api, Operator, Outputs, Payload, Release, Stream, Value};
use opsmith_core::abi::{Code, DeviceKind, VERSION, ValueKind, element};
use opsmith_runtime::DType;

/// The table of the example's library.
pub fn api() -> &'static Api {
    // SAFETY: the table of a known version lives as long as the process.
    unsafe { opsmith_abi::api(VERSION, &opsmith_example_custom_op::LIBRARY).as_ref() }.unwrap()
}

/// An operator by its name.
pub fn operator(name: &str) -> *const Operator {
    let name = CString::new(name).unwrap();
    // SAFETY: the text ends with a zero byte.
    let found = unsafe { (api().find)(name.as_ptr()) };
    assert!(!found.is_null(), "{name:?}");
    found
}

/// The functions of the driver that such a program calls.
pub struct Driver(Library);

impl Driver {
    /// The driver, with the context of a device.
    pub fn of_device(device: i32) -> Driver {
        // SAFETY: the stand-in has no initialisation that could fail.
        let driver = Driver(unsafe { Library::new("libcuda.so.1").unwrap() });
        driver.call("cuInit", [0, 0, 0, 0]);
        let mut context = 0_usize;
        driver.call(
            "cuDevicePrimaryCtxRetain",
            [(&raw mut context).expose_provenance(), device as usize, 0, 0],
        );
        driver.call("cuCtxSetCurrent", [context, 0, 0, 0]);
        driver
    }

    /// The code of a function of up to four integers and addresses.
    fn code(&self, name: &str, arguments: [usize; 4]) -> c_int {
        let [a, b, c, d] = arguments;
        // SAFETY: functions of the driver have arguments of these sizes in registers, and ignore further ones.
        unsafe {
            let function = self
                .0
                .get::<unsafe extern "C" fn(usize, usize, usize, usize) -> c_int>(name.as_bytes())
                .unwrap();
            function(a, b, c, d)
        }
    }

    fn call(&self, name: &str, arguments: [usize; 4]) {
        assert_eq!(self.code(name, arguments), 0, "{name}");
    }

    /// A stream that does not wait for the default stream.
    pub fn stream(&self) -> usize {
        let mut made = 0_usize;
        self.call("cuStreamCreate", [(&raw mut made).expose_provenance(), 1, 0, 0]);
        made
    }

    /// Whether all work of a stream is done.
    pub fn is_done(&self, stream: usize) -> bool {
        self.code("cuStreamQuery", [stream, 0, 0, 0]) == 0
    }

    /// Waits for the work of a stream.
    pub fn wait(&self, stream: usize) {
        self.call("cuStreamSynchronize", [stream, 0, 0, 0]);
    }

    /// Begins a record of a stream's work.
    pub fn record(&self, stream: usize) {
        self.call("cuStreamBeginCapture_v2", [stream, 1, 0, 0]);
    }

    /// New memory, whose bytes are all ones.
    pub fn memory(&self, bytes: usize) -> usize {
        let mut made = 0_usize;
        self.call("cuMemAlloc_v2", [(&raw mut made).expose_provenance(), bytes.max(1), 0, 0]);
        self.call("cuMemsetD8_v2", [made, 255, bytes.max(1), 0]);
        made
    }

    /// Bytes of the host in new memory, sent by a stream and perhaps not there yet.
    pub fn sent(&self, bytes: &[u8], stream: usize) -> usize {
        let made = self.memory(bytes.len());
        self.call("cuMemcpyHtoDAsync_v2", [made, bytes.as_ptr().expose_provenance(), bytes.len(), stream]);
        made
    }

    /// Bytes of memory, when its work is done.
    pub fn bytes(&self, address: usize, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.call("cuMemcpyDtoH_v2", [bytes.as_mut_ptr().expose_provenance(), address, count, 0]);
        bytes
    }
}

/// An array of the program.
#[derive(Clone, Debug)]
pub struct Array {
    pub address: usize,
    pub sizes: Vec<i64>,
    pub dtype: DType,
    /// The kind and the number of its device.
    pub device: (i32, i32),
}

impl Array {
    /// An array on the first device of CUDA.
    pub fn new(address: usize, sizes: &[i64], dtype: DType) -> Array {
        Array { address, sizes: sizes.to_vec(), dtype, device: (DeviceKind::Cuda as i32, 0) }
    }

    /// The bytes of its elements.
    pub fn size(&self) -> usize {
        self.sizes.iter().product::<i64>() as usize * self.dtype.size()
    }

    /// The array in the interface.
    pub fn described(&self) -> structures::Tensor {
        let (code, bits) = element(self.dtype);
        structures::Tensor {
            data: ptr::with_exposed_provenance_mut(self.address),
            device_type: self.device.0,
            device_id: self.device.1,
            ndim: self.sizes.len() as i32,
            code,
            bits,
            lanes: 1,
            shape: self.sizes.as_ptr(),
            strides: ptr::null(),
            byte_offset: 0,
        }
    }
}

/// A tensor as an argument.
pub fn value(tensor: &structures::Tensor) -> Value {
    Value { kind: ValueKind::Tensor as i32, reserved: 0, count: 0, payload: Payload { tensor } }
}

/// An integer as an argument.
pub fn integer(integer: i64) -> Value {
    Value { kind: ValueKind::Int as i32, reserved: 0, count: 0, payload: Payload { integer } }
}

/// An argument's default.
pub fn default() -> Value {
    Value { kind: ValueKind::Default as i32, reserved: 0, count: 0, payload: Payload { integer: 0 } }
}

/// The places of a call's results.
pub struct Places<'a> {
    driver: &'a Driver,
    /// The results by their numbers.
    pub results: Vec<(i64, Array)>,
    /// Owners of memory that was handed over.
    pub owners: Vec<(usize, Release)>,
    /// The place of each result, if not in new memory.
    pub given: Option<usize>,
    /// The number of the device that results are on.
    pub device: i32,
}

impl<'a> Places<'a> {
    /// No results yet.
    pub fn new(driver: &'a Driver) -> Places<'a> {
        Places { driver, results: Vec::new(), owners: Vec::new(), given: None, device: 0 }
    }

    /// The only result.
    pub fn only(&self) -> &Array {
        assert_eq!(self.results.len(), 1);
        &self.results[0].1
    }

    /// Calls a function with these places and a stream.
    pub fn call(
        &mut self,
        stream: Option<&Stream>,
        call: impl FnOnce(*const Outputs) -> c_int,
    ) -> Result<(), String> {
        let outputs = Outputs {
            size: size_of::<Outputs>(),
            context: ptr::from_mut(self).cast(),
            allocate: Some(allocate),
            adopt: Some(adopt),
            stream: stream.map_or(ptr::null(), ptr::from_ref),
        };
        outcome(call(&raw const outputs))
    }
}

/// The text of an error, after its code.
pub fn outcome(code: c_int) -> Result<(), String> {
    if code == Code::Ok as c_int {
        return Ok(());
    }
    // SAFETY: the text is valid until the next call.
    let text = unsafe { CStr::from_ptr((api().error_text)()) }.to_str().unwrap();
    Err(format!("{:?}: {text}", Code::from_number(code).unwrap()))
}

fn array_of(tensor: &structures::Tensor) -> Array {
    // SAFETY: the interface gives as many sizes as dimensions.
    let sizes = unsafe { std::slice::from_raw_parts(tensor.shape, tensor.ndim as usize) }.to_vec();
    let dtype = opsmith_core::abi::dtype(tensor.code, tensor.bits).unwrap();
    let address = tensor.data.expose_provenance();
    Array { address, sizes, dtype, device: (tensor.device_type, tensor.device_id) }
}

unsafe extern "C" fn allocate(context: *mut c_void, index: i64, result: *mut structures::Tensor) -> c_int {
    // SAFETY: the context is that of `Places::call`, and the result is one of the interface.
    let (places, result) = unsafe { (&mut *context.cast::<Places<'_>>(), &mut *result) };
    let mut array = array_of(result);
    assert_eq!(array.device, (DeviceKind::Cuda as i32, places.device), "results are where the arguments are");
    array.address = places.given.unwrap_or_else(|| places.driver.memory(array.size()));
    result.data = ptr::with_exposed_provenance_mut(array.address);
    places.results.push((index, array));
    0
}

unsafe extern "C" fn adopt(
    context: *mut c_void,
    index: i64,
    result: *const structures::Tensor,
    owner: *mut c_void,
    release: Release,
) -> c_int {
    // SAFETY: as of `allocate`.
    let (places, result) = unsafe { (&mut *context.cast::<Places<'_>>(), &*result) };
    places.results.push((index, array_of(result)));
    places.owners.push((owner.expose_provenance(), release));
    0
}
