//! Averages as text and as CSV.

use super::{Averages, AveragesRow, Group};
use crate::table::{Table, bytes, percent, rate, time};

impl Averages {
    /// The rows as text; columns for devices if the profile has work of some. GB/s are those of the bytes that kernels have to
    /// move at least, and GFLOP/s those of their arithmetic, over the row's total time, of devices if it has one; with limits that were measured, the share that the least time of the kernels has of it: the
    /// time of moving their bytes as fast as this machine copies, or of their arithmetic as fast as it computes.
    pub fn table(&self) -> String {
        let texts = 1 + usize::from(self.detail_head().is_some()) + if self.of_kernels() { 2 } else { 0 };
        let mut table = Table::new(self.head(), texts);
        let device_ns: u64 = self.rows.iter().map(|row| row.device_self_ns).sum();
        self.rows.iter().take(self.limit).for_each(|row| table.row(self.cells(row, device_ns)));
        let mut text = table.text();
        if let Some(left) = self.rows.len().checked_sub(self.limit).filter(|left| *left > 0) {
            text += &format!("… and {left} more\n");
        }
        text += &format!("Self CPU in all: {}, of {}\n", time(self.total_ns), time(self.duration_ns));
        if self.has_devices {
            text += &format!("Self device in all: {}\n", time(device_ns));
        }
        self.notes.iter().for_each(|note| text += &format!("note: {note}\n"));
        text
    }

    /// The head of the column that tells rows of one name apart.
    fn detail_head(&self) -> Option<&'static str> {
        match self.group {
            Group::Operator => None,
            Group::Shapes => Some("Operands"),
            Group::Kernel => Some("Operator"),
            Group::Site => Some("Site"),
        }
    }

    fn of_kernels(&self) -> bool {
        self.group == Group::Kernel
    }

    /// Whether rows have the share of their limit.
    fn has_shares(&self) -> bool {
        self.limits.is_some() && self.has_shapes
    }

    fn head(&self) -> Vec<&'static str> {
        let mut head = vec!["Name"];
        head.extend(self.detail_head());
        head.extend(self.of_kernels().then_some(["Backend", "Source"]).into_iter().flatten());
        head.extend(["Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU avg"]);
        head.extend(["Self mem", "CPU mem", "Calls"]);
        if self.has_devices {
            head.extend(["Self device %", "Self device", "Device total", "Device avg"]);
            head.extend(["Self device mem", "Device mem"]);
        }
        head.extend(self.has_shapes.then_some(["GB/s", "GFLOP/s"]).into_iter().flatten());
        head.extend(self.has_shares().then_some("of limit"));
        head
    }

    /// The cells of a row; `device_ns` is the time of devices in all rows.
    fn cells(&self, row: &AveragesRow, device_ns: u64) -> Vec<String> {
        let calls = row.calls.max(1);
        let mut cells = vec![row.name.clone()];
        cells.extend(self.detail_head().map(|_| row.detail.clone()));
        cells.extend(
            self.of_kernels().then(|| [row.backend.clone(), row.source.clone()]).into_iter().flatten(),
        );
        cells.extend([
            percent(row.self_ns as f64, self.total_ns as f64),
            time(row.self_ns),
            percent(row.total_ns as f64, self.total_ns as f64),
            time(row.total_ns),
            time(row.total_ns / calls),
            bytes(row.self_memory),
            bytes(row.total_memory),
            row.calls.to_string(),
        ]);
        if self.has_devices {
            cells.extend([
                percent(row.device_self_ns as f64, device_ns as f64),
                time(row.device_self_ns),
                time(row.device_total_ns),
                time(row.device_total_ns / calls),
                bytes(row.device_self_memory),
                bytes(row.device_total_memory),
            ]);
        }
        if self.has_shapes {
            cells.extend([rate(row.moved, row.working_ns()), rate(row.flops, row.working_ns())]);
        }
        cells.extend(self.has_shares().then(|| row.of_limit()));
        cells
    }

    /// The rows as CSV, with a head, in nanoseconds and bytes.
    pub fn csv(&self) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let mut text = String::from(
            "name,detail,backend,source,calls,self_ns,total_ns,self_memory,total_memory,moved_bytes,flops,device_self_ns,device_total_ns,device_self_memory,device_total_memory,least_ns\n",
        );
        for row in &self.rows {
            let numbers = format!(
                "{},{},{},{},{},{},{},{},{},{},{},{:.0}",
                row.calls,
                row.self_ns,
                row.total_ns,
                row.self_memory,
                row.total_memory,
                row.moved,
                row.flops,
                row.device_self_ns,
                row.device_total_ns,
                row.device_self_memory,
                row.device_total_memory,
                row.least_ns
            );
            let texts =
                [&row.name, &row.detail, &row.backend, &row.source].map(|text| quoted(text)).join(",");
            text += &format!("{texts},{numbers}\n");
        }
        text
    }
}
