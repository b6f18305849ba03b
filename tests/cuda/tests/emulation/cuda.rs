//! The functions of the stand-ins, as a program calls those of CUDA.
//!
//! In: the folder of the stand-ins. Out: codes and bytes. Must not know the tests.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};

use libloading::Library;

pub type Handle = *mut c_void;

/// Both libraries, loaded, and a context for each device.
pub struct Cuda {
    driver: Library,
    nvrtc: Library,
}

/// The size of a launch.
#[derive(Clone, Copy)]
pub struct Grid {
    pub blocks: [c_uint; 3],
    pub threads: [c_uint; 3],
    pub shared: c_uint,
}

/// Blocks and threads along x.
pub fn grid(blocks: c_uint, threads: c_uint) -> Grid {
    Grid { blocks: [blocks, 1, 1], threads: [threads, 1, 1], shared: 0 }
}

/// An address in memory of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(transparent)]
pub struct Address(pub u64);

/// An argument of a kernel.
pub trait Argument {
    fn pointer(&self) -> *mut c_void {
        std::ptr::from_ref(self).cast_mut().cast()
    }
}

impl Argument for Address {}
impl Argument for i32 {}
impl Argument for u32 {}
impl Argument for i64 {}
impl Argument for u64 {}

/// Calls a function of a library by its name; the types of the arguments are those given.
macro_rules! call {
    ($library:expr, $name:literal $(, $argument:expr => $type:ty)*) => {{
        // SAFETY: each call below gives the types of the function's declaration in CUDA's headers.
        unsafe {
            let function: libloading::Symbol<unsafe extern "C" fn($($type),*) -> std::ffi::c_int> =
                $library.get(concat!($name, "\0").as_bytes()).expect($name);
            function($($argument),*)
        }
    }};
}
pub(crate) use call;

impl Cuda {
    /// Loads the stand-ins and enters the context of the first device.
    pub fn start(folder: &Path) -> Cuda {
        // SAFETY: the libraries were compiled by this test.
        let open = |name: &str| unsafe { Library::new(folder.join(name)) }.expect(name);
        let cuda = Cuda { driver: open("libcuda.so.1"), nvrtc: open("libnvrtc.so.13") };
        assert_eq!(call!(cuda.driver, "cuInit", 0 => c_uint), 0);
        cuda.enter(0);
        cuda
    }

    pub fn driver(&self) -> &Library {
        &self.driver
    }

    /// Makes a device's context the current one.
    pub fn enter(&self, device: c_int) -> Handle {
        let mut context = null_mut();
        let code =
            call!(self.driver, "cuDevicePrimaryCtxRetain", &raw mut context => *mut Handle, device => c_int);
        assert_eq!(code, 0);
        assert_eq!(call!(self.driver, "cuCtxSetCurrent", context => Handle), 0);
        context
    }

    /// A stream that the default stream does not wait for.
    pub fn stream(&self) -> Handle {
        let mut stream = null_mut();
        assert_eq!(call!(self.driver, "cuStreamCreate", &raw mut stream => *mut Handle, 1 => c_uint), 0);
        stream
    }

    pub fn wait(&self, stream: Handle) -> c_int {
        call!(self.driver, "cuStreamSynchronize", stream => Handle)
    }

    pub fn event(&self) -> Handle {
        let mut event = null_mut();
        assert_eq!(call!(self.driver, "cuEventCreate", &raw mut event => *mut Handle, 0 => c_uint), 0);
        event
    }

    pub fn record(&self, event: Handle, stream: Handle) {
        assert_eq!(call!(self.driver, "cuEventRecord", event => Handle, stream => Handle), 0);
    }

    pub fn follow(&self, stream: Handle, event: Handle) {
        let code = call!(self.driver, "cuStreamWaitEvent", stream => Handle, event => Handle, 0 => c_uint);
        assert_eq!(code, 0);
    }

    pub fn allocate(&self, bytes: usize) -> Address {
        let mut address = 0;
        assert_eq!(call!(self.driver, "cuMemAlloc_v2", &raw mut address => *mut u64, bytes => usize), 0);
        Address(address)
    }

    pub fn free(&self, address: Address) -> c_int {
        call!(self.driver, "cuMemFree_v2", address.0 => u64)
    }

    /// Pinned memory of the host.
    pub fn pinned(&self, bytes: usize) -> *mut c_void {
        let mut address = null_mut();
        let code = call!(self.driver, "cuMemHostAlloc", &raw mut address => *mut Handle, bytes => usize, 0 => c_uint);
        assert_eq!(code, 0);
        address
    }

    pub fn send_bytes(&self, to: Address, from: *const c_void, bytes: usize, stream: Handle) -> c_int {
        call!(self.driver, "cuMemcpyHtoDAsync_v2", to.0 => u64, from => *const c_void, bytes => usize, stream => Handle)
    }

