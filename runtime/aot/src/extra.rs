//! The object that kernels read attributes from, and leave workspace sizes and data in.
//!
//! In: attributes; functions of a library. Out: an `AotExtra` or an `AotExtraDualABI`, and calls with its address. Both
//! are classes of C++ (`cpp/`), which also catches exceptions; no value of a C++ type is known here. Must not know tensors.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use super::attributes::Attributes;
use super::elf::{Names, StringAbi};
use super::library::Library;
use super::lookup::Finder;

/// Longest message of an exception in bytes, with its final zero.
const CAPACITY: usize = 2048;

/// The end of a call; as `Status` of `cpp/calls.cc`.
const RETURNED: c_int = 0;
const STANDARD: c_int = 1;
const MISTAKEN: c_int = 3;
const DELETED: c_int = 4;

/// The end of a foreign function that did not return as it may.
#[derive(Debug)]
pub(super) enum Failure {
    /// A `std::exception`, with its `what()`.
    Exception(String),
    /// Another exception, with the name of its type.
    OtherException(String),
    /// The function deleted the object, which the host owns.
    Deleted,
}

/// The arrays of sizes and dtypes that functions of kernels take, with an entry for each operand.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ArrayPointers {
    pub ndims: *mut c_int,
    pub shapes: *mut *mut i64,
    pub dtypes: *mut *const c_char,
}

/// The object of C++.
#[repr(C)]
struct Object {
    _private: [u8; 0],
}

/// Memory for the text of an exception.
#[repr(C)]
#[derive(Clone, Copy)]
struct Message {
    text: *mut c_char,
    capacity: usize,
}

unsafe extern "C" {
    fn opsmith_aot_extra_new(new_strings: bool, guess: bool, attributes: *const Finder) -> *mut Object;
    fn opsmith_aot_extra_become_dual(object: *mut Object);
    fn opsmith_aot_extra_delete(object: *mut Object);
    fn opsmith_aot_extra_workspaces(object: *const Object, count: *mut usize) -> *const usize;
}

// A thread that is ended while a kernel runs unwinds through these.
unsafe extern "C-unwind" {
    fn opsmith_aot_extra_destroy_data(object: *mut Object);
    fn opsmith_aot_main(
        object: *mut Object,
        function: *const c_void,
        count: c_int,
        params: *mut *mut c_void,
        arrays: *const ArrayPointers,
        stream: *mut c_void,
        code: *mut c_int,
        message: Message,
    ) -> c_int;
    fn opsmith_aot_init(
        object: *mut Object,
        function: *const c_void,
        arrays: *const ArrayPointers,
        code: *mut c_int,
        message: Message,
    ) -> c_int;
    fn opsmith_aot_infer_shape(
        object: *mut Object,
        function: *const c_void,
        several: bool,
        arrays: *const ArrayPointers,
        out: *mut c_void,
        receive: unsafe extern "C" fn(*mut c_void, *const i64, usize),
        message: Message,
    ) -> c_int;
    fn opsmith_aot_infer_type(
        object: *mut Object,
        function: *const c_void,
        several: bool,
        types: *const c_int,
        count: usize,
        out: *mut c_void,
        receive: unsafe extern "C" fn(*mut c_void, c_int),
        message: Message,
    ) -> c_int;
}

/// An object that C++ takes for an `AotExtra`, or an `AotExtraDualABI`.
pub(super) struct Extra {
    object: NonNull<Object>,
    /// Behind an address that the object has.
    _attributes: Box<Attributes>,
}

// SAFETY: the object's attributes are plain data; the kernel's data is used by one call at a time, since a call borrows
// the object exclusively.
unsafe impl Send for Extra {}

impl Extra {
    /// An object with these attributes, of the class that a library was built for.
    pub fn new(attributes: Attributes, names: Names) -> Extra {
        let attributes = Box::new(attributes);
        let finder = Finder::of(&attributes);
        let (strings, guess) = match names {
            Names::Strings(strings) => (strings, false),
            Names::Either(strings) => (strings, true),
            Names::Vectors => (StringAbi::New, false),
        };
        // SAFETY: `finder` is copied; the attributes that it leads to live as long as the object, which `Drop` deletes.
        let object = unsafe {
            let object = opsmith_aot_extra_new(strings == StringAbi::New, guess, &raw const finder);
            if names == Names::Vectors {
                opsmith_aot_extra_become_dual(object);
            }
            object
        };
        Extra {
            object: NonNull::new(object).expect("`new` returns an object or throws"),
            _attributes: attributes,
        }
    }

    /// Calls a function of a library, by a function of C++ that gives it the address of the object. A library that turns
    /// out to take it for an object of the other class gets that one, and the function is called again.
    #[inline]
    fn call(
        &mut self,
        library: &Library,
        mut body: impl FnMut(*mut Object, Message) -> c_int,
    ) -> Result<(), Failure> {
        let mut text = [const { MaybeUninit::<c_char>::uninit() }; CAPACITY];
        let message = Message { text: text.as_mut_ptr().cast(), capacity: CAPACITY };
        let mut status = body(self.object.as_ptr(), message);
        if status == MISTAKEN {
            library.note_vectors();
            status = body(self.object.as_ptr(), message);
        }
        match status {
            RETURNED => Ok(()),
            _ => Err(failure(&text, status)),
        }
    }

