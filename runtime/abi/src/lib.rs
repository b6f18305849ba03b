//! The C interface of a library of operators: lists, infers, runs and differentiates them.
//!
//! In: a library, and calls from C on tensors in foreign memory. Out: results in memory of the caller, or the code of an error and its
//! text. The header `opsmith_abi.h` documents each function; [design](../../../docs/design/abi.md). Must name no operator.

mod arguments;
mod call;
mod derivative;
mod device;
mod failure;
mod infer;
mod memory;
mod operators;
mod outputs;
pub mod structures;

pub use derivative::{
    Given, Lists, gradients, is_recorded_from_results, pull, recorded, second, tangents, track,
};
pub use device::numbers as device_numbers;
pub use memory::{over, over_on};
pub use operators::{facts, refusal, spelling};

pub use opsmith_core::abi::element;

use std::collections::HashMap;
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use opsmith_core::abi::VERSION;
#[doc(hidden)]
pub use opsmith_runtime::library::Library;
use structures::Api;

/// Exports the C interface of a library: the function `opsmith_abi` of the header. The crate is a `cdylib`.
#[macro_export]
macro_rules! export {
    ($library:expr) => {
        /// The table of the library's functions; null for a version that is not known here.
        #[unsafe(no_mangle)]
        pub extern "C" fn opsmith_abi(version: u32) -> *const $crate::structures::Api {
            static LIBRARY: &$crate::Library = &$library;
            $crate::api(version, LIBRARY)
        }
    };
}

/// The table of a library's functions, made once; null for a version that is not known here.
#[doc(hidden)]
pub fn api(version: u32, library: &'static Library) -> *const Api {
    static TABLES: Mutex<Option<HashMap<usize, &'static Api>>> = Mutex::new(None);
    if version != VERSION {
        return std::ptr::null();
    }
    let made = catch_unwind(AssertUnwindSafe(|| {
        let mut tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
        let address = std::ptr::from_ref(library).addr();
        let make = || -> &'static Api { Box::leak(Box::new(table(library))) };
        std::ptr::from_ref(*tables.get_or_insert_with(HashMap::new).entry(address).or_insert_with(make))
    }));
    made.unwrap_or(std::ptr::null())
}

fn table(library: &'static Library) -> Api {
    let text = |text: &str| CString::new(text).unwrap_or_default().into_raw().cast_const();
    let operators = operators::described(library);
    Api {
        size: size_of::<Api>(),
        version: VERSION,
        reserved: 0,
        library: text(library.name),
        fingerprint: text(library.fingerprint),
        operator_count: operators.len() as i64,
        operators: operators.as_ptr().cast(),
        find: operators::find,
        run: call::run,
        gradient: call::gradient,
        second_gradient: call::second_gradient,
        infer: infer::infer,
        release_inference: infer::release,
        error_text: failure::text,
        tangent: call::tangent,
        convert: call::convert,
    }
}
