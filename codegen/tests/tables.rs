//! Kernel tables of a file of the stock spec: those that a crate generates which reads no other file.

use std::path::{Path, PathBuf};

use opsmith_codegen::config::Tables;
use opsmith_codegen::{Config, pipeline};

/// The files of scalar functions.
const FUNCTIONS: &str = "ops/functions.yaml";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The text of the tables' module.
fn tables(checked: &pipeline::Checked, config: &Config) -> String {
    let files = pipeline::generate(checked, config).expect("a good spec gives good code");
    let module = files.into_iter().find(|file| file.name == "kernel_tables.rs");
    module.expect("tables are a module").text
}

#[test]
fn tables_of_a_file_need_no_other() {
    let whole = Config::stock(repository().join("ops.yaml"));
    let mut all = pipeline::check(&whole).expect("the stock spec can be read");
    pipeline::find_kernels(&mut all, &whole);
    let mut names: Vec<&str> = all.model.ops.iter().map(|op| op.file()).collect();
    names.sort_unstable();
    names.dedup();
    assert!(names.len() > 30, "{names:?}");
    for name in names {
        let files = vec![FUNCTIONS.to_owned(), name.to_owned()];
        let config = Config { tables: Tables::Families(files), ..whole.clone() };
        let mut alone = pipeline::check(&config).expect("the file can be read");
        pipeline::find_kernels(&mut alone, &config);
        let (own, expected) = (tables(&alone, &config), tables(&all, &config));
        for (own, expected) in own.lines().zip(expected.lines()) {
            assert_eq!(own, expected, "{name}");
        }
        assert_eq!(own.len(), expected.len(), "{name}");
        let read: Vec<_> = alone.files.iter().filter_map(|file| file.to_str()).collect();
        assert!(read.len() == 2 && read[1].ends_with(name), "{read:?}");
    }
}
