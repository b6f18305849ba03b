//! Parts in processes of their own, and memory of a device as bytes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use opsmith_runtime::backend::{self, Address, DeviceMemory, DeviceRuntime, Elements, Work};
use opsmith_runtime::copy::convert_elements;
use opsmith_runtime::{DType, Device, Error, Result};

/// The variable that names the part of a process.
pub const PART: &str = "CUDA_TEST_PART";

/// A name and the work of a process.
pub type Part = (&'static str, fn());

/// The folder of the stand-ins.
pub static STAND_INS: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = empty("stand-ins");
    opsmith_stand_in::driver(&folder);
    opsmith_stand_in::nvrtc(&folder);
    opsmith_stand_in::cublaslt(&folder);
    opsmith_stand_in::cufft(&folder);
    opsmith_stand_in::cudnn(&folder);
    folder
});

/// The folder of images of this run: another run may have other stand-ins, which no key of an image says.
static CACHE: LazyLock<PathBuf> = LazyLock::new(|| empty("cache"));

/// An empty folder of this program.
pub fn empty(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cuda-devices-{name}"));
    _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Does a part with the libraries of a folder.
pub fn start(part: &str, folder: &Path, variables: &[(&str, &str)]) -> Output {
    start_of(&std::env::current_exe().unwrap(), part, folder, variables)
}

/// Does a part of a program with the libraries of a folder.
pub fn start_of(program: &Path, part: &str, folder: &Path, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(program);
    command.args(["--exact", "worker", "--nocapture", "--test-threads=1"]).env(PART, part);
    for variable in [
        "OPSMITH_NVRTC",
        "OPSMITH_CUBLASLT",
        "OPSMITH_CUFFT",
        "OPSMITH_CUDNN",
        "OPSMITH_CUDA_LIBRARIES",
        "OPSMITH_CUDA_TF32",
        "OPSMITH_CUDA_SYNC",
        "OPSMITH_CUDA_MEMORY_CAP",
        "CUDA_HOME",
        "CUDA_PATH",
        "CUDA_VISIBLE_DEVICES",
        "OPSMITH_CUDA_KEEP_TEXT",
        "OPSMITH_CUDA_IMAGES",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
    ] {
        command.env_remove(variable);
    }
    command.env("LD_LIBRARY_PATH", folder).env("OPSMITH_CACHE_DIR", &*CACHE);
    command.envs(variables.iter().copied()).output().unwrap()
}

/// Does a part that must succeed without a request that the stand-in refuses. Returns its output.
#[track_caller]
pub fn done(part: &str, variables: &[(&str, &str)]) -> String {
    let output = start(part, &STAND_INS, variables);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains(&format!("DONE {part}")), "{part}: {text}\n{errors}");
    assert!(text.contains(" refused=0"), "{part}: {text}\n{errors}");
    text
}

/// Checks that an error has some texts.
#[track_caller]
pub fn says<T>(result: Result<T>, texts: &[&str]) -> Error {
    let Err(error) = result else { panic!("an error with {texts:?} was expected") };
    let whole = error.to_string();
    for text in texts {
        assert!(whole.contains(text), "no `{text}` in: {whole}");
    }
    error
}

/// The first device.
pub const DEVICE: Device = Device::cuda(0);

/// The runtime of the devices.
pub fn runtime() -> &'static dyn DeviceRuntime {
    backend::of(DEVICE).unwrap()
}

/// Memory of a device with these bytes, in this thread's stream.
pub fn upload(device: Device, bytes: &[u8]) -> DeviceMemory {
    let memory = DeviceMemory::new(device, bytes.len()).unwrap();
    let work = Work::on(device).unwrap();
    work.follow(memory.last_use()).unwrap();
    let (to, from) = (on(device, memory.start()), on(Device::CPU, bytes.as_ptr().cast_mut()));
    // SAFETY: both sides have as many bytes; the memory is kept until its last use.
    unsafe { work.runtime().transfer(work.queue(), to, from, bytes.len()).unwrap() };
    memory.note_use(&work).unwrap();
    memory
}

/// The bytes of memory of a device.
///
/// # Errors
/// Errors of the work before.
pub fn download(memory: &DeviceMemory, bytes: usize) -> Result<Vec<u8>> {
    let mut host = vec![0u8; bytes];
    let work = Work::on(memory.device())?;
    work.follow(memory.last_use())?;
    let (to, from) = (on(Device::CPU, host.as_mut_ptr()), on(memory.device(), memory.start()));
    // SAFETY: both sides have as many bytes, and stay until the wait.
    unsafe { work.runtime().transfer(work.queue(), to, from, bytes)? };
    memory.note_use(&work)?;
    work.wait()?;
    Ok(host)
}

/// An address on a device.
pub fn on(device: Device, start: *mut u8) -> Address {
    Address { device, start }
}

/// A layout inside a buffer: the first element, sizes and strides in elements.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'a> {
    /// Position of the first element.
    pub first: usize,
    /// Number of elements along each dimension.
    pub sizes: &'a [i64],
    /// Strides in elements.
    pub strides: &'a [i64],
}

impl<'a> Layout<'a> {
    /// The elements of the layout in a buffer.
    pub fn of(self, start: *mut u8, dtype: DType) -> Elements<'a> {
        let start = start.wrapping_add(self.first * dtype.size());
        Elements { start, dtype, sizes: self.sizes, strides: self.strides }
    }
}

/// Elements of a dtype as the host converts them from these numbers.
pub fn elements(numbers: &[f64], dtype: DType) -> Vec<u8> {
    let mut bytes = vec![0u8; numbers.len() * dtype.size() + 16];
    let sizes = [numbers.len() as i64];
    // Aligned for any dtype.
    let offset = bytes.as_ptr().align_offset(16);
    let start = bytes[offset..].as_mut_ptr();
    let to = Elements { start, dtype, sizes: &sizes, strides: &[1] };
    let from = Elements {
        start: numbers.as_ptr().cast_mut().cast(),
        dtype: DType::F64,
        sizes: &sizes,
        strides: &[1],
    };
    // SAFETY: both sides have as many elements.
    unsafe { convert_elements(to, from).unwrap() };
    bytes[offset..offset + numbers.len() * dtype.size()].to_vec()
}

/// Compares elements bit by bit, but for NaN, which has many.
#[track_caller]
pub fn assert_same(found: &[u8], expected: &[u8], dtype: DType, context: &str) {
    assert_eq!(found.len(), expected.len(), "{context}");
    let part = if dtype.is_complex() { dtype.size() / 2 } else { dtype.size() };
    let is_nan = |bytes: &[u8]| match dtype {
        DType::F16 => half(bytes) & 0x7FFF > 0x7C00,
        DType::BF16 => half(bytes) & 0x7FFF > 0x7F80,
        DType::F32 | DType::C64 => f32::from_ne_bytes(bytes.try_into().unwrap()).is_nan(),
        DType::F64 | DType::C128 => f64::from_ne_bytes(bytes.try_into().unwrap()).is_nan(),
        _ => false,
    };
    for (position, (found, expected)) in
        std::iter::zip(found.chunks_exact(part), expected.chunks_exact(part)).enumerate()
    {
        let same = found == expected || is_nan(found) && is_nan(expected);
        assert!(same, "{context}: element {position}: {found:x?}, and not {expected:x?}");
    }
}

fn half(bytes: &[u8]) -> u16 {
    u16::from_ne_bytes(bytes.try_into().unwrap())
}
