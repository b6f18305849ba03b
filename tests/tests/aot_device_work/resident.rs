//! Tensors that live on the device: memory of the driver as a backend of the runtime, of which custom kernels take the
//! addresses.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::OnceLock;

use opsmith::{DType, Device, Result, Scalar, Tensor};
use opsmith_runtime::Backend;
use opsmith_runtime::backend::{self, Address, DeviceRuntime, Elements, Queue, StreamId, Ticket};
use opsmith_runtime::error::Error;

use super::{floats, on_device, simple};

const DEVICE: Device = Device { backend: Backend::Cuda, index: 0 };

/// The driver, whose every request is done when it returns, in a context that is current for its time alone.
struct Driver {
    library: libloading::Library,
    context: *mut c_void,
}

// SAFETY: contexts of the driver may be used from any thread.
unsafe impl Send for Driver {}
// SAFETY: nothing changes after it is made.
unsafe impl Sync for Driver {}

impl Driver {
    fn get() -> &'static Driver {
        static DRIVER: OnceLock<Driver> = OnceLock::new();
        DRIVER.get_or_init(|| {
            // SAFETY: the driver is loaded as every program that uses CUDA does.
            let library = unsafe { libloading::Library::new("libcuda.so.1") }.expect("there is a driver");
            let mut driver = Driver { library, context: std::ptr::null_mut() };
            let (init, retain) = (driver.find("cuInit"), driver.find("cuDevicePrimaryCtxRetain"));
            // SAFETY: these are the driver's own types.
            unsafe {
                let init: unsafe extern "C" fn(u32) -> c_int = std::mem::transmute(init);
                let retain: unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_int =
                    std::mem::transmute(retain);
                assert_eq!((init(0), retain(&raw mut driver.context, 0)), (0, 0));
            }
            driver
        })
    }

    fn find(&self, name: &str) -> *const c_void {
        // SAFETY: only the address is looked at.
        let found = unsafe { self.library.get::<*const c_void>(name.as_bytes()) };
        *found.expect("the driver has the function")
    }

    /// Does something in the device's context.
    fn within<R>(&self, work: impl FnOnce() -> R) -> R {
        let (push, pop) = (self.find("cuCtxPushCurrent_v2"), self.find("cuCtxPopCurrent_v2"));
        let mut popped = std::ptr::null_mut();
        // SAFETY: these are the driver's own types, and the context stays.
        unsafe {
            let push: unsafe extern "C" fn(*mut c_void) -> c_int = std::mem::transmute(push);
            let pop: unsafe extern "C" fn(*mut *mut c_void) -> c_int = std::mem::transmute(pop);
            assert_eq!(push(self.context), 0);
            let result = work();
            assert_eq!(pop(&raw mut popped), 0);
            result
        }
    }

    /// Copies bytes in a stream, to whose end it waits.
    fn copy(&self, to: Address, from: Address, bytes: usize) -> Result<()> {
        let name = match to.device.backend {
            Backend::Cpu => "cuMemcpyDtoHAsync_v2",
            _ => "cuMemcpyHtoDAsync_v2",
        };
        let [create, destroy, wait, copy] =
            ["cuStreamCreate", "cuStreamDestroy_v2", "cuStreamSynchronize", name].map(|name| self.find(name));
        // SAFETY: these are the driver's own types; addresses of the device are numbers of as many bits.
        let codes = self.within(|| unsafe {
            let create: unsafe extern "C" fn(*mut *mut c_void, u32) -> c_int = std::mem::transmute(create);
            let [destroy, wait]: [unsafe extern "C" fn(*mut c_void) -> c_int; 2] =
                std::mem::transmute([destroy, wait]);
            let copy: unsafe extern "C" fn(*mut u8, *mut u8, usize, *mut c_void) -> c_int =
                std::mem::transmute(copy);
            let mut stream = std::ptr::null_mut();
            let made = create(&raw mut stream, 0);
            [made, copy(to.start, from.start, bytes, stream), wait(stream), destroy(stream)]
        });
        if codes == [0; 4] { Ok(()) } else { Err(Error::device(format!("the copy failed: {codes:?}"))) }
    }
}

/// Memory of the driver.
struct Memory;

