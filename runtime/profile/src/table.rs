//! Tables of text, and numbers as people read them.

/// A table: the first columns are texts, the others numbers.
pub(crate) struct Table {
    head: Vec<String>,
    texts: usize,
    rows: Vec<Vec<String>>,
}

/// Longest text of a cell, in characters.
const WIDEST: usize = 64;

impl Table {
    /// A table whose first `texts` columns are aligned to the left.
    pub fn new(head: Vec<impl Into<String>>, texts: usize) -> Table {
        let head = head.into_iter().map(Into::into).collect();
        Table { head, texts, rows: Vec::new() }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.head.len());
        self.rows.push(cells.into_iter().map(|cell| shortened(&cell)).collect());
    }

    /// The rows under their heads, between rules.
    pub fn text(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.chain([self.head[column].chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let cells = cells.zip(&widths).enumerate().map(|(column, (cell, width))| {
                if column < self.texts { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let rule = widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>().join("  ");
        let mut lines = vec![line(&mut self.head.iter().map(String::as_str)), rule];
        lines.extend(self.rows.iter().map(|row| line(&mut row.iter().map(String::as_str))));
        lines.push(String::new());
        lines.join("\n")
    }
}

/// A text of at most [`WIDEST`] characters, whose middle is left out.
fn shortened(text: &str) -> String {
    let count = text.chars().count();
    if count <= WIDEST {
        return text.to_owned();
    }
    let half = (WIDEST - 1) / 2;
    let first: String = text.chars().take(half).collect();
    let last: String = text.chars().skip(count - half).collect();
    format!("{first}…{last}")
}

/// `12.3 us`
pub(crate) fn time(nanoseconds: u64) -> String {
    let value = nanoseconds as f64;
    match nanoseconds {
        0..1_000 => format!("{nanoseconds} ns"),
        1_000..1_000_000 => format!("{:.3} us", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.3} ms", value / 1e6),
        _ => format!("{:.3} s", value / 1e9),
    }
}

/// `1.5 MiB`, with a sign if negative.
pub(crate) fn bytes(bytes: i64) -> String {
    let (sign, size) = (if bytes < 0 { "-" } else { "" }, bytes.unsigned_abs() as f64);
    let units = ["KiB", "MiB", "GiB", "TiB"];
    if size < 1024.0 {
        return format!("{bytes} B");
    }
    let (mut size, mut unit) = (size / 1024.0, 0);
    while size >= 1024.0 && unit + 1 < units.len() {
        (size, unit) = (size / 1024.0, unit + 1);
    }
    format!("{sign}{size:.2} {}", units[unit])
}

/// `12.3 %` of a whole; empty if there is none.
pub(crate) fn percent(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{:.1} %", 100.0 * part / whole) } else { String::new() }
}

/// Gigabytes a second; empty without bytes or time.
pub(crate) fn rate(bytes: u64, nanoseconds: u64) -> String {
    if bytes == 0 || nanoseconds == 0 {
        String::new()
    } else {
        format!("{:.2}", bytes as f64 / nanoseconds as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units() {
        assert_eq!(
            [time(999), time(1_500), time(2_000_000), time(3_100_000_000)],
            ["999 ns", "1.500 us", "2.000 ms", "3.100 s"]
        );
        assert_eq!(
            [bytes(0), bytes(-2048), bytes(3 << 20), bytes(i64::MAX)],
            ["0 B", "-2.00 KiB", "3.00 MiB", "8388608.00 TiB"]
        );
        assert_eq!(
            [percent(1.0, 8.0), percent(1.0, 0.0), rate(10, 5), rate(0, 5)],
            ["12.5 %", "", "2.00", ""]
        );
    }

    #[test]
    fn long_cells_keep_both_ends() {
        let text = format!("{}é{}", "a".repeat(60), "b".repeat(60));
        let short = shortened(&text);
        assert_eq!(short.chars().count(), 63);
        assert!(short.starts_with("aaa") && short.ends_with("bbb") && short.contains('…'));
    }

    #[test]
    fn texts_are_left_and_numbers_right() {
        let mut table = Table::new(vec!["Name", "Calls"], 1);
        table.row(vec!["add".into(), "12345678".into()]);
        assert_eq!(table.text(), "Name     Calls\n----  --------\nadd   12345678\n");
    }
}
