//! Time and memory of devices, by the events that asked for them.

use crate::model::{Event, Kind, Profile};

/// A quantity of each event, without and with that of the events inside.
pub(crate) struct Sums<T> {
    pub own: Vec<T>,
    pub total: Vec<T>,
}

impl Profile {
    /// For each event the time of its kernels and copies on devices.
    pub(crate) fn device_times(&self, folded: bool) -> Sums<u64> {
        let mut own = vec![0; self.events.len()];
        self.device_spans.iter().for_each(|span| own[span.event as usize] += span.duration_ns);
        self.summed(own, folded)
    }

    /// For each event the time of its kernels and copies on devices if there are some, else its duration; and whether it is that of
    /// devices.
    pub(crate) fn working_times(&self) -> Vec<(u64, bool)> {
        let on_devices = self.device_times(true).total;
        let working = |(event, on_device): (&Event, u64)| match on_device {
            0 => (event.duration_ns, false),
            time => (time, true),
        };
        self.events.iter().zip(on_devices).map(working).collect()
    }

    /// For each event the bytes of devices that it allocated and did not release.
    pub(super) fn device_memory(&self, folded: bool) -> Sums<i64> {
        let mut own = vec![0; self.events.len()];
        for change in self.changes.iter().filter(|change| change.device.is_some()) {
            if let Some(event) = change.event {
                own[event as usize] += change.bytes;
            }
        }
        self.summed(own, folded)
    }

    /// Adds events' own values to those that they are inside of; kernels are parts of the events that run them, if
    /// `folded`.
    fn summed<T: Copy + std::ops::AddAssign>(&self, mut own: Vec<T>, folded: bool) -> Sums<T> {
        let mut total = own.clone();
        for (index, event) in self.events.iter().enumerate().rev() {
            let Some(parent) = event.parent else { continue };
            let (inside, inside_own) = (total[index], own[index]);
            total[parent as usize] += inside;
            if folded && event.kind == Kind::Kernel {
                own[parent as usize] += inside_own;
            }
        }
        Sums { own, total }
    }
}
