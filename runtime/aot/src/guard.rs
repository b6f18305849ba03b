//! Calls into foreign code that may throw.
//!
//! In: a closure that calls a foreign function. Out: what it returned, or what was thrown. Rust cannot
//! catch a C++ exception, so `guard.cc` stands between. Must not know what is called.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::MaybeUninit;

/// Longest message of an exception in bytes, with its final zero.
const CAPACITY: usize = 2048;

unsafe extern "C-unwind" {
    fn opsmith_aot_guard(
        body: unsafe extern "C-unwind" fn(*mut c_void),
        data: *mut c_void,
        message: *mut c_char,
        capacity: usize,
    ) -> c_int;
    fn opsmith_aot_throw(message: *const c_char) -> !;
}

/// What a foreign function threw.
#[derive(Debug)]
pub(super) struct Thrown {
    /// `what()` of a `std::exception`, or the name of another type.
    pub text: String,
    /// Whether it was a `std::exception`.
    pub standard: bool,
}

/// Runs `body` and catches what it throws. It must not panic: only C++ exceptions can be caught.
#[inline]
pub(super) fn guarded<R, F: FnOnce() -> R>(body: F) -> Result<R, Thrown> {
    let mut call = Call { body: Some(body), result: MaybeUninit::<R>::uninit() };
    let mut message = [const { MaybeUninit::<c_char>::uninit() }; CAPACITY];
    let data = std::ptr::from_mut(&mut call).cast();
    // SAFETY: `run` gets the data it is made for; the message has the capacity that is given.
    let status = unsafe { opsmith_aot_guard(run::<R, F>, data, message.as_mut_ptr().cast(), CAPACITY) };
    match status {
        // SAFETY: `run` returned, so it has written the result.
        0 => Ok(unsafe { call.result.assume_init() }),
        _ => Err(thrown(&message, status)),
    }
}

struct Call<R, F> {
    body: Option<F>,
    result: MaybeUninit<R>,
}

/// # Safety
/// `data` points to a [`Call`] of these types.
unsafe extern "C-unwind" fn run<R, F: FnOnce() -> R>(data: *mut c_void) {
    // SAFETY: `data` points to a `Call` of these types by this function's contract; `guarded`, which made it, waits.
    let call = unsafe { &mut *data.cast::<Call<R, F>>() };
    if let Some(body) = call.body.take() {
        call.result.write(body());
    }
}

#[cold]
fn thrown(message: &[MaybeUninit<c_char>; CAPACITY], status: c_int) -> Thrown {
    // SAFETY: the guard wrote a text that ends in a zero within the capacity.
    let text = unsafe { CStr::from_ptr(message.as_ptr().cast()) };
    Thrown { text: text.to_string_lossy().into_owned(), standard: status == 1 }
}

/// Throws a C++ exception through the foreign frames above, to the [`guarded`] call around them. Rust
/// frames on the way drop what they own.
///
/// # Safety
/// The caller was called, through foreign frames that may unwind, by [`guarded`].
pub(super) unsafe fn throw(message: &str) -> ! {
    let text = CString::new(message.replace('\0', " ")).unwrap_or_default();
    // SAFETY: the text ends in a zero and is copied by the exception; the caller promises the rest.
    unsafe { opsmith_aot_throw(text.as_ptr()) }
}
