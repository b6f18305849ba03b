//! `AotExtra`: what a kernel gets its attributes from, and leaves its workspace sizes and data in.
//!
//! In: attributes. Out: an object whose memory is what C++ code compiled against the header expects: a
//! table of virtual functions (`getters.rs`), the sizes of workspaces, the kernel's data. The order of fields
//! is that of `kernels/include/custom_aot_extra.h`, and of the headers that others build against: of
//! `AotExtra`, and of `AotExtraDualABI`, whose names of attributes are vectors. Must not know tensors.

use std::ffi::c_void;

use super::attributes::Attributes;
use super::getters::{self, Functions};
use super::guard::{Thrown, guarded};
use super::library::Library;
use super::strings::{RawVector, StringAbi};

/// How a library says names of attributes, which decides between the tables of functions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Names {
    /// As `std::string` of that layout: `AotExtra`.
    Strings(StringAbi),
    /// As `std::vector<char>`: `AotExtraDualABI`.
    Vectors,
    /// Nothing in the library shows which. Its first question will: the functions look at what they get.
    Either(StringAbi),
}

/// An object that C++ takes for an `AotExtra`, or an `AotExtraDualABI`.
#[repr(C)]
pub(super) struct Extra {
    functions: *const Functions,
    workspace: RawVector,
    kernel_data: *mut KernelData,
    /// Behind what C++ knows of: its own address, by which it is recognised.
    this: *const Extra,
    /// Whether a function was called that the library takes for another one.
    mistaken: bool,
    pub(super) attributes: Attributes,
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
    /// An object with these attributes, for a library that says their names so. C++ keeps its address.
    pub fn new(attributes: Attributes, names: Names) -> Box<Extra> {
        let mut extra = Box::new(Extra {
            functions: getters::table(names),
            workspace: RawVector::EMPTY,
            kernel_data: std::ptr::null_mut(),
            this: std::ptr::null(),
            mistaken: false,
            attributes,
        });
        extra.this = std::ptr::from_ref(&*extra);
        extra
    }

    /// Calls a function of a library with the address of this object. A library that turns out to take it for
    /// an object of the other kind is given that one, and called again.
    ///
    /// # Errors
    /// What the function threw.
    #[inline]
    pub fn call<R>(
        &mut self,
        library: &Library,
        mut body: impl FnMut(*mut c_void) -> R,
    ) -> Result<R, Thrown> {
        let raw = std::ptr::from_mut(self).cast();
        let result = guarded(|| body(raw));
        if self.mistaken {
            // What was thrown to get out of the function may have been caught in it, so its result counts for
            // nothing either.
            library.note_vectors();
            self.functions = getters::table(Names::Vectors);
            self.mistaken = false;
            return guarded(|| body(raw));
        }
        result
    }

    /// Whether there is such an object at an address that a library passed.
    ///
    /// # Safety
    /// As many bytes as an object has can be read there.
    pub(super) unsafe fn is_at(address: *const Extra) -> bool {
        // SAFETY: the caller promises it.
        unsafe { (&raw const (*address).this).read_unaligned() == address }
    }

    /// Notes that the library takes this for an object of the other kind.
    pub(super) fn note_mistake(&mut self) {
        self.mistaken = true;
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
            let _ = guarded(|| unsafe { ((*(*data).functions).destroy_and_free)(data) });
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