    /// A block with a copy of the elements, sent by the default stream.
    pub fn send<T: Copy>(&self, elements: &[T]) -> Address {
        let address = self.allocate(size_of_val(elements));
        assert_eq!(self.send_bytes(address, elements.as_ptr().cast(), size_of_val(elements), null_mut()), 0);
        address
    }

    /// Elements of a block, when the stream is done.
    pub fn fetch<T: Copy + Default>(&self, from: Address, count: usize, stream: Handle) -> Vec<T> {
        let mut elements = vec![T::default(); count];
        let (to, bytes) = (elements.as_mut_ptr().cast::<c_void>(), size_of_val(&elements[..]));
        let code = call!(self.driver, "cuMemcpyDtoHAsync_v2", to => *mut c_void, from.0 => u64, bytes => usize, stream => Handle);
        assert_eq!((code, self.wait(stream)), (0, 0));
        elements
    }

    /// Compiles a text; or the code and the log.
    pub fn compile(&self, text: &str, options: &[&str]) -> Result<Vec<u8>, (c_int, String)> {
        let (text, name) = (CString::new(text).unwrap(), c"kernels.cu");
        let options: Vec<CString> = options.iter().map(|option| CString::new(*option).unwrap()).collect();
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let mut program = null_mut();
        let none: *const *const c_char = null();
        let code = call!(self.nvrtc, "nvrtcCreateProgram",
            &raw mut program => *mut Handle, text.as_ptr() => *const c_char, name.as_ptr() => *const c_char,
            0 => c_int, none => *const *const c_char, none => *const *const c_char);
        assert_eq!(code, 0);
        let count = options.len() as c_int;
        let code = call!(self.nvrtc, "nvrtcCompileProgram", program => Handle, count => c_int, options.as_ptr() => *const *const c_char);
        let mut size = 0usize;
        call!(self.nvrtc, "nvrtcGetProgramLogSize", program => Handle, &raw mut size => *mut usize);
        let mut log = vec![0u8; size];
        call!(self.nvrtc, "nvrtcGetProgramLog", program => Handle, log.as_mut_ptr() => *mut u8);
        if code != 0 {
            call!(self.nvrtc, "nvrtcDestroyProgram", &raw mut program => *mut Handle);
            return Err((code, String::from_utf8_lossy(&log).into_owned()));
        }
        call!(self.nvrtc, "nvrtcGetCUBINSize", program => Handle, &raw mut size => *mut usize);
        let mut bytes = vec![0u8; size];
        assert_eq!(call!(self.nvrtc, "nvrtcGetCUBIN", program => Handle, bytes.as_mut_ptr() => *mut u8), 0);
        assert_eq!(call!(self.nvrtc, "nvrtcDestroyProgram", &raw mut program => *mut Handle), 0);
        Ok(bytes)
    }

    /// A module, or the code.
    pub fn load(&self, image: &[u8]) -> Result<Handle, c_int> {
        let mut module = null_mut();
        match call!(self.driver, "cuModuleLoadData", &raw mut module => *mut Handle, image.as_ptr() => *const u8)
        {
            0 => Ok(module),
            code => Err(code),
        }
    }

    pub fn function(&self, module: Handle, name: &str) -> Result<Handle, c_int> {
        let (mut function, name) = (null_mut(), CString::new(name).unwrap());
        match call!(self.driver, "cuModuleGetFunction",
            &raw mut function => *mut Handle, module => Handle, name.as_ptr() => *const c_char)
        {
            0 => Ok(function),
            code => Err(code),
        }
    }

    /// The address and size of a variable of a module.
    pub fn global(&self, module: Handle, name: &str) -> Result<(Address, usize), c_int> {
        let (mut address, mut bytes, name) = (0u64, 0usize, CString::new(name).unwrap());
        match call!(self.driver, "cuModuleGetGlobal_v2",
            &raw mut address => *mut u64, &raw mut bytes => *mut usize, module => Handle, name.as_ptr() => *const c_char)
        {
            0 => Ok((Address(address), bytes)),
            code => Err(code),
        }
    }

    pub fn launch(&self, function: Handle, grid: Grid, stream: Handle, arguments: &[&dyn Argument]) -> c_int {
        let mut pointers: Vec<*mut c_void> = arguments.iter().map(|argument| argument.pointer()).collect();
        let ([x, y, z], [u, v, w], none) = (grid.blocks, grid.threads, null_mut::<Handle>());
        call!(self.driver, "cuLaunchKernel",
            function => Handle, x => c_uint, y => c_uint, z => c_uint, u => c_uint, v => c_uint, w => c_uint,
            grid.shared => c_uint, stream => Handle, pointers.as_mut_ptr() => *mut *mut c_void, none => *mut Handle)
    }
}