// SAFETY: memory is the driver's, and every request is done when it returns.
unsafe impl DeviceRuntime for Memory {
    fn allocate(&self, _: u16, bytes: usize) -> Result<NonNull<u8>> {
        let driver = Driver::get();
        let allocate = driver.find("cuMemAlloc_v2");
        let mut address = std::ptr::null_mut();
        // SAFETY: these are the driver's own types; addresses of the device are numbers of as many bits.
        let code = driver.within(|| unsafe {
            let allocate: unsafe extern "C" fn(*mut *mut u8, usize) -> c_int = std::mem::transmute(allocate);
            allocate(&raw mut address, bytes.max(1))
        });
        NonNull::new(address).filter(|_| code == 0).ok_or_else(|| Error::memory("the device has none"))
    }

    unsafe fn release(&self, _: u16, memory: NonNull<u8>, _: usize, _: Ticket) {
        let driver = Driver::get();
        let free = driver.find("cuMemFree_v2");
        // SAFETY: these are the driver's own types, and the memory came from it.
        let code = driver.within(|| unsafe {
            let free: unsafe extern "C" fn(*mut u8) -> c_int = std::mem::transmute(free);
            free(memory.as_ptr())
        });
        assert_eq!(code, 0);
    }

    unsafe fn transfer(&self, _: Queue, to: Address, from: Address, bytes: usize) -> Result<()> {
        Driver::get().copy(to, from, bytes)
    }

    unsafe fn convert(&self, _: Queue, _: Elements<'_>, _: Elements<'_>) -> Result<()> {
        Err(Error::device("the test converts nothing on the device"))
    }

    unsafe fn fill(&self, _: Queue, _: Elements<'_>, _: Scalar) -> Result<()> {
        Err(Error::device("the test fills nothing on the device"))
    }

    unsafe fn accumulate(&self, _: Queue, _: Elements<'_>, _: Elements<'_>) -> Result<()> {
        Err(Error::device("the test adds nothing on the device"))
    }

    fn stream(&self, device: u16) -> Result<StreamId> {
        if device == 0 { Ok(StreamId(0)) } else { Err(Error::device("there is one device")) }
    }

    fn ticket(&self, _: Queue) -> Result<Ticket> {
        Ok(Ticket::default())
    }

    fn follow(&self, _: Queue, _: Ticket) -> Result<()> {
        Ok(())
    }

    fn wait(&self, _: u16, _: Ticket) -> Result<()> {
        Ok(())
    }
}

backend::register!(replacing Backend::Cuda, &Memory);

/// A chain of kernels on tensors of the device: their results stay there, and nothing is copied except the elements
/// that the host reads at the end.
pub fn resident() -> Result<()> {
    let add = on_device("Add", &["x", "y"], &["sum"]).declare()?;
    let (x, y) = (Tensor::of(&[1.0f32, 2.0, 3.0]), Tensor::of(&[10.0f32, 20.0, 30.0]));
    let [there_x, there_y] = [x.to_device(DEVICE)?, y.to_device(DEVICE)?];
    let sum = add.call(&[&there_x, &there_y])?;
    assert_eq!(sum.device(), DEVICE);
    let square = simple("Square").declare()?;
    let squares = square.call(&[&sum])?;
    assert_eq!((squares.device(), floats(&squares)), (DEVICE, vec![121.0, 484.0, 1089.0]));
    assert_eq!(floats(&there_x), [1.0, 2.0, 3.0], "the input is as it was");
    // Those of the host go there and back, beside them.
    let of_host = square.call(&[&x])?;
    assert_eq!((of_host.device(), floats(&of_host)), (Device::CPU, vec![1.0, 4.0, 9.0]));
    // No elements, and one whose kernel is watched, for which operands come to the host.
    let none = Tensor::from_slice::<f32>(&[], &[0, 5])?.to_device(DEVICE)?;
    assert_eq!(square.call(&[&none])?.shape(), [0, 5]);
    let watched = simple("Square").check(true).declare()?.call(&[&there_x])?;
    assert_eq!((watched.device(), floats(&watched)), (DEVICE, vec![1.0, 4.0, 9.0]));
    // A kernel of the host takes no addresses of the device.
    let on_host = opsmith_aot::Declaration::new("of_host", super::kernel("Square"))
        .input("x")
        .output("y")
        .dtypes([DType::F32; 2])
        .target(Backend::Cpu)
        .output_shape_fn(|call| Ok(vec![call.shape(0)?.to_vec()]))
        .unlisted()
        .declare()?;
    let error = on_host.call(&[&there_x]).unwrap_err().to_string();
    assert!(error.contains("does not run on CUDA"), "{error}");
    Ok(())
}
