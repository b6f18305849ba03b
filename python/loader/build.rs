//! Writes a table of the stock library's spec, whose operators and functions a loaded spec may call.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = Path::new(&env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("spec");
    let mut files = vec![PathBuf::from("ops.yaml")];
    for entry in fs::read_dir(folder.join("ops"))? {
        let name = entry?.file_name();
        if Path::new(&name).extension().is_some_and(|extension| extension == "yaml") {
            files.push(Path::new("ops").join(name));
        }
    }
    files.sort();
    let rows = files.iter().map(|file| {
        let (name, path) = (file.display().to_string(), folder.join(file));
        format!("    ({name:?}, include_str!({path:?})),\n")
    });
    let text = format!("&[\n{}]\n", rows.collect::<String>());
    println!("cargo::rerun-if-changed=spec/ops.yaml");
    println!("cargo::rerun-if-changed=spec/ops");
    fs::write(Path::new(&env::var_os("OUT_DIR").unwrap_or_default()).join("stock.rs"), text)
}
