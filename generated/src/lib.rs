//! Tensor operators, generated from `ops.yaml`.
//!
//! Every operator is a function, a method of [`Tensor`] (through [`TensorOps`]) and a name for
//! [`call`]; where the spec says so also an in-place form (`add_`) and one that writes into a given
//! tensor (`add_out`).
//!
//! ```
//! use opsmith::{Tensor, TensorOps};
//!
//! # fn main() -> opsmith::Result<()> {
//! let a = Tensor::of(&[1.0f32, 2.0, 3.0]);
//! let b = a.mul(&a)?;
//! assert_eq!(b.to_vec::<f32>()?, [1.0, 4.0, 9.0]);
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! | feature | content |
//! |---|---|
//! | `graph` | `opsmith::graph`: functions traced, checked, planned, saved and run as graphs |
//! | `aot` | `opsmith::aot`, and entries with `dispatch: {CPU: "aot:…"}`: kernels compiled and loaded while a program runs |
//! | `cuda` | tensors on CUDA devices, and `opsmith::cuda`: their properties, memory and synchronisation |
//! | `profile` | `opsmith::profile`: tables, trees, traces, reports and differences of recorded calls |
//! | `families` | all families of operators: the six features below |
//! | `fft` | Fourier transforms, windows, borders |
//! | `linalg` | factors of matrices, systems, determinants, norms |
//! | `nn` | activations, losses, normalisation, attention, convolution, pooling, recurrent layers, dropout |
//! | `random` | random numbers, and activations, some of which draw them |
//! | `statistics` | medians, quantiles, histograms, cumulative extremes |
//! | `vision` | resizing and sampling of images |
//! | `ndarray` | conversions between tensors and arrays of the crate `ndarray` |
//! | `tracing` | `opsmith::profile::report_to_tracing`: calls as spans of the crate `tracing` |
//!
//! `graph`, `aot` and `families` are on by default. Without them a program has tensors, the operators that belong to no family,
//! gradients, and nothing that it does not use: `opsmith = { version = "0.1", default-features = false, features = ["linalg"] }`.

mod index;

pub use index::{Ellipsis, Index, IndexOp, Indices, NewAxis};
pub use opsmith_kernels as kernels;
pub use opsmith_runtime as runtime;
pub use opsmith_runtime::{
    Arg, Backend, Complex32, Complex64, DType, Device, Element, Error, ErrorKind, Generator, Lists,
    MemoryFormat, Result, Scalar, Scratch, Tensor, TensorOrScalar, Text, Value, View, ViewMut, autograd,
};

/// A function that runs eagerly also runs as a graph: every shape and dtype is known, and memory is planned, before
/// anything runs.
///
/// ```
/// use opsmith::graph::{Graph, InputSpec, Passes};
/// use opsmith::{DType, Tensor, TensorOps};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let weight = Tensor::from_slice(&[0.5f32; 12], &[4, 3])?;
/// let model = |x: &[Tensor]| x[0].matmul(&weight)?.relu();
/// let x = InputSpec::new(DType::F32, ["batch".into(), 4.into()]).named("x");
/// let graph = Graph::trace(model, [x])?.optimize(&Passes::all());
/// graph.check_at(&[("batch", 64)])?;
/// assert!(graph.describe().contains("(batch, 3)"));
/// let outputs = graph.run(&[opsmith::ones([2, 4])?])?;
/// assert_eq!(outputs[0].to_vec::<f32>()?, [2.0; 6]);
/// # Ok(())
/// # }
/// ```
///
/// [`GraphBuilder`](opsmith_graph::GraphBuilder) makes one of calls by name, without a function:
///
/// ```
/// use opsmith::DType;
/// use opsmith::graph::{GraphBuilder, InputSpec};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut builder = GraphBuilder::new();
/// let x = builder.input(InputSpec::new(DType::F32, ["batch".into(), 64.into()]));
/// let square = builder.call("mul.Tensor", [x.into(), x.into()]);
/// let graph = builder.finish([square])?;
/// assert_eq!(graph.memory_at(&[("batch", 16)])?.results, 16 * 64 * 4);
/// # Ok(())
/// # }
/// ```
#[cfg(feature = "graph")]
#[doc(inline)]
pub use opsmith_graph as graph;

