//! A slow operator from the first look to the mended kernel, by the commands that a user has: profile, table, kernel's place,
//! reproducer, another kernel, difference, and the curves of both builds.

#[path = "support/new_crate.rs"]
mod new_crate;
#[allow(dead_code, reason = "other tests use the rest")]
mod support;

use std::path::Path;

use new_crate::{Scratch, cargo, compared, init_with_versions, set_version};
use support::{Run, opsmith};

/// An operator of the crate, as a user would add it.
const ENTRY: &str = r#"
- func: highest_so_far(Tensor self) -> Tensor
  doc: |
    For each element of a vector, the greatest of it and those before it.

    `[1, 3, 2]` gives `[1, 3, 3]`.
  variants: [functional, out]
  check: [self.dim() == 1]
  shape: follow(self)
  dtype: follow(self)
  dtypes: floating
  dispatch: {CPU: highest::so_far}
  derivatives:
    self: not_implemented("the gradient is not written yet")
  samples: [{self: "spread(5)"}]
"#;

/// Its first kernel: slow, because the work grows with the square of the length.
const SLOW: &str = r#"//! The greatest element so far.

use opsmith::runtime::arith::Ordered;
use opsmith::{Element, Result, View, ViewMut};

pub fn so_far<T>(vector: View<'_, T>, mut out: ViewMut<'_, T>) -> Result<()>
where
    T: Element<Compute: Ordered>,
{
    let elements = vector.to_contiguous();
    let greatest = |last: usize| {
        let before = elements[..=last].iter().map(|element| element.to_compute());
        before.fold(T::Compute::LOWEST, |a, b| if a.ge(b) { a } else { b })
    };
    out.write((0..elements.len()).map(|last| T::from_compute(greatest(last))))
}
"#;

/// The kernel that replaces it: one pass.
const MENDED: &str = r#"//! The greatest element so far.

use opsmith::runtime::arith::Ordered;
use opsmith::{Element, Result, View, ViewMut};

pub fn so_far<T>(vector: View<'_, T>, mut out: ViewMut<'_, T>) -> Result<()>
where
    T: Element<Compute: Ordered>,
{
    let elements = vector.to_contiguous();
    let mut greatest = T::Compute::LOWEST;
    out.write(elements.iter().map(|element| {
        let element = element.to_compute();
        greatest = if greatest.ge(element) { greatest } else { element };
        T::from_compute(greatest)
    }))
}
"#;

/// The program that is too slow. It prints its result, so that the mended kernel is seen to give the same.
const WORK: &str = r#"//! A program that is slower than it should be.

use opsmith::profile::{ProfileOptions, profile_with, range};
use opsmith::{Result, TensorOps};

fn work() -> Result<f64> {
    let x = opsmith::arange(2048)?.mul(0.37)?.sin()?;
    let mut total = 0.0;
    for _ in 0..6 {
        let _step = range("step");
        let highest = my_ops::highest_so_far(&x)?;
        total += highest.mul(&x)?.exp()?.sum()?.to_vec::<f32>()?[0] as f64;
    }
    let mut out = x.mul(1.0)?;
    my_ops::highest_so_far_out(&x, &mut out)?;
    out.sin_()?;
    Ok(total)
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("the profile's file is missing")?;
    let (total, profile) = profile_with(ProfileOptions::new().name("work"), work)?;
    profile.save(file)?;
    println!("total {}", total?);
    Ok(())
}
"#;

/// A crate with the operator and its program, in a folder of this name.
fn shop(scratch: &Scratch) -> String {
    let folder = init_with_versions(scratch);
    let manifest = scratch.read("my-ops/Cargo.toml");
    let with_profiles = manifest.replacen("opsmith = { ", "opsmith = { features = [\"profile\"], ", 1);
    assert_ne!(manifest, with_profiles);
    write(&folder, "Cargo.toml", &with_profiles);
    write(&folder, "ops.yaml", &(scratch.read("my-ops/ops.yaml") + ENTRY));
    let modules = scratch.read("my-ops/src/kernels/mod.rs");
    write(&folder, "src/kernels/mod.rs", &format!("{modules}\npub mod highest;\n"));
    write(&folder, "src/kernels/highest.rs", SLOW);
    std::fs::create_dir(Path::new(&folder).join("examples")).unwrap();
    write(&folder, "examples/work.rs", WORK);
    folder
}

fn write(folder: &str, file: &str, text: &str) {
    std::fs::write(Path::new(folder).join(file), text).unwrap();
}

#[track_caller]
fn fine(run: Run) -> String {
    assert_eq!(run.status, Some(0), "{}{}", run.stdout, run.stderr);
    run.stdout
}

/// The words of the row that begins with a name.
#[track_caller]
fn row<'a>(table: &'a str, name: &str) -> Vec<&'a str> {
    let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.into_iter().find(|row| row.first() == Some(&name)).unwrap_or_else(|| panic!("no {name} in\n{table}"))
}

/// A copy of a crate, with another version, so that both are compiled in one folder; else the command would compile all dependencies for
/// the second.
fn keep(folder: &str, kept: &str) {
    copy(Path::new(folder), Path::new(kept));
    set_version(kept, "0.0.1");
}

