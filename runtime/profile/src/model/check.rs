//! Whether a profile from a file contradicts itself: the code that goes through one relies on its numbers.

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
}