/// CUDA devices: properties, memory, synchronisation. With this feature, tensors move to them.
///
/// Products of matrices are computed by NVIDIA's library cuBLASLt, Fourier transforms by cuFFT, convolutions by cuDNN,
/// where they are found (in the process, `CUDA_HOME`, the loader's places or Python's packages: `pip install nvidia-cublas nvidia-cufft
/// nvidia-cudnn-cu13`), else by kernels of opsmith. [`libraries`](cuda::libraries) tells; the variable
/// `OPSMITH_CUDA_LIBRARIES` chooses.
///
/// ```no_run
/// use opsmith::{Device, Tensor, TensorOps};
///
/// # fn main() -> opsmith::Result<()> {
/// let x = Tensor::of(&[1.0f32, 2.0, 3.0]).to_device(Device::cuda(0))?;
/// let y = x.exp()?.add(&x)?;
/// println!("{y}");
/// println!("{} bytes in use", opsmith::cuda::memory_statistics(0)?.live_bytes);
/// # Ok(())
/// # }
/// ```
#[cfg(feature = "cuda")]
#[doc(inline)]
pub use opsmith_cuda as cuda;

/// Which operator is slow, which code it is, how the call is repeated, and whether a change helped.
///
/// ```
/// use opsmith::profile::{Group, profile};
/// use opsmith::{Tensor, TensorOps};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let x = Tensor::of(&[1.0f32, 2.0, 3.0]);
/// let (result, profile) = profile(|| x.log_softmax(0))?;
/// result?;
/// let table = profile.key_averages(Group::Operator).table();
/// assert!(table.contains("_log_softmax"));
/// # Ok(())
/// # }
/// ```
#[cfg(feature = "profile")]
#[doc(inline)]
pub use opsmith_profile as profile;

#[cfg(feature = "aot")]
#[doc(inline)]
pub use opsmith_aot as aot;
#[cfg(feature = "aot")]
#[doc(hidden)]
pub use opsmith_aot::spec_kernel;

/// Stands in the place of a custom kernel that this build of the library has no compiler and loader for.
#[cfg(not(feature = "aot"))]
#[doc(hidden)]
#[macro_export]
macro_rules! spec_kernel {
    ($call:expr, $path:expr, $file:expr, $function:expr, $target:expr) => {
        compile_error!(concat!(
            "the kernel `",
            $function,
            "` in ",
            $file,
            " is compiled while the program runs, which the feature `aot` of `opsmith` does: add \"aot\" to its features \
             in Cargo.toml"
        ))
    };
}

/// Includes the operators that a crate's build script generated with `opsmith_codegen::build`.
///
/// In the root of the crate, next to a module `kernels`:
///
/// ```ignore
/// pub mod kernels;
///
/// opsmith::include_ops!();
/// ```
#[macro_export]
macro_rules! include_ops {
    () => {
        include!(concat!(env!("OUT_DIR"), "/opsmith/lib.rs"));
    };
}

include_ops!();

/// The programs of the guide are tests.
#[cfg(all(doctest, feature = "graph"))]
#[doc = include_str!("../graphs.md")]
mod guide {}

/// The same for the guide of the profiler.
#[cfg(all(doctest, feature = "profile"))]
#[doc = include_str!("../profiler.md")]
mod profiler_guide {}

/// The same for the pages of the guide of each subject.
#[cfg(all(doctest, feature = "aot", feature = "graph"))]
mod guide_pages {
    #[doc = include_str!("../guide/install.md")]
    mod install {}
    #[doc = include_str!("../guide/derivatives.md")]
    mod derivatives {}
    #[doc = include_str!("../guide/inference.md")]
    mod inference {}
    #[doc = include_str!("../guide/custom-kernels.md")]
    mod custom_kernels {}
    #[doc = include_str!("../guide/devices.md")]
    mod devices {}
    #[doc = include_str!("../guide/backend.md")]
    mod backend {}
}
