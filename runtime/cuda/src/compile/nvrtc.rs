//! NVRTC, the compiler of CUDA C++ that is a library.
//!
//! In: text, a name and options. Out: an image that the driver loads, or the compiler's messages. Must not know devices.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;

use libloading::os::unix::{Library, RTLD_NOW};
use opsmith_runtime::{Error, Result};

use crate::images::ImageTarget;

const SUCCESS: c_int = 0;
/// The result for a source with mistakes.
const COMPILATION: c_int = 6;

type Program = *mut c_void;

macro_rules! functions {
    ($($name:ident($($argument:ty),*);)*) => {
        #[allow(non_snake_case, reason = "names of the compiler's interface")]
        struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) -> c_int,)*
            nvrtcGetErrorString: unsafe extern "C" fn(c_int) -> *const c_char,
        }

        impl Functions {
            fn of(library: &Library) -> std::result::Result<Functions, &'static str> {
                // SAFETY: each name has the signature of `nvrtc.h`; libraries stay loaded.
                unsafe {
                    Ok(Functions {
                        $($name: *library
                            .get(concat!(stringify!($name), "\0").as_bytes())
                            .map_err(|_| stringify!($name))?,)*
                        nvrtcGetErrorString: *library
                            .get(b"nvrtcGetErrorString\0")
                            .map_err(|_| "nvrtcGetErrorString")?,
                    })
                }
            }
        }
    };
}

functions! {
    nvrtcVersion(*mut c_int, *mut c_int);
    nvrtcGetNumSupportedArchs(*mut c_int);
    nvrtcGetSupportedArchs(*mut c_int);
    nvrtcCreateProgram(
        *mut Program, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char
    );
    nvrtcCompileProgram(Program, c_int, *const *const c_char);
    nvrtcDestroyProgram(*mut Program);
    nvrtcGetCUBINSize(Program, *mut usize);
    nvrtcGetCUBIN(Program, *mut c_char);
    nvrtcGetPTXSize(Program, *mut usize);
    nvrtcGetPTX(Program, *mut c_char);
    nvrtcGetProgramLogSize(Program, *mut usize);
    nvrtcGetProgramLog(Program, *mut c_char);
}

/// The compiler, loaded.
pub struct Nvrtc {
    functions: Functions,
    /// Its version, major and minor.
    pub version: (c_int, c_int),
    /// Architectures that it compiles for, as 10 × major + minor.
    pub architectures: Vec<c_int>,
    /// The place where it was found.
    pub place: String,
    /// Keeps it loaded.
    _library: Library,
}

/// The result of a compilation.
pub struct Compiled {
    /// Machine code or PTX.
    pub image: Vec<u8>,
    /// Messages of the compiler and the assembler.
    pub log: String,
}

/// Opens a library, with flags of the loader besides the usual ones.
///
/// # Errors
/// The reason why it cannot be used.
pub fn open(name: &Path, flags: c_int) -> std::result::Result<Nvrtc, String> {
    // SAFETY: the compiler's library may be loaded by every program.
    let library =
        unsafe { Library::open(Some(name), RTLD_NOW | flags) }.map_err(|error| error.to_string())?;
    let functions = Functions::of(&library).map_err(|missing| format!("it has no function `{missing}`"))?;
    let (mut major, mut minor, mut count) = (0, 0, 0);
    // SAFETY: results are local variables.
    let code = unsafe {
        match (functions.nvrtcVersion)(&mut major, &mut minor) {
            SUCCESS => (functions.nvrtcGetNumSupportedArchs)(&mut count),
            code => code,
        }
    };
    let mut architectures = vec![0; usize::try_from(count).unwrap_or(0)];
    // SAFETY: the vector has room for the number that was asked for.
    if code != SUCCESS || unsafe { (functions.nvrtcGetSupportedArchs)(architectures.as_mut_ptr()) } != SUCCESS
    {
        return Err(format!("it does not start: code {code}"));
    }
    let place = name.display().to_string();
    Ok(Nvrtc { functions, version: (major, minor), architectures, place, _library: library })
}

impl Nvrtc {
    /// The target for a device: machine code of its architecture, or text of the highest that is known and below.
    ///
    /// # Errors
    /// If the compiler knows none.
    pub fn target(&self, architecture: c_int) -> Result<ImageTarget> {
        if self.architectures.contains(&architecture) {
            return Ok(ImageTarget::Cubin(architecture));
        }
        let below = self.architectures.iter().copied().filter(|known| *known < architecture).max();
        below.map(ImageTarget::Ptx).ok_or_else(|| {
            Error::device(format!(
                "the compiler {} does not know the device's architecture sm_{architecture}",
                self.title()
            ))
            .with_help("install NVRTC of a CUDA version that supports the device: pip install nvidia-cuda-nvrtc-cu12")
        })
    }

