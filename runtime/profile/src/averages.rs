//! Events summed by operator, operands, kernel or call site.

mod devices;
mod text;

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::limits::Limits;
use crate::model::{Event, Kind, Operands, Profile};
use crate::table::{Table, percent, time};

/// The key of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// The operator's form, the node of backward, or the range. The time of a kernel is that of its operator.
    Operator,
    /// The same, and the operands.
    Shapes,
    /// The kernel and its operator, and copies between devices.
    Kernel,
    /// The operator's form and the place of its call.
    Site,
}

/// The order of rows, largest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortBy {
    /// Time without that of the operators inside.
    SelfTime,
    /// Time with that of the operators inside.
    TotalTime,
    /// Time a call.
    AverageTime,
    /// Number of calls.
    Calls,
    /// Bytes kept, without those of the operators inside.
    SelfMemory,
    /// Time of kernels on devices, without that of the operators inside.
    SelfDeviceTime,
    /// Name, from A to Z.
    Name,
}

/// Events with something in common.
#[derive(Clone, Debug)]
pub struct AveragesRow {
    /// Name of the operator's form, node, range or kernel.
    pub name: String,
    /// The operands, the operator of a kernel, or the site, by the group; empty for [`Group::Operator`].
    pub detail: String,
    /// The family of devices of a kernel, for [`Group::Kernel`]; empty for copies.
    pub backend: String,
    /// File and line of a kernel, for [`Group::Kernel`]; empty if they are unknown.
    pub source: String,
    /// Number of events.
    pub calls: u64,
    /// Their time without that of the events inside, in nanoseconds.
    pub self_ns: u64,
    /// Their time; of events inside one of the same row, that of the outer one.
    pub total_ns: u64,
    /// Bytes that they allocated and did not free, without those of the events inside.
    pub self_memory: i64,
    /// Bytes that they allocated and did not free.
    pub total_memory: i64,
    /// Bytes of operands and results of the kernels in them, which have to be moved at least.
    pub moved: u64,
    /// Arithmetic operations of the kernels in them whose entries tell them.
    pub flops: u64,
    /// The least time of the kernels in them on this machine or its devices, in nanoseconds; 0 without limits of these.
    pub least_ns: f64,
    /// Time of their kernels on devices, without those of the events inside, in nanoseconds.
    pub device_self_ns: u64,
    /// Time of the kernels in them on devices.
    pub device_total_ns: u64,
    /// Bytes of devices that they allocated and did not release, without those of the events inside.
    pub device_self_memory: i64,
    /// Bytes of devices that they allocated and did not release.
    pub device_total_memory: i64,
}

/// The rows of a profile, with its totals.
#[derive(Clone, Debug)]
pub struct Averages {
    /// The rows.
    pub rows: Vec<AveragesRow>,
    group: Group,
    limit: usize,
    total_ns: u64,
    duration_ns: u64,
    has_shapes: bool,
    /// Whether the profile has work of devices.
    has_devices: bool,
    limits: Option<Limits>,
    notes: Vec<String>,
}

impl Profile {
    /// Sums of events by a key, in the order of [`SortBy::SelfTime`].
    pub fn key_averages(&self, group: Group) -> Averages {
        let folded = group != Group::Kernel;
        let shown = |event: &Event| match event.kind {
            Kind::Kernel => !folded,
            Kind::Copy => true,
            _ => folded,
        };
        let (self_times, self_memory) =
            if folded { self.without_kernels() } else { (self.self_times(), self.self_memory()) };
        let moved = self.of_kernels(Operands::bytes, Operands::copied);
        let flops = self.of_kernels(|operands| operands.flops.unwrap_or(0), |_| 0);
        let (device_time, device_memory) = (self.device_times(folded), self.device_memory(folded));
        // In picoseconds, so that sums are of integers.
        let least =
            |limits: &Limits| self.of_kernels(|operands| (least_ns(limits, operands) * 1e3) as u64, |_| 0);
        let least = self.limits.as_ref().map(least);
        let mut rows: Vec<AveragesRow> = Vec::new();
        let mut numbers: HashMap<(u32, Option<u32>), usize> = HashMap::new();
        let mut row_of: Vec<Option<usize>> = vec![None; self.events.len()];
        for (index, event) in self.events.iter().enumerate().filter(|(_, event)| shown(event)) {
            let second = match group {
                Group::Operator => None,
                Group::Shapes => event.operands,
                Group::Kernel => event.kernel,
                Group::Site => event.site,
            };
            let number = *numbers.entry((event.name, second)).or_insert_with(|| {
                rows.push(self.row(event, group));
                rows.len() - 1
            });
            row_of[index] = Some(number);
            let row = &mut rows[number];
            row.calls += 1;
            row.self_ns += self_times[index];
            row.self_memory += self_memory[index];
            row.device_self_ns += device_time.own[index];
            row.device_self_memory += device_memory.own[index];
            if !self.ancestors(event).any(|outer| row_of[outer] == Some(number)) {
                row.total_ns += event.duration_ns;
                row.total_memory += event.allocated as i64 - event.freed as i64;
                row.moved = row.moved.saturating_add(moved[index]);
                row.flops = row.flops.saturating_add(flops[index]);
                row.least_ns += least.as_ref().map_or(0.0, |least| least[index] as f64 / 1e3);
                row.device_total_ns += device_time.total[index];
                row.device_total_memory += device_memory.total[index];
            }
        }
        let total_ns = rows.iter().map(|row| row.self_ns).sum();
        Averages {
            rows,
            group,
            limit: usize::MAX,
            total_ns,
            duration_ns: self.duration_ns,
            has_shapes: self.has_shapes,
            has_devices: !self.devices.is_empty(),
            limits: self.limits.clone(),
            notes: self.notes.clone(),
        }
        .sort_by(SortBy::SelfTime)
    }

