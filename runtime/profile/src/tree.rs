//! The call tree: events at one path summed.

use std::collections::HashMap;

use crate::model::{Event, Kind, Profile};
use crate::table::{percent, time};

/// Events with one path of names.
#[derive(Clone, Debug)]
pub struct Tree {
    /// The name of the last part of the path; of the root, the profile's.
    pub name: String,
    /// Kind of the events; none for the root.
    pub kind: Option<Kind>,
    /// The family of devices of a kernel; empty for others.
    pub backend: String,
    /// File and line of a kernel; empty for others, and if they are unknown.
    pub source: String,
    /// Number of events.
    pub calls: u64,
    /// Their time, in nanoseconds.
    pub total_ns: u64,
    /// Their time without that of the events inside.
    pub self_ns: u64,
    /// The time of their kernels and copies on devices.
    pub device_ns: u64,
    /// The events inside, by name, those with most time first.
    pub inside: Vec<Tree>,
}

/// A node while events are counted.
struct Node {
    event: Option<usize>,
    calls: u64,
    total_ns: u64,
    self_ns: u64,
    device_ns: u64,
    inside: HashMap<(Kind, u32, Option<u32>), usize>,
}

impl Profile {
    /// The call tree of all threads together: `log_softmax` → `_log_softmax` → its kernel.
    pub fn tree(&self) -> Tree {
        let empty =
            |event| Node { event, calls: 0, total_ns: 0, self_ns: 0, device_ns: 0, inside: HashMap::new() };
        let mut nodes = vec![empty(None)];
        let mut node_of = Vec::with_capacity(self.events.len());
        let self_times = self.self_times();
        let on_devices = self.device_times(false).total;
        for (index, event) in self.events.iter().enumerate() {
            let parent = event.parent.map_or(0, |parent| node_of[parent as usize]);
            let key = (event.kind, event.name, event.kernel);
            let known = nodes[parent].inside.get(&key).copied();
            let number = known.unwrap_or_else(|| {
                nodes.push(empty(Some(index)));
                let number = nodes.len() - 1;
                nodes[parent].inside.insert(key, number);
                number
            });
            node_of.push(number);
            let node = &mut nodes[number];
            node.calls += 1;
            node.total_ns += event.duration_ns;
            node.self_ns += self_times[index];
            node.device_ns += on_devices[index];
            if parent == 0 {
                nodes[0].device_ns += on_devices[index];
                nodes[0].total_ns += event.duration_ns;
            }
        }
        // A node comes after the one that it is inside of, so the last have no open children.
        let mut done: Vec<Option<Tree>> = nodes.iter().map(|_| None).collect();
        for (number, node) in nodes.iter().enumerate().rev() {
            let mut inside: Vec<Tree> =
                node.inside.values().filter_map(|child| done[*child].take()).collect();
            inside.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.name.cmp(&b.name)));
            let event: Option<&Event> = node.event.map(|event| &self.events[event]);
            done[number] = Some(Tree {
                name: event.map_or(&*self.name, |event| self.name_of(event)).to_owned(),
                kind: event.map(|event| event.kind),
                backend: event
                    .and_then(|event| self.kernel_of(event))
                    .map_or_else(String::new, |kernel| kernel.backend.clone()),
                source: event.and_then(|event| self.source_of(event)).unwrap_or_default().to_owned(),
                calls: node.calls,
                total_ns: node.total_ns,
                self_ns: node.self_ns,
                device_ns: node.device_ns,
                inside,
            });
        }
        let root = done.swap_remove(0);
        root.unwrap_or_else(|| Tree {
            name: self.name.clone(),
            kind: None,
            backend: String::new(),
            source: String::new(),
            calls: 0,
            total_ns: 0,
            self_ns: 0,
            device_ns: 0,
            inside: Vec::new(),
        })
    }
}

/// A line of a tree's text that is to be written.
enum Line<'a> {
    Tree(&'a Tree, usize),
    /// So many branches that are not shown.
    LeftOut(usize, usize),
}

impl Tree {
    /// Backend and source of a kernel; none for others.
    pub(crate) fn kernel_text(&self) -> Option<String> {
        let separator = if self.source.is_empty() { "" } else { ", " };
        (self.kind == Some(Kind::Kernel))
            .then(|| format!("kernel of {}{separator}{}", self.backend, self.source))
    }

    /// The number of events; none for the root.
    pub(crate) fn calls_text(&self) -> Option<String> {
        self.kind.map(|_| if self.calls == 1 { "1 call".to_owned() } else { format!("{} calls", self.calls) })
    }

    /// The tree as text, to a depth; branches below a share of the root's time are left out, and counted.
    pub fn text(&self, depth: usize, share: f64) -> String {
        let mut text = String::new();
        // Explicit, since a program may nest deeply.
        let mut waiting = vec![Line::Tree(self, 0)];
        while let Some(line) = waiting.pop() {
            let (tree, level) = match line {
                Line::Tree(tree, level) => (tree, level),
                Line::LeftOut(count, level) => {
                    text += &format!("{}… {count} inside\n", "  ".repeat(level));
                    continue;
                }
            };
            let part = percent(tree.total_ns as f64, self.total_ns as f64);
            let kernel = tree.kernel_text().map_or_else(String::new, |text| format!(" ({text})"));
            let calls = tree.calls_text().map_or_else(String::new, |text| format!("  {text}"));
            let device = match tree.device_ns {
                0 => String::new(),
                on_devices => format!("  device {}", time(on_devices)),
            };
            text += &format!(
                "{}{}{kernel}  {part}  {}{device}{calls}\n",
                "  ".repeat(level),
                tree.name,
                time(tree.total_ns)
            );
            if level >= depth {
                if !tree.inside.is_empty() {
                    waiting.push(Line::LeftOut(tree.inside.len(), level + 1));
                }
                continue;
            }
            let large = |tree: &&Tree| tree.total_ns as f64 >= share * self.total_ns as f64;
            let small = tree.inside.iter().filter(|tree| !large(tree)).count();
            if small > 0 {
                // Written after the others, as it waits below them.
                waiting.push(Line::LeftOut(small, level + 1));
            }
            waiting.extend(tree.inside.iter().filter(large).rev().map(|tree| Line::Tree(tree, level + 1)));
        }
        text
    }
}