    /// Its place and version, for messages.
    pub fn title(&self) -> String {
        format!("{} (NVRTC {}.{})", self.place, self.version.0, self.version.1)
    }

    /// Compiles a text to an image.
    ///
    /// # Errors
    /// If the text has mistakes; the error has the compiler's messages.
    pub fn compile(
        &self,
        name: &str,
        text: &str,
        target: ImageTarget,
        options: &[String],
    ) -> Result<Compiled> {
        let c_text = |text: &str| {
            CString::new(text).map_err(|_| Error::kernel(format!("the source of {name} has a zero byte")))
        };
        let (text, file) = (c_text(text)?, c_text(name)?);
        let options = options.iter().map(|option| c_text(option)).collect::<Result<Vec<_>>>()?;
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let mut program = std::ptr::null_mut();
        let nothing = std::ptr::null();
        // SAFETY: texts end with a zero; there are no headers.
        let code = unsafe {
            (self.functions.nvrtcCreateProgram)(
                &mut program,
                text.as_ptr(),
                file.as_ptr(),
                0,
                nothing,
                nothing,
            )
        };
        self.check(code, name)?;
        let program = Held { nvrtc: self, program };
        // SAFETY: the program was created, and there are as many options.
        let code = unsafe {
            (self.functions.nvrtcCompileProgram)(program.program, options.len() as c_int, options.as_ptr())
        };
        if code == COMPILATION {
            let log = program.log();
            return Err(Error::kernel(format!("the source of {name} does not compile:\n{}", log.trim_end()))
                .with_help(format!("the compiler is {}", self.title())));
        }
        self.check(code, name)?;
        let image = program.image(target).map_err(|code| self.failed(code, name))?;
        Ok(Compiled { image, log: program.log() })
    }

    fn check(&self, code: c_int, name: &str) -> Result<()> {
        if code == SUCCESS { Ok(()) } else { Err(self.failed(code, name)) }
    }

    #[cold]
    fn failed(&self, code: c_int, name: &str) -> Error {
        // SAFETY: it returns a constant that ends with a zero, for every code.
        let text = unsafe {
            let text = (self.functions.nvrtcGetErrorString)(code);
            if text.is_null() { c"no text" } else { CStr::from_ptr(text) }
        };
        Error::kernel(format!("the compiler {} failed on {name}: {}", self.place, text.to_string_lossy()))
            .with_help("if its builtins are not found, set LD_LIBRARY_PATH to its folder")
    }
}

/// A program of the compiler, destroyed when dropped.
struct Held<'a> {
    nvrtc: &'a Nvrtc,
    program: Program,
}

type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
type Content = unsafe extern "C" fn(Program, *mut c_char) -> c_int;

impl Held<'_> {
    fn log(&self) -> String {
        let functions = &self.nvrtc.functions;
        let bytes = self.read(functions.nvrtcGetProgramLogSize, functions.nvrtcGetProgramLog);
        let text = String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
        text.trim_end_matches('\0').to_owned()
    }

    fn image(&self, target: ImageTarget) -> std::result::Result<Vec<u8>, c_int> {
        let functions = &self.nvrtc.functions;
        match target.is_cubin() {
            true => self.read(functions.nvrtcGetCUBINSize, functions.nvrtcGetCUBIN),
            false => self.read(functions.nvrtcGetPTXSize, functions.nvrtcGetPTX),
        }
    }

    fn read(&self, size: Size, content: Content) -> std::result::Result<Vec<u8>, c_int> {
        let mut bytes = 0;
        // SAFETY: the program was created, and the result is a local variable.
        let code = unsafe { size(self.program, &mut bytes) };
        if code != SUCCESS {
            return Err(code);
        }
        let mut read = vec![0u8; bytes];
        // SAFETY: there is room for as many bytes as the compiler said.
        let code = unsafe { content(self.program, read.as_mut_ptr().cast()) };
        if code == SUCCESS { Ok(read) } else { Err(code) }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // SAFETY: the program was created, and is destroyed once.
        _ = unsafe { (self.nvrtc.functions.nvrtcDestroyProgram)(&mut self.program) };
    }
}
