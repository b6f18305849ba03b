//! Memory over time, and who held it at its peak.

use std::collections::HashMap;

use crate::model::{Change, Profile};

/// Bytes over time, relative to the beginning of a profile.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// When, in nanoseconds after the beginning, and how many bytes more than at the beginning.
    pub points: Vec<(u64, i64)>,
    /// The moment with most.
    pub peak: (u64, i64),
    /// Who held the memory that was allocated in the profile and not freed at the peak, most first.
    pub owners: Vec<Owner>,
}

/// Blocks that one operator allocated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The outermost call, node or step that they were allocated in, with its site if it has one.
    pub name: String,
    /// Their bytes.
    pub bytes: i64,
    /// Their number.
    pub blocks: u64,
}

impl Profile {
    /// The host's memory over time. Empty unless changes of memory were recorded.
    pub fn memory_timeline(&self) -> Timeline {
        self.memory_timeline_of(None)
    }

    /// Memory of the host, or of a device by its number, over time.
    pub fn memory_timeline_of(&self, device: Option<u32>) -> Timeline {
        let mut total = 0;
        let changes: Vec<&Change> = self.changes.iter().filter(|change| change.device == device).collect();
        let points: Vec<(u64, i64)> = changes
            .iter()
            .map(|change| {
                total += change.bytes;
                (change.at_ns, total)
            })
            .collect();
        let peak =
            points.iter().enumerate().max_by_key(|(index, (_, bytes))| (*bytes, std::cmp::Reverse(*index)));
        let Some((last, &peak)) = peak else {
            return Timeline { points, peak: (0, 0), owners: Vec::new() };
        };
        let mut live: HashMap<u64, &Change> = HashMap::new();
        for change in &changes[..=last] {
            if change.bytes >= 0 {
                live.insert(change.address, change);
            } else {
                live.remove(&change.address);
            }
        }
        let mut owners: HashMap<String, Owner> = HashMap::new();
        for change in live.values() {
            let name = self.owner_of(change);
            let owner = owners.entry(name.clone()).or_insert(Owner { name, bytes: 0, blocks: 0 });
            owner.bytes += change.bytes;
            owner.blocks += 1;
        }
        let mut owners: Vec<Owner> = owners.into_values().collect();
        owners.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
        Timeline { points, peak, owners }
    }

    /// The outermost event with an operator that a change happened in.
    fn owner_of(&self, change: &Change) -> String {
        let Some(event) = change.event else { return "outside of calls".to_owned() };
        let event = &self.events[event as usize];
        let own = event.operator.is_some().then_some(event);
        let outer =
            self.ancestors(event).map(|outer| &self.events[outer]).filter(|outer| outer.operator.is_some());
        let Some(owner) = outer.last().or(own) else { return self.name_of(event).to_owned() };
        match self.site_of(owner) {
            Some(site) => format!("{} at {site}", self.name_of(owner)),
            None => self.name_of(owner).to_owned(),
        }
    }
}
