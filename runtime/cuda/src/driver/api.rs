//! The functions of the driver's library, found at run time.
//!
//! In: nothing. Out: a table of functions, complete, or the name that is missing. Codes are plain integers: a newer
//! driver has codes that no enumeration of today lists. Must not know contexts.

use std::ffi::{c_char, c_int, c_uint, c_void};

use libloading::Library;

/// A result code; 0 is success.
pub type Code = c_int;
/// A context, stream, event, module or function.
pub type Handle = *mut c_void;
/// An address in the memory of a device.
pub type DeviceAddress = u64;

/// Names of the library, by which the loader finds it.
pub const LIBRARIES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// The absence of the library or of one of its functions.
pub enum Missing {
    /// The library, with the loader's message.
    Library(String),
    /// A function.
    Function(&'static str),
}

macro_rules! functions {
    (
        required { $($name:ident($($argument:ident: $ty:ty),*);)* }
        optional { $($maybe:ident($($maybe_argument:ident: $maybe_ty:ty),*);)* }
        graphs { $($graph:ident($($graph_argument:ident: $graph_ty:ty),*);)* }
    ) => {
        /// The driver's functions; signatures are those of `cuda.h`.
        #[allow(non_snake_case, reason = "names of the driver's interface")]
        pub struct Api {
            $(pub $name: unsafe extern "C" fn($($argument: $ty),*) -> Code,)*
            $(pub $maybe: Option<unsafe extern "C" fn($($maybe_argument: $maybe_ty),*) -> Code>,)*
            graphs: Option<Graphs>,
            /// Keeps the functions loaded.
            _library: Library,
        }

        /// The functions of recorded work, all or none.
        #[allow(non_snake_case, reason = "names of the driver's interface")]
        pub struct Graphs {
            $(pub $graph: unsafe extern "C" fn($($graph_argument: $graph_ty),*) -> Code,)*
        }

        $crate::table::signatures! {
            $($name($($ty),*) -> Code;)*
            $($maybe($($maybe_ty),*) -> Code;)*
            $($graph($($graph_ty),*) -> Code;)*
        }

        impl Graphs {
            fn of(library: &Library) -> Option<Graphs> {
                // SAFETY: each name has the signature of `cuda.h`, and the library stays loaded as long as the table.
                unsafe {
                    Some(Graphs {
                        $($graph: *library.get(concat!(stringify!($graph), "\0").as_bytes()).ok()?,)*
                    })
                }
            }
        }

        impl Api {
            fn of(library: Library) -> Result<Api, Missing> {
                // SAFETY: each name has the signature of `cuda.h`, and the library stays loaded as long as the table.
                unsafe {
                    Ok(Api {
                        $($name: *library
                            .get(concat!(stringify!($name), "\0").as_bytes())
                            .map_err(|_| Missing::Function(stringify!($name)))?,)*
                        $($maybe: library
                            .get(concat!(stringify!($maybe), "\0").as_bytes())
                            .ok()
                            .map(|found| *found),)*
                        graphs: Graphs::of(&library),
                        _library: library,
                    })
                }
            }
        }
    };
}

functions! {
    required {
    cuInit(flags: c_uint);
    cuDriverGetVersion(version: *mut c_int);
    cuGetErrorName(code: Code, name: *mut *const c_char);
    cuGetErrorString(code: Code, text: *mut *const c_char);
    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGet(device: *mut c_int, ordinal: c_int);
    cuDeviceGetName(name: *mut c_char, length: c_int, device: c_int);
    cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int);
    cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int);
    cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int);
    cuDevicePrimaryCtxRetain(context: *mut Handle, device: c_int);
    cuCtxGetCurrent(context: *mut Handle);
    cuCtxSetCurrent(context: Handle);
    cuCtxPushCurrent_v2(context: Handle);
    cuCtxPopCurrent_v2(context: *mut Handle);
    cuCtxSynchronize();
    cuStreamCreate(stream: *mut Handle, flags: c_uint);
    cuStreamSynchronize(stream: Handle);
    cuStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint);
    cuEventCreate(event: *mut Handle, flags: c_uint);
    cuEventRecord(event: Handle, stream: Handle);
    cuEventQuery(event: Handle);
    cuEventSynchronize(event: Handle);
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    cuMemAlloc_v2(address: *mut DeviceAddress, bytes: usize);
    cuMemFree_v2(address: DeviceAddress);
    cuMemHostAlloc(start: *mut *mut c_void, bytes: usize, flags: c_uint);
    cuMemFreeHost(start: *mut c_void);
    cuMemHostGetDevicePointer_v2(address: *mut DeviceAddress, start: *mut c_void, flags: c_uint);
    cuMemcpyHtoDAsync_v2(to: DeviceAddress, from: *const c_void, bytes: usize, stream: Handle);
    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: DeviceAddress, bytes: usize, stream: Handle);
    cuMemcpyDtoDAsync_v2(to: DeviceAddress, from: DeviceAddress, bytes: usize, stream: Handle);
    cuMemcpyPeerAsync(
        to: DeviceAddress, to_context: Handle, from: DeviceAddress, from_context: Handle, bytes: usize, stream: Handle
    );
    cuMemsetD8Async(to: DeviceAddress, value: u8, count: usize, stream: Handle);
    cuMemsetD16Async(to: DeviceAddress, value: u16, count: usize, stream: Handle);
    cuMemsetD32Async(to: DeviceAddress, value: c_uint, count: usize, stream: Handle);
    cuModuleLoadData(module: *mut Handle, image: *const c_void);
    cuModuleUnload(module: Handle);
    cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char);
    cuModuleGetGlobal_v2(address: *mut DeviceAddress, bytes: *mut usize, module: Handle, name: *const c_char);
    cuFuncGetAttribute(value: *mut c_int, attribute: c_int, function: Handle);
    cuFuncSetAttribute(function: Handle, attribute: c_int, value: c_int);
    cuLaunchKernel(
        function: Handle, blocks_x: c_uint, blocks_y: c_uint, blocks_z: c_uint, threads_x: c_uint, threads_y: c_uint,
        threads_z: c_uint, shared: c_uint, stream: Handle, parameters: *const *const c_void, extra: *mut *mut c_void
    );
    }
    optional {
        cuDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int);
        cuCtxEnablePeerAccess(peer: Handle, flags: c_uint);
        cuEventElapsedTime(milliseconds: *mut f32, start: Handle, end: Handle);
        cuFuncGetParamInfo(function: Handle, index: usize, offset: *mut usize, bytes: *mut usize);
        cuStreamIsCapturing(stream: Handle, status: *mut c_int);
    }
    graphs {
        cuThreadExchangeStreamCaptureMode(mode: *mut c_int);
        cuStreamBeginCapture_v2(stream: Handle, mode: c_int);
        cuStreamEndCapture(stream: Handle, graph: *mut Handle);
        cuGraphInstantiateWithFlags(executable: *mut Handle, graph: Handle, flags: u64);
        cuGraphLaunch(executable: Handle, stream: Handle);
        cuGraphExecDestroy(executable: Handle);
        cuGraphDestroy(graph: Handle);
    }
}

impl Api {
    /// The functions of recorded work; `None` if the driver has none.
    pub fn graphs(&self) -> Option<&Graphs> {
        self.graphs.as_ref()
    }

    /// Loads the library, and looks up every function.
    ///
    /// # Errors
    /// If the library or a function is missing.
    pub fn load() -> Result<Api, Missing> {
        let mut reason = String::new();
        for name in LIBRARIES {
            // SAFETY: the driver's library may be loaded by every program that uses CUDA.
            match unsafe { Library::new(name) } {
                Ok(library) => return Api::of(library),
                Err(error) => reason = error.to_string(),
            }
        }
        Err(Missing::Library(reason))
    }
}
