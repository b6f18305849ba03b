//! The virtual functions of `AotExtra` and of `AotExtraDualABI`, by which kernels read their attributes.
//!
//! In: the address of an object and a name, as C++ passes them. Out: the value as C++ returns it, or an
//! exception. The two classes have their functions in another order, and say names in another way; for a
//! library that does not show which it was built for, the functions of the first look for arguments of the
//! second. Must not know what the values are for.

use std::ffi::c_void;

use super::attributes::{AttrType, AttrValue};
use super::extra::{Extra, Names};
use super::guard::throw;
#[cfg(target_arch = "x86_64")]
use super::strings::OldString;
use super::strings::{AnyString, NewString, RawVector, StringAbi, is_vector};

type This = *mut Extra;
type Name = *const c_void;

/// The addresses of virtual functions in the order of their declaration.
pub(super) type Functions = [*const (); 12];

/// The table of virtual functions with what stands before it.
#[repr(C)]
struct Table {
    offset_to_top: isize,
    type_info: usize,
    functions: Functions,
}

// SAFETY: addresses of functions, and zeros.
unsafe impl Sync for Table {}

/// The functions for a library that says names so.
pub(super) fn table(names: Names) -> &'static Functions {
    static OLD: Table = Table::of(plain::<Strings>(get_old_string::<Strings> as *const ()));
    static NEW: Table = Table::of(plain::<Strings>(get_new_string::<Strings> as *const ()));
    static OLD_OR_DUAL: Table = Table::of(plain::<OldOrVector>(get_old_string::<OldOrVector> as *const ()));
    static NEW_OR_DUAL: Table = Table::of(plain::<NewOrVector>(get_new_string::<NewOrVector> as *const ()));
    static DUAL: Table = Table::of(DUAL_ABI);
    let table = match names {
        Names::Strings(StringAbi::Old) => &OLD,
        Names::Strings(StringAbi::New) => &NEW,
        Names::Either(StringAbi::Old) => &OLD_OR_DUAL,
        Names::Either(StringAbi::New) => &NEW_OR_DUAL,
        Names::Vectors => &DUAL,
    };
    &table.functions
}

impl Table {
    const fn of(functions: Functions) -> Table {
        Table { offset_to_top: 0, type_info: 0, functions }
    }
}

/// The functions of `AotExtra`, and one where `AotExtraDualABI` has its last.
const fn plain<N: ReadName>(str: *const ()) -> Functions {
    [
        keep as *const (),
        keep as *const (),
        has::<Strings> as *const (),
        get_bool::<N> as *const (),
        get_int::<N> as *const (),
        get_float::<N> as *const (),
        str,
        get_ints::<N> as *const (),
        get_floats::<N> as *const (),
        get_int_lists::<N> as *const (),
        get_float_lists::<N> as *const (),
        last_of_dual_abi as *const (),
    ]
}

/// The functions of `AotExtraDualABI`. The first that asks whether there is an attribute is for kernels, with a
/// string of either layout; it has a body there, which asks the second.
const DUAL_ABI: Functions = [
    keep as *const (),
    keep as *const (),
    has::<Strings> as *const (),
    has::<Vectors> as *const (),
    get_bool::<Vectors> as *const (),
    get_int::<Vectors> as *const (),
    get_float::<Vectors> as *const (),
    get_characters as *const (),
    get_ints::<Vectors> as *const (),
    get_floats::<Vectors> as *const (),
    get_int_lists::<Vectors> as *const (),
    get_float_lists::<Vectors> as *const (),
];

/// A way to say names.
trait ReadName {
    /// The name.
    ///
    /// # Safety
    /// Both addresses are those that C++ passed to a function that `guarded` called.
    unsafe fn read(this: This, name: Name) -> String;
}

/// `std::string` of either layout.
struct Strings;
/// `std::vector<char>`, without a final zero.
struct Vectors;
/// A string of the old layout, or a vector of a library that was built for `AotExtraDualABI`.
struct OldOrVector;
/// The same with the new layout.
struct NewOrVector;

impl ReadName for Strings {
    unsafe fn read(_: This, name: Name) -> String {
        // SAFETY: the string lives for the call.
        unsafe { AnyString::read(name.cast()) }
    }
}

impl ReadName for Vectors {
    unsafe fn read(_: This, name: Name) -> String {
        // SAFETY: the vector lives for the call.
        String::from_utf8_lossy(unsafe { (*name.cast::<RawVector>()).elements::<u8>() }).into_owned()
    }
}

impl ReadName for OldOrVector {
    unsafe fn read(this: This, name: Name) -> String {
        // SAFETY: as C++ passed them.
        unsafe { read_string(this, name, StringAbi::Old) }
    }
}

impl ReadName for NewOrVector {
    unsafe fn read(this: This, name: Name) -> String {
        // SAFETY: as C++ passed them.
        unsafe { read_string(this, name, StringAbi::New) }
    }
}

/// # Safety
/// As [`ReadName::read`].
unsafe fn read_string(this: This, name: Name, strings: StringAbi) -> String {
    // SAFETY: the caller promises it; a name is a string or a vector, on the stack of the kernel.
    unsafe {
        if is_vector(name, strings) {
            mistaken(this);
        }
        Strings::read(this, name)
    }
}

/// Leaves a function that the library takes for one of `AotExtraDualABI`.
///
/// # Safety
/// `this` is the object that C++ passed to a function that `guarded` called.
unsafe fn mistaken(this: This) -> ! {
    // SAFETY: the caller promises it.
    unsafe {
        (*this).note_mistake();
        throw("the library was built for AotExtraDualABI")
    }
}

/// The object belongs to the host: a kernel that destroys it changes nothing.
unsafe extern "C" fn keep(_: This) {}

