//! Memory in whole pages, of which as many as possible are huge.
//!
//! In: a number of bytes. Out: zeroed memory that begins at a huge page. A page costs the system a microsecond when it is first touched,
//! and the processor a walk through tables when it was not used lately; huge ones are fewer. The system is free to refuse them.

use std::ptr::NonNull;

/// The size of a huge page.
pub const HUGE_PAGE: usize = 2 << 20;

/// Multiple of the sizes of pages that systems have.
const PAGE: usize = 64 << 10;

/// Bytes of the memory that is mapped for so many: a huge page at the end is used at least by half.
pub const fn mapped_bytes(bytes: usize) -> usize {
    let rest = bytes % HUGE_PAGE;
    if rest >= HUGE_PAGE / 2 { bytes - rest + HUGE_PAGE } else { bytes.next_multiple_of(PAGE) }
}

/// Zeroed memory for so many bytes, at a multiple of `alignment`, itself one of [`HUGE_PAGE`]; `None` if the system has none.
pub fn map(bytes: usize, alignment: usize) -> Option<NonNull<u8>> {
    let mapped = mapped_bytes(bytes);
    let (length, protection) = (mapped.checked_add(alignment)?, libc::PROT_READ | libc::PROT_WRITE);
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
        libc::munmap(memory.add(mapped).as_ptr().cast(), alignment - before);
        libc::madvise(memory.as_ptr().cast(), mapped / HUGE_PAGE * HUGE_PAGE, libc::MADV_HUGEPAGE);
        Some(memory)
    }
}

/// Gives memory back to the system.
///
/// # Safety
/// It came from [`map`] for so many bytes, and is not used any more.
pub unsafe fn unmap(memory: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { libc::munmap(memory.as_ptr().cast(), mapped_bytes(bytes)) };
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
    fn memory_begins_at_a_huge_page_and_ends_at_one_that_is_used_by_half() {
        for (bytes, mapped) in [
            (1, PAGE),
            (PAGE + 1, 2 * PAGE),
            (HUGE_PAGE / 2 - 1, HUGE_PAGE / 2),
            (HUGE_PAGE / 2, HUGE_PAGE),
            (HUGE_PAGE + 64, HUGE_PAGE + PAGE),
            (5 * HUGE_PAGE / 2 + 64, 3 * HUGE_PAGE),
        ] {
            assert_eq!(mapped_bytes(bytes), mapped);
            let memory = map(bytes, 2 * HUGE_PAGE).unwrap();
            assert_eq!(memory.addr().get() % (2 * HUGE_PAGE), 0);
            // SAFETY: the mapping has so many bytes, which nothing else uses.
            unsafe {
                let all = std::slice::from_raw_parts_mut(memory.as_ptr(), mapped);
                assert!(all.iter().all(|byte| *byte == 0));
                all.fill(1);
                unmap(memory, bytes);
            }
        }
        assert_eq!(map(usize::MAX / 2, HUGE_PAGE), None);
    }
}
