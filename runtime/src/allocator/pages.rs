//! Memory in whole pages, of which as many as possible are huge.
//!
//! In: a number of bytes. Out: zeroed memory that begins at a huge page. A page costs the system a microsecond when it is first touched,
//! and the processor a walk through tables when it was not used lately; huge ones are fewer. The system is free to refuse them.

use std::ptr::NonNull;

/// The size of a huge page.
pub const HUGE_PAGE: usize = 2 << 20;

/// Zeroed memory for so many bytes, at a multiple of `alignment`, both multiples of [`HUGE_PAGE`]; `None` if the system has none.
pub fn map(bytes: usize, alignment: usize) -> Option<NonNull<u8>> {
    let (length, protection) = (bytes.checked_add(alignment)?, libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: a new mapping, at an address of the system's choice, has no other user.
    let start = unsafe {
        libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    };
    if start == libc::MAP_FAILED {
        return None;
    }
    let before = start.cast::<u8>().align_offset(alignment);
    // SAFETY: the range lies in the mapping, which is by the alignment longer than its memory; nothing uses the rest. The
    // advice changes no content.
    unsafe {
        let memory = NonNull::new(start.cast::<u8>().add(before))?;
        if before > 0 {
            libc::munmap(start, before);
        }
        libc::munmap(memory.add(bytes).as_ptr().cast(), alignment - before);
        libc::madvise(memory.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE);
        Some(memory)
    }
}

/// Gives memory back to the system.
///
/// # Safety
/// It came from [`map`] for so many bytes, and is not used any more.
pub unsafe fn unmap(memory: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { libc::munmap(memory.as_ptr().cast(), bytes) };
}

/// Asks for huge pages for memory of another origin, if they waste less than half of it.
///
/// # Safety
/// The memory has so many bytes.
pub unsafe fn prefer_huge_pages(memory: NonNull<u8>, bytes: usize) {
    if bytes >= 2 * HUGE_PAGE {
        // Whole pages alone: the ends share theirs with other memory.
        let before = memory.as_ptr().align_offset(HUGE_PAGE);
        let pages = bytes.saturating_sub(before) / HUGE_PAGE * HUGE_PAGE;
        // SAFETY: the range lies in the memory; the advice changes no content.
        unsafe { libc::madvise(memory.add(before).as_ptr().cast(), pages, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_begins_at_its_alignment_and_is_zeroed() {
        let bytes = 3 * HUGE_PAGE;
        let memory = map(bytes, 2 * HUGE_PAGE).unwrap();
        assert_eq!(memory.addr().get() % (2 * HUGE_PAGE), 0);
        // SAFETY: the mapping has so many bytes, which nothing else uses.
        unsafe {
            let all = std::slice::from_raw_parts_mut(memory.as_ptr(), bytes);
            assert!(all.iter().all(|byte| *byte == 0));
            all.fill(1);
            unmap(memory, bytes);
        }
        assert_eq!(map(usize::MAX / HUGE_PAGE * HUGE_PAGE, HUGE_PAGE), None);
    }
}
