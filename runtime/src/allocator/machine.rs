//! How much memory there is: the machine's, or what the process may have of it.

use std::fs;

/// Bytes of memory; as much as can be counted where the system does not say.
///
/// The system gives out more than it has and ends the process that uses it, so that asking it is no answer.
pub(super) fn memory() -> usize {
    let files = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let groups = files.iter().filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok());
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    groups.chain(machine).min().unwrap_or(isize::MAX as usize)
}

/// The total in the text of `/proc/meminfo`, with what is swapped out.
fn total(text: &str) -> Option<usize> {
    let kilobytes = |name: &str| -> Option<usize> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse().ok()
    };
    Some((kilobytes("MemTotal:")? + kilobytes("SwapTotal:").unwrap_or(0)) << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read() {
        let text = "MemTotal:       16384 kB\nMemFree:  1 kB\nSwapTotal:        1024 kB\n";
        assert_eq!(total(text), Some(17408 << 10));
        assert_eq!(total("MemFree: 1 kB"), None);
        assert!(memory() > 16 << 20);
    }
}