    /// Calls `F` of a library, and returns its code.
    ///
    /// # Errors
    /// An exception of the function, or that it deleted the object.
    ///
    /// # Safety
    /// The arrays have an entry for each input and output. Each of the addresses leads to memory of its operand's size, or
    /// is null for an input that is absent; inputs may be read and outputs and workspaces written meanwhile.
    #[inline]
    pub unsafe fn main(
        &mut self,
        library: &Library,
        params: &mut [*mut c_void],
        arrays: ArrayPointers,
        stream: *mut c_void,
    ) -> Result<c_int, Failure> {
        let (function, mut code) = (library.main, 0);
        let (count, params) = (params.len() as c_int, params.as_mut_ptr());
        self.call(library, |object, message| {
            // SAFETY: the library's function has this type, and the caller promises its arguments.
            unsafe {
                opsmith_aot_main(
                    object,
                    function,
                    count,
                    params,
                    &raw const arrays,
                    stream,
                    &raw mut code,
                    message,
                )
            }
        })?;
        Ok(code)
    }

    /// Calls `FInit` of a library, if there is one, and returns its code.
    ///
    /// # Errors
    /// An exception of the function, or that it deleted the object.
    ///
    /// # Safety
    /// The arrays have an entry for each input and output.
    pub unsafe fn init(&mut self, library: &Library, arrays: ArrayPointers) -> Result<c_int, Failure> {
        let Some(function) = library.init else { return Ok(0) };
        let mut code = 0;
        self.call(library, |object, message| {
            // SAFETY: the library's function has this type, and the caller promises its arguments.
            unsafe { opsmith_aot_init(object, function, &raw const arrays, &raw mut code, message) }
        })?;
        Ok(code)
    }

    /// The shapes of outputs by a function `FInferShape`, of which the type depends on whether there are several.
    ///
    /// # Errors
    /// An exception of the function, or that it deleted the object.
    ///
    /// # Safety
    /// It is a function of the library for as many outputs, and the arrays have an entry for each input.
    pub unsafe fn infer_shape(
        &mut self,
        library: &Library,
        function: *const c_void,
        several: bool,
        arrays: ArrayPointers,
    ) -> Result<Vec<Vec<i64>>, Failure> {
        let mut shapes = Vec::new();
        let out = (&raw mut shapes).cast();
        self.call(library, |object, message| {
            // SAFETY: the caller promises the function's type and its arguments; `out` is for `receive_shape`.
            unsafe {
                opsmith_aot_infer_shape(
                    object,
                    function,
                    several,
                    &raw const arrays,
                    out,
                    receive_shape,
                    message,
                )
            }
        })?;
        Ok(shapes)
    }

    /// The numbers of the types of outputs by a function `FInferType`, of which the type depends on whether there are
    /// several.
    ///
    /// # Errors
    /// An exception of the function, or that it deleted the object.
    ///
    /// # Safety
    /// It is a function of the library for as many outputs.
    pub unsafe fn infer_type(
        &mut self,
        library: &Library,
        function: *const c_void,
        several: bool,
        types: &[c_int],
    ) -> Result<Vec<c_int>, Failure> {
        let mut inferred = Vec::new();
        let out = (&raw mut inferred).cast();
        self.call(library, |object, message| {
            let (types, count) = (types.as_ptr(), types.len());
            // SAFETY: the caller promises the function's type; `out` is for `receive_type`.
            unsafe {
                opsmith_aot_infer_type(object, function, several, types, count, out, receive_type, message)
            }
        })?;
        Ok(inferred)
    }

    /// The sizes of workspaces in bytes that the kernel asked for.
    pub fn workspaces(&self) -> &[usize] {
        let mut count = 0;
        // SAFETY: the object lives, and its sizes stay where they are while it is borrowed.
        unsafe {
            let sizes = opsmith_aot_extra_workspaces(self.object.as_ptr(), &raw mut count);
            if count == 0 { &[] } else { std::slice::from_raw_parts(sizes, count) }
        }
    }

    /// Destroys the object that the kernel left here.
    pub fn destroy(&mut self) {
        // SAFETY: the kernel made its object with `new` and left it to this one. The library that has its destructor is
        // still open: the owner of both drops this one first.
        unsafe { opsmith_aot_extra_destroy_data(self.object.as_ptr()) };
    }
}

impl Drop for Extra {
    fn drop(&mut self) {
        self.destroy();
        // SAFETY: `new` made the object, and it is not used any more.
        unsafe { opsmith_aot_extra_delete(self.object.as_ptr()) };
    }
}

#[cold]
fn failure(message: &[MaybeUninit<c_char>; CAPACITY], status: c_int) -> Failure {
    if status == DELETED {
        return Failure::Deleted;
    }
    // SAFETY: for an exception C++ wrote a text that ends in a zero within the capacity.
    let text = unsafe { CStr::from_ptr(message.as_ptr().cast()) }.to_string_lossy().into_owned();
    if status == STANDARD { Failure::Exception(text) } else { Failure::OtherException(text) }
}

/// # Safety
/// `out` leads to a `Vec<Vec<i64>>`, and so many sizes are at `sizes`, which is null only if there are none.
unsafe extern "C" fn receive_shape(out: *mut c_void, sizes: *const i64, count: usize) {
    // SAFETY: the caller promises both.
    let (shapes, sizes) = unsafe {
        let sizes = if count == 0 { &[] } else { std::slice::from_raw_parts(sizes, count) };
        (&mut *out.cast::<Vec<Vec<i64>>>(), sizes)
    };
    shapes.push(sizes.to_vec());
}

/// # Safety
/// `out` leads to a `Vec<c_int>`.
unsafe extern "C" fn receive_type(out: *mut c_void, ty: c_int) {
    // SAFETY: the caller promises it.
    unsafe { (*out.cast::<Vec<c_int>>()).push(ty) };
}