/// The operator's ratio in a comparison is no chance, and its row is before those that changed less.
#[track_caller]
fn is_faster(diff: &str) {
    let found = row(diff, "highest_so_far");
    assert_eq!(found.last(), Some(&"*"), "{diff}");
    let ratio: f64 = found[found.len() - 2].parse().unwrap();
    assert!(ratio < 1.0, "{diff}");
    assert!(
        diff.lines().position(|line| line.starts_with("highest_so_far "))
            < diff.lines().position(|line| line.starts_with("exp ")),
        "{diff}"
    );
}

#[test]
#[ignore = "takes minutes, since it compiles a crate; `.ci/run` calls it"]
fn a_slow_operator_is_found_explained_repeated_mended_and_compared() {
    let scratch = Scratch::new("story");
    let folder = shop(&scratch);
    let (before, after) = (scratch.path("before.profile.json"), scratch.path("after.profile.json"));
    let work = |file: &str| fine(cargo(&folder, &["run", "--quiet", "--example", "work", "--", file]));

    // Profile and table: the slow operator is the first row.
    let total = work(&before);
    let table = fine(opsmith(&["profile", "show", &before]));
    let first = table.lines().find(|line| line.contains('%') && !line.contains("Self CPU")).unwrap();
    assert!(first.starts_with("highest_so_far "), "{table}");
    // Its line in the program.
    let line = 1 + WORK.lines().position(|line| line.contains("highest_so_far")).unwrap();
    let sites = fine(opsmith(&["profile", "show", &before, "--group", "site", "--limit", "1"]));
    assert!(sites.contains(&format!("examples/work.rs:{line}:")), "{sites}");

    // Explain: the kernel's file and line.
    let spec = format!("{folder}/ops.yaml");
    let sizes = ["--shapes", "2048", "--spec", &spec, "--builds-on", "ops.yaml"];
    let explained = fine(opsmith(&[&["explain", "highest_so_far"], &sizes[..]].concat()));
    let line = 1 + SLOW.lines().position(|line| line.starts_with("pub fn")).unwrap();
    assert!(explained.contains(&format!("src/kernels/highest.rs:{line}")), "{explained}");
    let kernels = fine(opsmith(&["profile", "show", &before, "--group", "kernel"]));
    assert!(kernels.contains(&format!("  src/kernels/highest.rs:{line} ")), "{kernels}");

    // Reproduce: a program that repeats the slowest call, built and run as it is written.
    fine(opsmith(&[
        "profile",
        "repro",
        &before,
        "highest_so_far",
        "-o",
        &format!("{folder}/examples/repro.rs"),
    ]));
    let repeat = || fine(cargo(&folder, &["run", "--quiet", "--example", "repro"]));
    let slow = repeat();
    assert!(slow.contains(" calls, median "), "{slow}");

    // The other forms are repeated as they were called.
    for (form, name) in [("highest_so_far.out", "repro_out"), ("sin_", "repro_inplace")] {
        let program = format!("{folder}/examples/{name}.rs");
        fine(opsmith(&["profile", "repro", &before, form, "-o", &program]));
        let ran = fine(cargo(&folder, &["run", "--quiet", "--example", name]));
        assert!(ran.contains(" calls, median "), "{ran}");
    }

    // Both builds side by side: a copy of the crate keeps the slow kernel.
    let kept = scratch.path("before/my-ops");
    keep(&folder, &kept);

    // Mend, and see that the result is the same.
    write(&folder, "src/kernels/highest.rs", MENDED);
    assert_eq!(work(&after), total);
    let mended = repeat();
    assert!(median(&mended) < median(&slow), "{slow}{mended}");

    // Compare the profiles: the operator's ratio is no chance, and it is the row that changed most.
    let diff = fine(opsmith(&["profile", "diff", &before, &after]));
    is_faster(&diff);
    println!("{table}\n{slow}{mended}\n{diff}");

    two_builds_are_compared(&scratch, &kept, &folder);
}

/// The curves of an operator in two builds: the first row of the table names both folders, each size has both times and their
/// ratio.
fn two_builds_are_compared(scratch: &Scratch, before: &str, after: &str) {
    let sizes = ["highest_so_far", "--shapes", "256", "--shapes", "2048"];
    let (rows, picture) = compared(scratch, &sizes, &[before, after]);
    assert_eq!(rows[0], ["Shapes", before, after, "ratio"]);
    assert_eq!((&*rows[2][0], &*rows[3][0]), ("256", "2048"));
    let ratio: f64 = rows[3].last().unwrap().parse().unwrap();
    assert!(ratio < 1.0, "{ratio}");
    assert_eq!(
        (picture.matches("<circle").count(), picture.matches("<polyline").count()),
        (4, 2),
        "{picture}"
    );
}

/// The median time that a reproducer printed, in microseconds.
fn median(printed: &str) -> f64 {
    let text = printed.split(" median ").nth(1).and_then(|text| text.split(',').next()).unwrap();
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let number: f64 = digits.parse().unwrap();
    match &text[digits.len()..] {
        "ns" => number / 1e3,
        "ms" => number * 1e3,
        "s" => number * 1e6,
        _ => number,
    }
}

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
