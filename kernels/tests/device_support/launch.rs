//! Kernels of the device library, run by the stand-ins for CUDA's compiler and driver.
//!
//! In: a text, and the parameters of its launch. Out: memory after the launch.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CString, c_char, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::{LazyLock, Mutex, MutexGuard};

use libloading::Library;
use opsmith_kernels::device::OPTIONS;

/// The stand-ins' libraries.
pub struct Device {
    driver: Library,
    compiler: Library,
    /// Kernels by their texts, as addresses.
    functions: RefCell<HashMap<String, usize>>,
}

type Handle = *mut c_void;

/// Calls a function of a library, which gives 0.
macro_rules! call {
    ($library:expr, $name:literal, $($argument:expr => $ty:ty),*) => {{
        // SAFETY: the function has these parameters, as CUDA documents.
        let code = unsafe { (*$library.get::<unsafe extern "C" fn($($ty),*) -> i32>($name.as_bytes()).unwrap())($($argument),*) };
        assert_eq!(code, 0, "{}", $name);
    }};
}

/// The device, for one thread at a time.
pub fn device() -> MutexGuard<'static, Device> {
    static DEVICE: LazyLock<Mutex<Device>> = LazyLock::new(|| {
        let folder = super::folder("stand-in");
        opsmith_stand_in::driver(&folder);
        opsmith_stand_in::nvrtc(&folder);
        let load = |name: &str| {
            // SAFETY: the stand-ins' initialisers only set up their own state.
            unsafe { Library::new(Path::new(&folder).join(name)) }.unwrap()
        };
        let device = Device {
            driver: load("libcuda.so"),
            compiler: load("libnvrtc.so"),
            functions: RefCell::default(),
        };
        call!(device.driver, "cuInit", 0 => u32);
        Mutex::new(device)
    });
    let device = DEVICE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut context: Handle = null_mut();
    call!(device.driver, "cuDevicePrimaryCtxRetain", &mut context => *mut Handle, 0 => i32);
    call!(device.driver, "cuCtxSetCurrent", context => Handle);
    device
}

impl Device {
    /// The kernel `opsmith_kernel` of a text.
    #[track_caller]
    pub fn function(&self, text: &str) -> Handle {
        if let Some(&function) = self.functions.borrow().get(text) {
            return function as Handle;
        }
        let function = self.compiled(text);
        self.functions.borrow_mut().insert(text.to_owned(), function as usize);
        function
    }

    #[track_caller]
    fn compiled(&self, text: &str) -> Handle {
        let text = CString::new(text).unwrap();
        let options: Vec<CString> = OPTIONS
            .iter()
            .chain(&["--gpu-architecture=sm_90"])
            .map(|&option| CString::new(option).unwrap())
            .collect();
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let (mut program, mut size): (Handle, usize) = (null_mut(), 0);
        call!(self.compiler, "nvrtcCreateProgram", &mut program => *mut Handle, text.as_ptr() => *const c_char,
            c"kernel.cu".as_ptr() => *const c_char, 0 => i32, null() => *const c_void, null() => *const c_void);
        call!(self.compiler, "nvrtcCompileProgram", program => Handle, options.len() as i32 => i32,
            options.as_ptr() => *const *const c_char);
        call!(self.compiler, "nvrtcGetCUBINSize", program => Handle, &mut size => *mut usize);
        let mut image = vec![0u8; size];
        call!(self.compiler, "nvrtcGetCUBIN", program => Handle, image.as_mut_ptr() => *mut u8);
        call!(self.compiler, "nvrtcDestroyProgram", &mut program => *mut Handle);
        let (mut module, mut function): (Handle, Handle) = (null_mut(), null_mut());
        call!(self.driver, "cuModuleLoadData", &mut module => *mut Handle, image.as_ptr() => *const u8);
        call!(self.driver, "cuModuleGetFunction", &mut function => *mut Handle, module => Handle,
            c"opsmith_kernel".as_ptr() => *const c_char);
        function
    }

    /// Launches a kernel and waits for it. Parameters are the addresses of their values.
    pub fn launch(
        &self,
        function: Handle,
        blocks: [u32; 2],
        threads: [u32; 2],
        parameters: &[*const c_void],
    ) {
        self.launch_3d(function, [blocks[0], blocks[1], 1], threads, parameters);
    }

    /// Launches a kernel, with blocks in three dimensions, and waits for it. Parameters are the addresses of their values.
    pub fn launch_3d(
        &self,
        function: Handle,
        blocks: [u32; 3],
        threads: [u32; 2],
        parameters: &[*const c_void],
    ) {
        call!(self.driver, "cuLaunchKernel", function => Handle, blocks[0] => u32, blocks[1] => u32, blocks[2] => u32,
            threads[0] => u32, threads[1] => u32, 1 => u32, 0 => u32, null_mut() => Handle,
            parameters.as_ptr() => *const *const c_void, null() => *const c_void);
        call!(self.driver, "cuCtxSynchronize",);
    }

    /// Memory for elements, with no content.
    pub fn memory<T>(&self, count: usize) -> Memory<'_> {
        let mut address = 0u64;
        call!(self.driver, "cuMemAlloc_v2", &mut address => *mut u64, (count * size_of::<T>()).max(1) => usize);
        Memory { device: self, address }
    }

    /// Memory with these elements.
    pub fn copied<T: Copy>(&self, elements: &[T]) -> Memory<'_> {
        let memory = self.memory::<T>(elements.len());
        if !elements.is_empty() {
            call!(self.driver, "cuMemcpyHtoD_v2", memory.address => u64, elements.as_ptr().cast() => *const c_void,
                size_of_val(elements) => usize);
        }
        memory
    }
}

/// Memory of the device.
pub struct Memory<'a> {
    device: &'a Device,
    address: u64,
}

impl Memory<'_> {
    pub fn pointer(&self) -> *mut c_void {
        self.address as *mut c_void
    }

    /// The first elements.
    pub fn read<T: Copy + Default>(&self, count: usize) -> Vec<T> {
        let mut elements = vec![T::default(); count];
        if count > 0 {
            call!(self.device.driver, "cuMemcpyDtoH_v2", elements.as_mut_ptr().cast() => *mut c_void, self.address => u64,
                count * size_of::<T>() => usize);
        }
        elements
    }
}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        call!(self.device.driver, "cuMemFree_v2", self.address => u64);
    }
}
