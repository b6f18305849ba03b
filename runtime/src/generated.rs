//! The runtime's interface to generated code.
//!
//! In: items that only generated code and tests of it call: entry points of calls, types of declared kernels, the C
//! interface. Out: the same items under one path, and the macros of generated code, which Rust puts at the root of the crate.
//! Hidden from documentation, and changed with the generator. No module of the runtime but `internals` may use
//! this one.

mod arguments;
mod options;
mod rows;
mod tables;

pub use arguments::{KernelArgument, arguments};

/// Entry points of operator calls.
pub mod call {
    pub use crate::call::*;
}

/// Types of declared kernels.
pub mod declared {
    pub use crate::declared::*;
}

/// Loops over elements of device memory.
pub mod device_loop {
    pub use crate::device_loop::{Constant, DeviceLoop, copy, run};
}

/// Loops over elements of host memory.
pub mod pointwise {
    pub use crate::copy::kernel::kernel as copy;
    pub use crate::pointwise::*;
}

/// The C interface of kernels.
pub mod foreign {
    pub use crate::foreign::*;
}
