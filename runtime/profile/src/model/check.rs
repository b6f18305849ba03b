//! Whether a profile from a file contradicts itself: the code that goes through one relies on its numbers.

use std::collections::HashMap;

use super::{Change, DEEPEST, DeviceSpan, Kind, Profile};

impl Profile {
    /// Whether all numbers refer to something, and events of a thread nest.
    pub(super) fn check(&self) -> Result<(), String> {
        let within =
            |number: Option<u32>, count: usize| number.is_none_or(|number| (number as usize) < count);
        for (index, event) in self.events.iter().enumerate() {
            let parent = event.parent.map(|parent| parent as usize);
            let inside = parent.is_none_or(|parent| {
                parent < index && {
                    let outer = &self.events[parent];
                    outer.thread == event.thread
                        && outer.start_ns <= event.start_ns
                        && event
                            .start_ns
                            .checked_add(event.duration_ns)
                            .is_some_and(|end| end <= outer.end_ns())
                }
            });
            let known = within(event.operator, self.operators.len())
                && within(event.kernel, self.kernels.len())
                && event.kernel.is_some() == (event.kind == Kind::Kernel)
                && within(Some(event.name), self.texts.len())
                && within(event.site, self.texts.len())
                && within(event.operands, self.operands.len())
                && within(Some(event.thread), self.threads.len())
                && event.start_ns.checked_add(event.duration_ns).is_some();
            if !inside || !known {
                return Err(format!("its event {index} refers to what is not there"));
            }
        }
        let count = self.operators.len();
        if let Some(kernel) = self.kernels.iter().find(|kernel| kernel.operator as usize >= count) {
            return Err(format!("the operator of the kernel `{}` is not there", kernel.name));
        }
        self.check_sums()?;
        if self.depths().iter().any(|depth| *depth > DEEPEST) {
            return Err(format!("an event is inside of more than {DEEPEST} others"));
        }
        let known = |change: &Change| {
            within(change.event, self.events.len())
                && within(Some(change.thread), self.threads.len())
                && within(change.device, self.devices.len())
        };
        if !self.changes.iter().all(known) {
            return Err("a change of memory refers to what is not there".to_owned());
        }
        let known = |span: &DeviceSpan| {
            within(Some(span.event), self.events.len())
                && within(Some(span.device), self.devices.len())
                && span.start_ns.checked_add(span.duration_ns).is_some()
        };
        let in_order = |pair: &[DeviceSpan]| {
            let [first, second] = pair else { return true };
            let (own, next) = ((first.device, first.stream), (second.device, second.stream));
            own < next || (own == next && first.end_ns() <= second.start_ns)
        };
        if !self.device_spans.iter().all(known) || !self.device_spans.windows(2).all(in_order) {
            return Err(
                "a kernel on a device or a copy refers to what is not there, or is not in order".to_owned()
            );
        }
        Ok(())
    }

    /// Whether sums of times and bytes are numbers, limits are rates, and events inside of one another come one after another.
    fn check_sums(&self) -> Result<(), String> {
        // Far from the end of numbers with a sign: tables subtract and add such sums.
        const MOST: u64 = i64::MAX as u64 / 4;
        let fits = |what: &str, sum: Option<u64>| match sum.filter(|sum| *sum <= MOST) {
            Some(_) => Ok(()),
            None => Err(format!("the sum of its {what} is too large")),
        };
        let sum = |mut numbers: Box<dyn Iterator<Item = u64> + '_>| numbers.try_fold(0u64, u64::checked_add);
        fits("durations", sum(Box::new(self.events.iter().map(|event| event.duration_ns))))?;
        fits("allocated bytes", sum(Box::new(self.events.iter().map(|event| event.allocated))))?;
        fits("freed bytes", sum(Box::new(self.events.iter().map(|event| event.freed))))?;
        fits(
            "changes of memory",
            sum(Box::new(self.changes.iter().map(|change| change.bytes.unsigned_abs()))),
        )?;
        fits("times of devices", sum(Box::new(self.device_spans.iter().map(|span| span.duration_ns))))?;
        fits("beginning", self.started_ms.checked_mul(1_000_000))?;
        let rates = self.limits.iter().flat_map(|limits| {
            let devices = limits.devices.iter().flat_map(|device| [device.copy_gb_s, device.gflop_s]);
            [limits.copy_gb_s, limits.gflop_s].into_iter().chain(devices)
        });
        if rates.into_iter().any(|rate| !rate.is_finite() || rate < 0.0) {
            return Err("a limit is no rate".to_owned());
        }
        let mut ends: HashMap<(u32, Option<u32>), u64> = HashMap::new();
        for (index, event) in self.events.iter().enumerate() {
            let end = ends.insert((event.thread, event.parent), event.end_ns());
            if end.is_some_and(|end| end > event.start_ns) {
                return Err(format!("its event {index} begins before the one before it ended"));
            }
        }
        Ok(())
    }
}