    /// The slowest single events, kernels as parts of the events that run them, as a table with operands and sites: by the time of
    /// their kernels on devices if they ran some there, without that of the events inside, else by that of the host.
    pub fn slowest_table(&self, count: usize) -> String {
        let (times, _) = self.without_kernels();
        let on_devices = self.device_times(true).own;
        let working = |event: usize| if on_devices[event] > 0 { on_devices[event] } else { times[event] };
        let mut slowest: Vec<usize> =
            (0..self.events.len()).filter(|&event| self.events[event].kind != Kind::Kernel).collect();
        slowest.sort_by_key(|&event| (Reverse(working(event)), event));
        let has_devices = !self.devices.is_empty();
        let mut head = vec!["Name", "Operands", "Site", "Self CPU", "CPU total"];
        head.extend(has_devices.then_some("Self device"));
        head.push("At");
        let mut table = Table::new(head, 3);
        for &index in slowest.iter().take(count) {
            let event = &self.events[index];
            let mut row = vec![
                self.title_of(event),
                self.operands_of(event).map_or_else(String::new, |operands| operands.text()),
                self.site_of(event).unwrap_or_default().to_owned(),
                time(times[index]),
                time(event.duration_ns),
            ];
            row.extend(has_devices.then(|| time(on_devices[index])));
            row.push(time(event.start_ns));
            table.row(row);
        }
        table.text()
    }

    fn row(&self, event: &Event, group: Group) -> AveragesRow {
        let detail = match group {
            Group::Operator => String::new(),
            Group::Shapes => self.operands_of(event).map_or_else(String::new, |operands| operands.text()),
            Group::Kernel => self.operator_of(event).map_or_else(String::new, |op| op.name.clone()),
            Group::Site => self.site_of(event).unwrap_or_default().to_owned(),
        };
        AveragesRow {
            name: self.name_of(event).to_owned(),
            detail,
            backend: self.kernel_of(event).map_or_else(String::new, |kernel| kernel.backend.clone()),
            source: self.source_of(event).unwrap_or_default().to_owned(),
            calls: 0,
            self_ns: 0,
            total_ns: 0,
            self_memory: 0,
            total_memory: 0,
            moved: 0,
            flops: 0,
            least_ns: 0.0,
            device_self_ns: 0,
            device_total_ns: 0,
            device_self_memory: 0,
            device_total_memory: 0,
        }
    }

    /// The events that an event is inside of, from the innermost.
    pub(crate) fn ancestors(&self, event: &Event) -> impl Iterator<Item = usize> {
        std::iter::successors(event.parent, |parent| self.events[*parent as usize].parent)
            .map(|parent| parent as usize)
    }

    /// [`self_times`](Profile::self_times) and [`self_memory`](Profile::self_memory) with kernels as parts of the events that
    /// run them.
    fn without_kernels(&self) -> (Vec<u64>, Vec<i64>) {
        let (mut times, mut memory) = (self.self_times(), self.self_memory());
        // An event comes after the one that it is inside of.
        for (index, event) in self.events.iter().enumerate().rev() {
            if let (Kind::Kernel, Some(parent)) = (event.kind, event.parent) {
                times[parent as usize] += times[index];
                memory[parent as usize] += memory[index];
            }
        }
        (times, memory)
    }

    /// For each event the sum of a fact of the operands of the kernels in it, and of one of those of the copies.
    fn of_kernels(
        &self,
        of_kernel: impl Fn(&Operands) -> u64,
        of_copy: impl Fn(&Operands) -> u64,
    ) -> Vec<u64> {
        let kernels: Vec<u64> = self.operands.iter().map(of_kernel).collect();
        let copies: Vec<u64> = self.operands.iter().map(of_copy).collect();
        let mut sums = vec![0u64; self.events.len()];
        for (index, event) in self.events.iter().enumerate().rev() {
            match (event.kind, event.operands) {
                (Kind::Kernel, Some(operands)) => sums[index] = kernels[operands as usize],
                (Kind::Copy, Some(operands)) => sums[index] = copies[operands as usize],
                _ => {}
            }
            if let Some(parent) = event.parent {
                sums[parent as usize] = sums[parent as usize].saturating_add(sums[index]);
            }
        }
        sums
    }
}

