//! ONNX models: every operator and whole networks, with the results that other programs computed.
//!
//! Cases are in `tests/data/onnx`. `OPSMITH_ONNX_CASES=FILE cargo test -p opsmith-tests --test onnx -- --ignored --nocapture`
//! runs the cases of another archive, such as all node tests of the package `onnx` (`scripts/onnx.sh`), and prints the reasons
//! of those that fail.

mod programs_support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use opsmith::Tensor;
use opsmith_programs::Program;
use programs_support::{LIBRARY, compare};
use zip::ZipArchive;

/// A model with inputs and expected results.
#[derive(Default)]
struct Case {
    model: Vec<u8>,
    inputs: BTreeMap<usize, Tensor>,
    outputs: BTreeMap<usize, Tensor>,
}

/// The cases of an archive by their names.
fn cases(path: &Path) -> BTreeMap<String, Case> {
    assert!(!LIBRARY.ops.is_empty());
    let mut zip = ZipArchive::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut cases: BTreeMap<String, Case> = BTreeMap::new();
    for number in 0..zip.len() {
        let mut member = zip.by_index(number).unwrap();
        let path = member.name().unwrap().into_owned();
        let (name, file) = path.split_once('/').unwrap();
        let mut bytes = Vec::new();
        member.read_to_end(&mut bytes).unwrap();
        let case = cases.entry(name.to_owned()).or_default();
        let array = || Tensor::read_npy(bytes.as_slice()).unwrap_or_else(|error| panic!("{path}: {error}"));
        match file.strip_suffix(".npy") {
            None => case.model = bytes,
            Some(array_name) => {
                let (arrays, number) = match array_name.strip_prefix("in") {
                    Some(number) => (&mut case.inputs, number),
                    None => (&mut case.outputs, array_name.strip_prefix("out").unwrap()),
                };
                arrays.insert(number.parse().unwrap(), array());
            }
        }
    }
    cases
}

/// Results that follow from random numbers: only their shapes are compared.
fn is_random(name: &str) -> bool {
    ["bernoulli", "training_dropout", "multinomial"].iter().any(|word| name.contains(word))
}

/// Runs a case; an error in words if it fails.
fn run(name: &str, case: &Case) -> Result<(), String> {
    let program = Program::from_bytes(case.model.clone()).map_err(|error| error.to_string())?;
    program.check().map_err(|errors| errors.to_string())?;
    let inputs: Vec<Tensor> = case.inputs.values().cloned().collect();
    let expected: Vec<Tensor> = case.outputs.values().cloned().collect();
    for outputs in [program.run(&inputs), program.call(&inputs)] {
        let outputs = outputs.map_err(|error| error.to_string())?;
        if is_random(name) {
            let shapes = |tensors: &[Tensor]| tensors.iter().map(|x| x.shape().to_vec()).collect::<Vec<_>>();
            assert_eq!(shapes(&outputs), shapes(&expected));
            continue;
        }
        catch_unwind(AssertUnwindSafe(|| compare(name, &outputs, &expected))).map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            text.unwrap_or_else(|| "the results differ".to_owned())
        })?;
    }
    Ok(())
}

fn data(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/onnx").join(name)
}

/// The operators of the table.
fn supported() -> BTreeSet<String> {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime/graph/onnx/src/operators/table.rs");
    let text = std::fs::read_to_string(table).unwrap();
    let row = |line: &str| Some(line.trim().strip_prefix("row(\"")?.split_once('"')?.0.to_owned());
    text.lines().filter_map(row).collect()
}

#[test]
fn every_case_of_an_operator() {
    let cases = cases(&data("nodes.zip"));
    let failed: Vec<String> = cases
        .iter()
        .filter_map(|(name, case)| run(name, case).err().map(|error| format!("{name}: {error}")))
        .collect();
    assert!(failed.is_empty(), "{} of {} failed:\n{}", failed.len(), cases.len(), failed.join("\n\n"));
    assert!(cases.len() >= 250, "{} cases", cases.len());
}

#[test]
#[ignore = "runs the archive that `OPSMITH_ONNX_CASES` names"]
fn cases_of_an_archive() {
    let path = std::env::var("OPSMITH_ONNX_CASES").expect("OPSMITH_ONNX_CASES names an archive");
    let supported = supported();
    let (mut passed, mut failed, mut others) = (0, Vec::new(), BTreeMap::new());
    for (name, case) in cases(Path::new(&path)) {
        match catch_unwind(AssertUnwindSafe(|| run(&name, &case))) {
            Ok(Ok(())) => passed += 1,
            Ok(Err(error)) if error.contains("of ONNX 18 to 23 is not supported") => {
                let operator = error.split('`').nth(1).unwrap_or_default().to_owned();
                assert!(!supported.contains(&operator), "{name}");
                *others.entry(operator).or_insert(0) += 1;
            }
            Ok(Err(error)) => failed.push(format!("{name}: {error}")),
            Err(_) => failed.push(format!("{name}: PANIC")),
        }
    }
    for text in &failed {
        println!("FAILED {}", text.replace('\n', " | "));
    }
    println!("operators without a row: {others:?}");
    println!("{passed} passed, {} failed", failed.len());
}