unsafe extern "C-unwind" fn has<N: ReadName>(this: This, name: Name) -> bool {
    // SAFETY: C++ passes the object and a name; both live for the call.
    let (extra, name) = unsafe {
        let name = N::read(this, name);
        (&*this, name)
    };
    extra.attributes.get(&name).is_some()
}

/// The value that a kernel asked for, or an exception.
///
/// # Safety
/// `this` and `name` are what C++ passed, called by `guarded`.
unsafe fn value<N: ReadName>(this: This, name: Name, ty: AttrType) -> AttrValue {
    // SAFETY: both live for the call.
    let (extra, name) = unsafe {
        let name = N::read(this, name);
        (&*this, name)
    };
    match extra.attributes.typed(&name, ty) {
        Ok(value) => value,
        // SAFETY: kernels are called by `guarded` only.
        Err(error) => unsafe { throw(error.message()) },
    }
}

macro_rules! getters {
    ($($name:ident: $variant:ident($value:ident) -> $ty:ty = $result:expr;)*) => {$(
        unsafe extern "C-unwind" fn $name<N: ReadName>(this: This, name: Name) -> $ty {
            // SAFETY: as C++ passed them.
            match unsafe { value::<N>(this, name, AttrType::$variant) } {
                AttrValue::$variant($value) => $result,
                // SAFETY: kernels are called by `guarded` only.
                _ => unsafe { wrong_type() },
            }
        }
    )*};
}

getters! {
    get_bool: Bool(value) -> bool = value;
    get_int: Int(value) -> i64 = value;
    get_float: Float(value) -> f32 = value as f32;
    get_ints: Ints(list) -> RawVector = RawVector::of(list);
    get_floats: Floats(list) -> RawVector = RawVector::of(narrow(list));
    get_int_lists: IntLists(lists) -> RawVector = RawVector::of(lists.to_vecs().into_iter().map(RawVector::of).collect());
    get_float_lists: FloatLists(lists) -> RawVector =
        RawVector::of(lists.to_vecs().into_iter().map(|list| RawVector::of(narrow(list))).collect());
}

/// # Safety
/// As [`value`].
unsafe fn text<N: ReadName>(this: This, name: Name) -> String {
    // SAFETY: the caller promises it.
    match unsafe { value::<N>(this, name, AttrType::Str) } {
        AttrValue::Str(text) => text,
        // SAFETY: kernels are called by `guarded` only.
        _ => unsafe { wrong_type() },
    }
}

/// # Safety
/// Called by `guarded`, through C++.
unsafe fn wrong_type() -> ! {
    // SAFETY: the caller promises it.
    unsafe { throw("an attribute is not of the type that it was converted to") }
}

unsafe extern "C-unwind" fn get_characters(this: This, name: Name) -> RawVector {
    // SAFETY: as C++ passed them.
    RawVector::of(unsafe { text::<Vectors>(this, name) }.into_bytes())
}

// Returning a string by value: where a C function has its result, C++ passes the address of the result's
// memory. On x86-64 it is the first argument, and returned. There stands `GetAttrFloat` of `AotExtraDualABI`,
// which has no such address: its first argument is the object.
#[cfg(target_arch = "x86_64")]
unsafe extern "C-unwind" fn get_new_string<N: ReadName>(
    result: *mut NewString,
    this: This,
    name: Name,
) -> *mut NewString {
    // SAFETY: as C++ passed them; the caller gave the memory of its result.
    unsafe {
        check_result(result.cast());
        result.write(NewString::new(&text::<N>(this, name)));
    }
    result
}

#[cfg(target_arch = "x86_64")]
unsafe extern "C-unwind" fn get_old_string<N: ReadName>(
    result: *mut OldString,
    this: This,
    name: Name,
) -> *mut OldString {
    // SAFETY: as C++ passed them; the caller gave the memory of its result.
    unsafe {
        check_result(result.cast());
        result.write(OldString::new(&text::<N>(this, name)));
    }
    result
}

/// Leaves a function whose result would be written over the object: the caller takes it for another one.
///
/// # Safety
/// `result` is the first argument that C++ passed: the object, or memory on the stack of the kernel, of which
/// as much as the object has can be read.
#[cfg(target_arch = "x86_64")]
unsafe fn check_result(result: This) {
    // SAFETY: the caller promises it.
    unsafe {
        if Extra::is_at(result) {
            mistaken(result);
        }
    }
}

// On other processors a struct of more than 16 bytes is returned as C++ returns strings of the new layout; the
// address of an old one's memory is in a register that C functions cannot name.
#[cfg(not(target_arch = "x86_64"))]
unsafe extern "C-unwind" fn get_new_string<N: ReadName>(this: This, name: Name) -> NewString {
    // SAFETY: as C++ passed them.
    NewString::new(&unsafe { text::<N>(this, name) })
}

#[cfg(not(target_arch = "x86_64"))]
unsafe extern "C-unwind" fn get_old_string<N: ReadName>(this: This, name: Name) -> NewString {
    // SAFETY: as C++ passed them; kernels are called by `guarded` only.
    unsafe {
        N::read(this, name);
        throw(
            "on this processor attributes that are texts need a library compiled with _GLIBCXX_USE_CXX11_ABI=1",
        )
    }
}

/// `GetAttrFloat2DVec` of `AotExtraDualABI`, where `AotExtra` has no function.
unsafe extern "C-unwind" fn last_of_dual_abi(this: This, _: Name) -> RawVector {
    // SAFETY: as C++ passed it.
    unsafe { mistaken(this) }
}

fn narrow(list: Vec<f64>) -> Vec<f32> {
    list.into_iter().map(|value| value as f32).collect()
}