/// The least nanoseconds that a kernel with these operands takes within limits: those of moving them, or of its arithmetic.
///
/// Arithmetic on 64-bit floats takes twice the time of that on others.
fn least_ns(limits: &Limits, operands: &Operands) -> f64 {
    let elsewhere = operands.inputs().chain(&operands.outs).find(|tensor| tensor.device != "cpu");
    let (copies, arithmetic) = match elsewhere.map(|tensor| limits.of_device(&tensor.device)) {
        None => (limits.copy_gb_s, limits.gflop_s),
        Some(Some(device)) => (device.copy_gb_s, device.gflop_s),
        Some(None) => return 0.0,
    };
    let moving = if copies > 0.0 { operands.bytes() as f64 / copies } else { 0.0 };
    let is_double = |name: &str| matches!(name, "float64" | "complex128");
    let wide = operands.inputs().chain(&operands.outs).any(|tensor| is_double(&tensor.dtype));
    let peak = if wide { arithmetic / 2.0 } else { arithmetic };
    let computing = operands.flops.map_or(0.0, |count| if peak > 0.0 { count as f64 / peak } else { 0.0 });
    moving.max(computing)
}

impl AveragesRow {
    /// The time in which its kernels move bytes and compute: that of devices if they are on some.
    pub(crate) fn working_ns(&self) -> u64 {
        if self.device_total_ns > 0 { self.device_total_ns } else { self.total_ns }
    }

    /// The share of its time that its kernels need at least; empty if it has none, or limits were not measured.
    pub(crate) fn of_limit(&self) -> String {
        if self.least_ns > 0.0 { percent(self.least_ns, self.working_ns() as f64) } else { String::new() }
    }
}

impl Averages {
    /// The rows in another order.
    #[must_use]
    pub fn sort_by(mut self, order: SortBy) -> Averages {
        // Equal rows stay in the order of names.
        self.rows.sort_by(|a, b| (&a.name, &a.detail).cmp(&(&b.name, &b.detail)));
        match order {
            SortBy::SelfTime => self.rows.sort_by_key(|row| Reverse(row.self_ns)),
            SortBy::TotalTime => self.rows.sort_by_key(|row| Reverse(row.total_ns)),
            SortBy::AverageTime => self.rows.sort_by_key(|row| Reverse(row.total_ns / row.calls.max(1))),
            SortBy::Calls => self.rows.sort_by_key(|row| Reverse(row.calls)),
            SortBy::SelfMemory => self.rows.sort_by_key(|row| Reverse(row.self_memory)),
            SortBy::SelfDeviceTime => self.rows.sort_by_key(|row| Reverse(row.device_self_ns)),
            SortBy::Name => {}
        }
        self
    }

    /// At most so many rows in [`table`](Averages::table).
    #[must_use]
    pub fn row_limit(self, limit: usize) -> Averages {
        Averages { limit, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::DeviceLimits;
    use crate::model::TensorShape;

    #[test]
    fn a_kernel_is_bound_by_what_takes_longer() {
        let limits = Limits { copy_gb_s: 10.0, gflop_s: 100.0, threads: 1, devices: Vec::new() };
        let tensor = |dtype: &str, item_bytes: u32| TensorShape {
            dtype: dtype.to_owned(),
            item_bytes,
            sizes: vec![1000],
            strides: vec![1],
            device: "cpu".to_owned(),
        };
        let of =
            |dtype: &str, bytes, flops| Operands { args: vec![], outs: vec![tensor(dtype, bytes)], flops };
        assert_eq!(least_ns(&limits, &of("float32", 4, None)), 400.0);
        assert_eq!(least_ns(&limits, &of("float32", 4, Some(1000))), 400.0);
        assert_eq!(least_ns(&limits, &of("float32", 4, Some(1_000_000))), 10_000.0);
        assert_eq!(least_ns(&limits, &of("float64", 8, Some(1_000_000))), 20_000.0);
        // On a device, by its own limits, and without those none.
        let mut elsewhere = of("float32", 4, Some(1_000_000));
        elsewhere.outs[0].device = "cuda:0".to_owned();
        assert_eq!(least_ns(&limits, &elsewhere), 0.0);
        let device = DeviceLimits { device: "cuda:0".to_owned(), copy_gb_s: 100.0, gflop_s: 1000.0 };
        assert_eq!(least_ns(&Limits { devices: vec![device], ..limits }, &elsewhere), 1000.0);
    }
}
