//! Time stamps, as cheap as the processor has them.
//!
//! In: nothing. Out: ticks, which a [`Scale`] turns into nanoseconds. Where the processor's counter has a constant rate, a
//! stamp is a read of it, about 8 ns; else it is the system's monotonic clock, about 25 ns.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// When this process asked for the time first.
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Whether the processor's counter has a constant rate.
static CONSTANT: LazyLock<bool> = LazyLock::new(has_constant_rate);

#[cfg(target_arch = "x86_64")]
fn has_constant_rate() -> bool {
    use std::arch::x86_64::__cpuid;
    // Bit 8 of the leaf on power management: an invariant counter.
    __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn has_constant_rate() -> bool {
    false
}

/// The time now.
#[inline]
pub(crate) fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    if *CONSTANT {
        // SAFETY: every processor of this architecture has the counter.
        return unsafe { std::arch::x86_64::_rdtsc() };
    }
    ORIGIN.elapsed().as_nanos() as u64
}

/// The same moment in ticks and by the system's clock.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub ticks: u64,
    instant: Instant,
}

impl Moment {
    /// Now. The system's clock is read between two stamps, and the closest of a few readings counts.
    pub fn now() -> Moment {
        let reading = || {
            let before = ticks();
            let instant = Instant::now();
            let after = ticks();
            (after.wrapping_sub(before), Moment { ticks: before / 2 + after / 2, instant })
        };
        let mut best = reading();
        for _ in 0..8 {
            let next = reading();
            if next.0 < best.0 {
                best = next;
            }
        }
        best.1
    }
}

/// From ticks after a moment to nanoseconds.
#[derive(Clone, Copy)]
pub(crate) struct Scale {
    first: u64,
    nanoseconds_a_tick: f64,
}

/// The shortest time between two moments that gives a rate to 1 part in 10,000.
const SHORTEST: Duration = Duration::from_millis(2);

impl Scale {
    /// The scale from a moment to now; waits if that is too short a time to know the rate.
    pub fn since(first: Moment) -> Scale {
        if let Some(rest) = SHORTEST.checked_sub(first.instant.elapsed())
            && *CONSTANT
        {
            std::thread::sleep(rest);
        }
        let last = Moment::now();
        let ticks = last.ticks.saturating_sub(first.ticks).max(1);
        let nanoseconds = last.instant.duration_since(first.instant).as_nanos() as f64;
        let nanoseconds_a_tick = if *CONSTANT { nanoseconds / ticks as f64 } else { 1.0 };
        Scale { first: first.ticks, nanoseconds_a_tick }
    }

    /// Nanoseconds from the first moment to a stamp; 0 for one before it.
    pub fn nanoseconds(&self, ticks: u64) -> u64 {
        (ticks.saturating_sub(self.first) as f64 * self.nanoseconds_a_tick) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_the_nanoseconds_of_the_system_clock() {
        let first = Moment::now();
        let start = Instant::now();
        let before = ticks();
        std::thread::sleep(Duration::from_millis(20));
        let after = ticks();
        let real = start.elapsed().as_nanos() as f64;
        let scale = Scale::since(first);
        let measured = (scale.nanoseconds(after) - scale.nanoseconds(before)) as f64;
        assert!((measured / real - 1.0).abs() < 0.01, "{measured} and {real}");
        assert_eq!(scale.nanoseconds(first.ticks.saturating_sub(10)), 0);
    }
}
