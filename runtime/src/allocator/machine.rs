//! The memory limit of the process: the machine's memory, or a control group's limit.

use std::fs;

/// The limit in bytes; the largest representable size if the system does not state it.
///
/// Allocating until failure would not find it: the system overcommits memory and kills the process that uses it.
pub(super) fn memory() -> usize {
    let files = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let groups = files.iter().filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok());
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    groups.chain(machine).min().unwrap_or(isize::MAX as usize)
}

/// The total in the text of `/proc/meminfo`, including swap.
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
