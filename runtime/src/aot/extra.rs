//! `AotExtra`: what a kernel gets its attributes from, and leaves its workspace sizes and data in.
//!
//! In: attributes. Out: an object whose memory is what C++ code compiled against the header expects: a
//! table of virtual functions, the sizes of workspaces, the kernel's data. The order of functions and
//! fields is that of `kernels/include/custom_aot_extra.h`, and of the header that others build against.
//! Must not know tensors.

use std::ffi::c_void;

use super::attributes::{AttrType, AttrValue, Attributes};
use super::guard::throw;
#[cfg(target_arch = "x86_64")]
use super::strings::OldString;
use super::strings::{AnyString, NewString, RawVector, StringAbi};

/// An object that C++ takes for an `AotExtra`.
#[repr(C)]
pub(super) struct Extra {
    functions: *const Functions,
    workspace: RawVector,
    kernel_data: *mut KernelData,
    /// Behind what C++ knows of.
    attributes: Attributes,
}

// SAFETY: attributes are plain data; the kernel's data is used by one call at a time, which the owner of
// the object sees to.
unsafe impl Send for Extra {}

/// The kernel's own object; all that is known of it is that its destructor is virtual.
#[repr(C)]
struct KernelData {
    functions: *const KernelDataFunctions,
}

#[repr(C)]
struct KernelDataFunctions {
    destroy: unsafe extern "C-unwind" fn(*mut KernelData),
    destroy_and_free: unsafe extern "C-unwind" fn(*mut KernelData),
}

impl Extra {
    /// An object with these attributes, for a library with that layout of strings. C++ keeps its address.
    pub fn new(attributes: Attributes, strings: StringAbi) -> Box<Extra> {
        let functions = match strings {
            StringAbi::Old => &OLD.functions,
            StringAbi::New => &NEW.functions,
        };
        Box::new(Extra {
            functions,
            workspace: RawVector::EMPTY,
            kernel_data: std::ptr::null_mut(),
            attributes,
        })
    }

    /// What to pass to the kernel.
    pub fn as_raw(&mut self) -> *mut c_void {
        std::ptr::from_mut(self).cast()
    }

    /// The sizes of workspaces in bytes that the kernel asked for.
    pub fn workspaces(&self) -> &[usize] {
        // SAFETY: C++ writes a vector of `size_t` here.
        unsafe { self.workspace.elements() }
    }
}

impl Extra {
    /// Destroys what the kernel left here.
    pub fn destroy(&mut self) {
        let data = std::mem::replace(&mut self.kernel_data, std::ptr::null_mut());
        if !data.is_null() {
            // SAFETY: the kernel made the object with `new` and left it to this one. The library that has
            // its destructor is still open: who owns both drops this one first. An exception from a
            // destructor ends here.
            let _ = super::guard::guarded(|| unsafe { ((*(*data).functions).destroy_and_free)(data) });
        }
    }
}

impl Drop for Extra {
    fn drop(&mut self) {
        self.destroy();
        // SAFETY: the buffer was made by the kernel and left to this object.
        unsafe { self.workspace.free() };
    }
}

/// The table of virtual functions with what stands before it.
#[repr(C)]
struct Table {
    offset_to_top: isize,
    type_info: usize,
    functions: Functions,
}

type This = *mut Extra;
type Name = *const AnyString;

/// The virtual functions in the order of their declaration. A string returned by value is written where
/// the first, hidden argument says.
#[repr(C)]
struct Functions {
    destroy: unsafe extern "C" fn(This),
    destroy_and_free: unsafe extern "C" fn(This),
    has: unsafe extern "C" fn(This, Name) -> bool,
    bool: unsafe extern "C-unwind" fn(This, Name) -> bool,
    int: unsafe extern "C-unwind" fn(This, Name) -> i64,
    float: unsafe extern "C-unwind" fn(This, Name) -> f32,
    str: StringFunction,
    ints: unsafe extern "C-unwind" fn(This, Name) -> RawVector,
    floats: unsafe extern "C-unwind" fn(This, Name) -> RawVector,
    int_lists: unsafe extern "C-unwind" fn(This, Name) -> RawVector,
    float_lists: unsafe extern "C-unwind" fn(This, Name) -> RawVector,
}

