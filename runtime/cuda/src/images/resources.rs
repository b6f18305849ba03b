//! Resources of a kernel, as the assembler prints them.
//!
//! In: the output of `ptxas -v`. Out: numbers. Must not know images.

use serde::{Deserialize, Serialize};

/// Resources of a kernel on an architecture.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct KernelResources {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of static shared memory of a block.
    pub shared_bytes: u32,
    /// Bytes of registers that a thread stores to memory because there are too few.
    pub spilled_bytes: u32,
}

impl KernelResources {
    /// Those in the assembler's output; `None` if it names no registers.
    pub fn in_log(log: &str) -> Option<KernelResources> {
        let numbers = |unit: &str| {
            let parts: Vec<&str> = log.split(unit).collect();
            let before = parts.split_last().map_or(&[][..], |(_, before)| before);
            before.iter().filter_map(|part| number_at_end(part)).max()
        };
        Some(KernelResources {
            registers: numbers(" registers")?,
            shared_bytes: numbers(" bytes smem").unwrap_or(0),
            spilled_bytes: numbers(" bytes spill stores").unwrap_or(0),
        })
    }
}

/// The number that a text ends with.
fn number_at_end(text: &str) -> Option<u32> {
    let digits = text.len() - text.bytes().rev().take_while(u8::is_ascii_digit).count();
    text[digits..].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::KernelResources;

    #[test]
    fn resources_are_read_from_the_assemblers_output() {
        let log = "ptxas info    : 8 bytes gmem\n\
                   ptxas info    : Compiling entry function 'opsmith_kernel' for 'sm_90'\n\
                   ptxas info    : Function properties for opsmith_kernel\n    \
                   16 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads\n\
                   ptxas info    : Used 40 registers, used 1 barriers, 2048 bytes smem, 16 bytes cmem[2]\n";
        let expected = KernelResources { registers: 40, shared_bytes: 2048, spilled_bytes: 12 };
        assert_eq!(KernelResources::in_log(log), Some(expected));
        let short = KernelResources { registers: 10, ..KernelResources::default() };
        assert_eq!(KernelResources::in_log("Used 10 registers, used 0 barriers"), Some(short));
        assert_eq!(KernelResources::in_log("warning: registers"), None);
        assert_eq!(KernelResources::in_log(""), None);
    }
}
