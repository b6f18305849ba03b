//! Attributes as C++ looks them up (`cpp/attributes.cc`).
//!
//! In: attributes; a name and a type, from C++. Out: the value, or the message of the error, in words that C++ can read.
//! Must not know the classes that kernels see.

use std::ffi::{CString, c_char, c_int, c_void};

use super::attributes::{AttrType, AttrValue, Attributes};

/// The attributes of an object, as C++ finds them.
#[repr(C)]
pub(super) struct Finder {
    context: *const c_void,
    find: unsafe extern "C" fn(*const c_void, *const c_char, usize, c_int, *mut Found) -> bool,
    release: unsafe extern "C" fn(*mut c_void),
}

/// The value of an attribute; as `Value` of `cpp/host.h`.
#[repr(C)]
struct Found {
    integer: i64,
    real: f64,
    items: *const c_void,
    count: usize,
    ends: *const usize,
    lists: usize,
    owner: *mut c_void,
}

/// The memory of a value, or of the message that there is none.
enum Owner {
    Value(AttrValue),
    Message(CString),
}

impl Finder {
    /// The attributes, which C++ may use as long as they live.
    pub fn of(attributes: &Attributes) -> Finder {
        Finder { context: std::ptr::from_ref(attributes).cast(), find, release }
    }
}

/// Writes the value of an attribute, or the message of the error; without a value to write, only says whether there is
/// such an attribute.
///
/// # Safety
/// The attributes live, so many bytes are at `name`, and a value may be written to `value` unless that is null.
unsafe extern "C" fn find(
    attributes: *const c_void,
    name: *const c_char,
    length: usize,
    ty: c_int,
    value: *mut Found,
) -> bool {
    // SAFETY: the caller promises attributes and name; the address of no bytes may be null.
    let (attributes, name) = unsafe {
        let name = if length == 0 { &[] } else { std::slice::from_raw_parts(name.cast::<u8>(), length) };
        (&*attributes.cast::<Attributes>(), String::from_utf8_lossy(name))
    };
    if value.is_null() {
        return attributes.get(&name).is_some();
    }
    let result = attributes.typed(&name, AttrType::numbered(ty));
    let found = result.is_ok();
    let owner = match result {
        Ok(value) => Owner::Value(value),
        Err(error) => Owner::Message(CString::new(error.message().replace('\0', " ")).unwrap_or_default()),
    };
    // SAFETY: the caller promises that a value may be written there.
    unsafe { value.write(Found::new(owner)) };
    found
}

/// # Safety
/// `find` gave that owner, which is released once.
unsafe extern "C" fn release(owner: *mut c_void) {
    // SAFETY: `Found::new` made it as a box; the caller releases it once.
    drop(unsafe { Box::from_raw(owner.cast::<Owner>()) });
}

impl Found {
    /// A value with its memory, if it has any.
    fn new(owner: Owner) -> Found {
        let mut found = Found {
            integer: 0,
            real: 0.0,
            items: std::ptr::null(),
            count: 0,
            ends: std::ptr::null(),
            lists: 0,
            owner: std::ptr::null_mut(),
        };
        match owner {
            Owner::Value(AttrValue::Bool(value)) => found.integer = i64::from(value),
            Owner::Value(AttrValue::Int(value)) => found.integer = value,
            Owner::Value(AttrValue::Float(value)) => found.real = value,
            owner => {
                let owner = Box::new(owner);
                match &*owner {
                    Owner::Message(text) => found.set_items(text.as_bytes_with_nul()),
                    Owner::Value(AttrValue::Str(text)) => found.set_items(text.as_bytes()),
                    Owner::Value(AttrValue::Ints(list)) => found.set_items(list),
                    Owner::Value(AttrValue::Floats(list)) => found.set_items(list),
                    Owner::Value(AttrValue::IntLists(lists)) => {
                        found.set_items(lists.items());
                        found.set_ends(lists.ends());
                    }
                    Owner::Value(AttrValue::FloatLists(lists)) => {
                        found.set_items(lists.items());
                        found.set_ends(lists.ends());
                    }
                    Owner::Value(AttrValue::Bool(_) | AttrValue::Int(_) | AttrValue::Float(_)) => {}
                }
                found.owner = Box::into_raw(owner).cast();
            }
        }
        found
    }

    fn set_items<T>(&mut self, items: &[T]) {
        self.items = items.as_ptr().cast();
        self.count = items.len();
    }

    fn set_ends(&mut self, ends: &[usize]) {
        self.ends = ends.as_ptr();
        self.lists = ends.len();
    }
}
