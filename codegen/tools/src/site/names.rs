//! Names of operators in other libraries: a table beside the spec.
//!
//! In: a file `names.csv`, in the folder of the spec or in its folder `ops`. Its first line has `operator` and the names of
//! libraries, each other line the name of an operator, with or without overload, and its name in each library, or nothing.
//! Out: [`Names`]. No cell may contain a comma or a quote.

use std::collections::BTreeMap;
use std::path::Path;

use opsmith_codegen::model::Op;

/// Names in other libraries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    libraries: Vec<String>,
    rows: BTreeMap<String, Vec<String>>,
}

/// The places of the table, relative to the folder of the spec.
const PLACES: [&str; 2] = ["names.csv", "ops/names.csv"];

impl Names {
    /// The table beside a spec; an empty one if there is none.
    ///
    /// # Errors
    /// If there is a file that is not such a table.
    pub fn beside(folder: &Path) -> Result<Names, String> {
        for place in PLACES {
            let file = folder.join(place);
            match std::fs::read_to_string(&file) {
                Ok(text) => return Names::parse(&text).map_err(|why| format!("{}:{why}", file.display())),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(format!("cannot read {}: {error}", file.display())),
            }
        }
        Ok(Names::default())
    }

    /// The table of a text.
    ///
    /// # Errors
    /// The number of the line and its mistake.
    pub fn parse(text: &str) -> Result<Names, String> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let Some((_, head)) = lines.next() else { return Ok(Names::default()) };
        let mut head = head.split(',').map(|cell| cell.trim().to_owned());
        if head.next().as_deref() != Some("operator") {
            return Err(
                "1: the first line is `operator` and names of libraries, separated by commas".to_owned()
            );
        }
        let libraries: Vec<String> = head.collect();
        let mut rows = BTreeMap::new();
        for (number, line) in lines {
            let at = |mistake: &str| Err(format!("{}: {mistake}", number + 1));
            if line.contains('"') {
                return at("a cell cannot be quoted; write names without commas and quotes");
            }
            let mut cells = line.split(',').map(|cell| cell.trim().to_owned());
            let name = cells.next().unwrap_or_default();
            let cells: Vec<String> = cells.collect();
            if name.is_empty() {
                return at("the first cell is the name of an operator");
            }
            if cells.len() != libraries.len() {
                return at(&format!(
                    "{} names for {} libraries; leave a cell empty for none",
                    cells.len(),
                    libraries.len()
                ));
            }
            if rows.insert(name.clone(), cells).is_some() {
                return at(&format!("`{name}` has a line already; remove one"));
            }
        }
        Ok(Names { libraries, rows })
    }

    /// The operators of the table, by full name or without overload.
    pub fn operators(&self) -> impl Iterator<Item = &str> {
        self.rows.keys().map(String::as_str)
    }

    /// The names of an operator, each with its library: those of its full name, or else of the name without overload.
    pub fn of(&self, op: &Op) -> Vec<(&str, &str)> {
        let Some(row) = self.rows.get(&op.name).or_else(|| self.rows.get(&op.base)) else {
            return Vec::new();
        };
        let both = self.libraries.iter().zip(row);
        both.filter(|(_, name)| !name.is_empty())
            .map(|(library, name)| (library.as_str(), name.as_str()))
            .collect()
    }
}
