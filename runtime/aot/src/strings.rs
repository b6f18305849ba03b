//! `std::string` and `std::vector` as libstdc++ lays them out, read and made by Rust.
//!
//! libstdc++ has two layouts of strings (`_GLIBCXX_USE_CXX11_ABI`): the new one holds pointer, length and
//! 16 bytes of short text; the old one is a pointer to text behind a header with length, capacity and
//! count of owners. In both the first word is the address of the text. Buffers are made with `operator
//! new`, since the other side frees them with `operator delete`.

use std::ffi::{CStr, c_char, c_void};

unsafe extern "C" {
    #[link_name = "_Znwm"]
    fn operator_new(bytes: usize) -> *mut c_void;
    #[link_name = "_ZdlPv"]
    fn operator_delete(buffer: *mut c_void);
}

/// Which layout of strings a library was compiled with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StringAbi {
    /// `_GLIBCXX_USE_CXX11_ABI=0`
    Old,
    /// `_GLIBCXX_USE_CXX11_ABI=1`
    New,
}

/// A string whose text is all that is read of it.
#[repr(C)]
pub(super) struct AnyString {
    text: *const c_char,
}

impl AnyString {
    /// The text; what is not UTF-8 is replaced.
    ///
    /// # Safety
    /// `string` points to a `std::string` of either layout.
    pub unsafe fn read(string: *const AnyString) -> String {
        // SAFETY: the first word is the address of a text that ends in a zero.
        unsafe { CStr::from_ptr((*string).text) }.to_string_lossy().into_owned()
    }
}

/// The longest name of an attribute that is recognised, in bytes.
const LONGEST_NAME: usize = 4096;

/// Whether what a library passes as a name is a `std::vector<char>`, and not a string of that layout.
///
/// # Safety
/// `name` points to one of the two, and three words can be read there: it is a temporary of the library,
/// which frames of its callers follow.
pub(super) unsafe fn is_vector(name: *const c_void, strings: StringAbi) -> bool {
    let words = name.cast::<usize>();
    // SAFETY: the caller promises both words.
    let (first, second) = unsafe { (words.read(), words.add(1).read()) };
    if first == 0 {
        // The address of a string's text is never null; that of no elements is.
        return true;
    }
    match strings {
        // The length of the text, which is smaller than any address, or the end of the vector.
        StringAbi::New => second >= first,
        // SAFETY: a text stands behind its header. Behind what the heap keeps for itself stands a vector's
        // buffer, so that the words before it can be read, too.
        StringAbi::Old => !unsafe { is_old_text(first as *const u8) },
    }
}

/// Whether text of a string of the old layout stands there: behind its length and its capacity.
///
/// # Safety
/// Three words before the address can be read, and the bytes from there to a zero.
unsafe fn is_old_text(text: *const u8) -> bool {
    // SAFETY: three words before the address can be read, by this function's contract.
    let header = unsafe { text.cast::<usize>().sub(3) };
    // SAFETY: these are the first two of the three words.
    let (length, capacity) = unsafe { (header.read_unaligned(), header.add(1).read_unaligned()) };
    // SAFETY: no byte behind the first zero is read; names have none.
    let is_zero = |index: &usize| unsafe { text.add(*index).read() } == 0;
    length <= capacity && length <= LONGEST_NAME && (0..=length).find(is_zero) == Some(length)
}

/// A string of the new layout.
#[repr(C)]
pub(super) struct NewString {
    text: *mut u8,
    length: usize,
    /// Of the short text that stands here in other strings; for one in a buffer, the first word is its
    /// capacity.
    capacity: usize,
    unused: usize,
}

impl NewString {
    /// A string that owns its text in a buffer.
    pub fn new(text: &str) -> NewString {
        let buffer = allocate(text.len() + 1);
        // SAFETY: the buffer has room for the text and a zero.
        unsafe { write_text(buffer, text) };
        NewString { text: buffer, length: text.len(), capacity: text.len(), unused: 0 }
    }
}

/// A string of the old layout: the address of the text, behind its header.
#[repr(transparent)]
pub(super) struct OldString(#[allow(dead_code, reason = "only the other side reads it")] *mut u8);

impl OldString {
    /// A string that owns its text.
    pub fn new(text: &str) -> OldString {
        const HEADER: usize = 3 * size_of::<usize>();
        let buffer = allocate(HEADER + text.len() + 1);
        let header = buffer.cast::<usize>();
        // SAFETY: the buffer has room for the header, the text and a zero, and is aligned for words.
        // Length and capacity come first; 0 further owners.
        unsafe {
            header.write(text.len());
            header.add(1).write(text.len());
            header.add(2).write(0);
            write_text(buffer.add(HEADER), text);
            OldString(buffer.add(HEADER))
        }
    }
}

/// # Safety
/// `buffer` has room for the text and a zero.
unsafe fn write_text(buffer: *mut u8, text: &str) {
    // SAFETY: the caller promises it.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), buffer, text.len());
        buffer.add(text.len()).write(0);
    }
}

/// A `std::vector` of anything: first, one past the last, and end of the buffer.
#[repr(C)]
#[derive(Debug)]
pub(super) struct RawVector {
    begin: *mut u8,
    end: *mut u8,
    capacity: *mut u8,
}

impl RawVector {
    /// A vector without a buffer.
    pub const EMPTY: RawVector =
        RawVector { begin: std::ptr::null_mut(), end: std::ptr::null_mut(), capacity: std::ptr::null_mut() };

    /// A vector that owns these elements, which may own buffers themselves.
    pub fn of<T>(elements: Vec<T>) -> RawVector {
        if elements.is_empty() {
            return RawVector::EMPTY;
        }
        let bytes = size_of_val(elements.as_slice());
        let begin = allocate(bytes);
        // SAFETY: the buffer has room for the elements and is aligned for every fundamental type. They
        // move there: the vector that held them forgets them.
        unsafe {
            std::ptr::copy_nonoverlapping(elements.as_ptr().cast(), begin, bytes);
            let mut elements = elements;
            elements.set_len(0);
            let end = begin.add(bytes);
            RawVector { begin, end, capacity: end }
        }
    }

    /// The elements.
    ///
    /// # Safety
    /// It is a vector of `T`, made by either side.
    pub unsafe fn elements<T>(&self) -> &[T] {
        let bytes = self.end as usize - self.begin as usize;
        if bytes == 0 {
            return &[];
        }
        // SAFETY: the elements stand between begin and end.
        unsafe { std::slice::from_raw_parts(self.begin.cast(), bytes / size_of::<T>()) }
    }

    /// Frees the buffer; elements that own buffers are freed by the caller before.
    ///
    /// # Safety
    /// Nothing else owns the buffer, and it is not used any more.
    pub unsafe fn free(&mut self) {
        // SAFETY: the buffer came from `operator new`, as every vector's with the standard allocator.
        unsafe { operator_delete(self.begin.cast()) };
        *self = RawVector::EMPTY;
    }
}

/// A buffer as C++ makes them. Asking for more than there is throws, as it does there.
fn allocate(bytes: usize) -> *mut u8 {
    // SAFETY: it returns a buffer of that size or throws.
    unsafe { operator_new(bytes) }.cast()
}