/// Returning a class by value: where a C function has its result, C++ passes the address of the result's
/// memory. On x86-64 it is the first argument, and returned; a struct of more than 16 bytes is returned
/// the same way on every processor, which serves vectors and new strings.
#[repr(C)]
union StringFunction {
    by_value: unsafe extern "C-unwind" fn(This, Name) -> NewString,
    #[cfg(target_arch = "x86_64")]
    by_address: unsafe extern "C-unwind" fn(*mut OldString, This, Name) -> *mut OldString,
}

macro_rules! table {
    ($str:expr) => {
        Table {
            offset_to_top: 0,
            type_info: 0,
            functions: Functions {
                destroy: keep,
                destroy_and_free: keep,
                has,
                bool: get_bool,
                int: get_int,
                float: get_float,
                str: $str,
                ints: get_ints,
                floats: get_floats,
                int_lists: get_int_lists,
                float_lists: get_float_lists,
            },
        }
    };
}

static NEW: Table = table!(StringFunction { by_value: get_new_string });
#[cfg(target_arch = "x86_64")]
static OLD: Table = table!(StringFunction { by_address: get_old_string });
/// Where the address of a result is in a register that C functions cannot name.
#[cfg(not(target_arch = "x86_64"))]
static OLD: Table = table!(StringFunction { by_value: refuse_old_string });

// SAFETY: functions and zeros.
unsafe impl Sync for Table {}

/// The object belongs to the host: a kernel that destroys it changes nothing.
unsafe extern "C" fn keep(_: This) {}

unsafe extern "C" fn has(this: This, name: Name) -> bool {
    // SAFETY: C++ passes the object and a name; both live for the call.
    let (extra, name) = unsafe { (&*this, AnyString::read(name)) };
    extra.attributes.get(&name).is_some()
}

/// The value that a kernel asked for, or an exception.
///
/// # Safety
/// `this` and `name` are what C++ passed, called by `guarded`.
unsafe fn value(this: This, name: Name, ty: AttrType) -> AttrValue {
    // SAFETY: both live for the call.
    let (extra, name) = unsafe { (&*this, AnyString::read(name)) };
    match extra.attributes.typed(&name, ty) {
        Ok(value) => value,
        // SAFETY: kernels are called by `guarded` only.
        Err(error) => unsafe { throw(error.message()) },
    }
}

macro_rules! getters {
    ($($name:ident: $variant:ident($value:ident) -> $ty:ty = $result:expr;)*) => {$(
        unsafe extern "C-unwind" fn $name(this: This, name: Name) -> $ty {
            // SAFETY: as C++ passed them.
            match unsafe { value(this, name, AttrType::$variant) } {
                AttrValue::$variant($value) => $result,
                // SAFETY: kernels are called by `guarded` only.
                _ => unsafe { throw("an attribute is not of the type that it was converted to") },
            }
        }
    )*};
}

getters! {
    get_bool: Bool(value) -> bool = value;
    get_int: Int(value) -> i64 = value;
    get_float: Float(value) -> f32 = value as f32;
    get_new_string: Str(text) -> NewString = NewString::new(&text);
    get_ints: Ints(list) -> RawVector = RawVector::of(list);
    get_floats: Floats(list) -> RawVector = RawVector::of(narrow(list));
    get_int_lists: IntLists(lists) -> RawVector = RawVector::of(lists.to_vecs().into_iter().map(RawVector::of).collect());
    get_float_lists: FloatLists(lists) -> RawVector =
        RawVector::of(lists.to_vecs().into_iter().map(|list| RawVector::of(narrow(list))).collect());
}

#[cfg(not(target_arch = "x86_64"))]
unsafe extern "C-unwind" fn refuse_old_string(_: This, _: Name) -> NewString {
    // SAFETY: kernels are called by `guarded` only.
    unsafe {
        throw(
            "on this processor attributes that are texts need a library compiled with _GLIBCXX_USE_CXX11_ABI=1",
        )
    }
}

#[cfg(target_arch = "x86_64")]
unsafe extern "C-unwind" fn get_old_string(result: *mut OldString, this: This, name: Name) -> *mut OldString {
    // SAFETY: as C++ passed them.
    match unsafe { value(this, name, AttrType::Str) } {
        // SAFETY: the caller gave the memory of its result.
        AttrValue::Str(text) => unsafe { result.write(OldString::new(&text)) },
        // SAFETY: kernels are called by `guarded` only.
        _ => unsafe { throw("an attribute is not of the type that it was converted to") },
    }
    result
}

fn narrow(list: Vec<f64>) -> Vec<f32> {
    list.into_iter().map(|value| value as f32).collect()
}
