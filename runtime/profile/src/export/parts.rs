//! Texts of many parts that several threads format, written in their order.

use std::io::{self, Write};
use std::num::NonZero;
use std::ops::Range;
use std::sync::mpsc::sync_channel;

/// Items of a part: some hundred kilobytes of text, which stay in a processor's cache until they are written.
const PART: usize = 2048;
/// More threads than this format faster than one writes.
const MOST_THREADS: usize = 4;
/// Parts of a thread that wait for those before them.
const WAITING: usize = 2;

/// Writes the texts of `count` items, which `format` makes for a range of them. Memory is bounded by some parts a thread.
///
/// # Errors
/// Errors of the writer.
pub(super) fn write(
    out: &mut impl Write,
    count: usize,
    format: impl Fn(Range<usize>) -> Vec<u8> + Sync,
) -> io::Result<()> {
    let parts = count.div_ceil(PART);
    let part = |number: usize| format(number * PART..count.min((number + 1) * PART));
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = cores.min(MOST_THREADS).min(parts);
    if threads < 2 {
        return (0..parts).try_for_each(|number| out.write_all(&part(number)));
    }
    std::thread::scope(|scope| {
        let mut sources = Vec::new();
        for thread in 0..threads {
            let (sender, receiver) = sync_channel(WAITING);
            let part = &part;
            scope.spawn(move || {
                for number in (thread..parts).step_by(threads) {
                    // Nobody receives after an error of the writer.
                    if sender.send(part(number)).is_err() {
                        return;
                    }
                }
            });
            sources.push(receiver);
        }
        for number in 0..parts {
            let text =
                sources[number % threads].recv().map_err(|_| io::Error::other("a thread ended early"))?;
            out.write_all(&text)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_written_in_order_and_errors_end_it() {
        for count in [0, 1, PART, 10 * PART + 7] {
            let mut out = Vec::new();
            write(&mut out, count, |numbers| {
                numbers.flat_map(|number| (number as u32).to_le_bytes()).collect()
            })
            .unwrap();
            let numbers: Vec<u32> =
                out.chunks_exact(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())).collect();
            assert_eq!(numbers, (0..count as u32).collect::<Vec<_>>());
        }
        let mut full = [0u8; 10];
        assert!(write(&mut &mut full[..], 100 * PART, |numbers| vec![1; numbers.len()]).is_err());
    }
}
