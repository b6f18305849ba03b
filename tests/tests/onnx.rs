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

use opsmith::{DType, Tensor, TensorOps};
use opsmith_programs::Program;
use programs_support::{Archive, LIBRARY, folders};
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

/// Compares results: integers exactly, floats by `max|a-b| ≤ bound · max(1, max|b|)`, in which infinite elements are equal.
fn compare(outputs: &[Tensor], expected: &[Tensor]) -> Result<(), String> {
    if outputs.len() != expected.len() {
        return Err(format!("{} outputs, expected {}", outputs.len(), expected.len()));
    }
    for (number, (output, expected)) in outputs.iter().zip(expected).enumerate() {
        let of = |tensor: &Tensor| format!("{} {:?}", tensor.dtype(), tensor.shape());
        if of(output) != of(expected) {
            return Err(format!("output {number} is {}, expected {}", of(output), of(expected)));
        }
        let bound = match expected.dtype() {
            DType::F16 => 2e-3,
            DType::F32 | DType::F64 | DType::C64 | DType::C128 => 1e-4,
            _ => 0.0,
        };
        let numbers = |tensor: &Tensor| tensor.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
        let (output, expected) = (numbers(output), numbers(expected));
        let finite = expected.iter().filter(|value| value.is_finite());
        let bound = bound * finite.fold(1.0f64, |most, value| most.max(value.abs()));
        for (place, (a, b)) in output.iter().zip(&expected).enumerate() {
            if !(a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= bound) {
                return Err(format!("output {number}, element {place} is {a}, expected {b} within {bound}"));
            }
        }
    }
    Ok(())
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
        compare(&outputs, &expected)?;
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

/// Runs the networks of a folder at all sizes recorded for the programs that they were made of.
fn networks(folder: &Path) -> usize {
    let recorded: Vec<_> = std::iter::once(folder.to_owned()).chain(folders()).collect();
    let mut ran = 0;
    let mut failed = Vec::new();
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "onnx")) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let archive =
            recorded.iter().map(|folder| folder.join(format!("{name}.npz"))).find(|path| path.exists());
        let archive = Archive::open(&archive.unwrap_or_else(|| panic!("{name}: no recorded results")));
        match network(path, &archive) {
            Ok(cases) => println!("{name}: {cases} cases"),
            Err(error) => failed.push(format!("{name}: {error}")),
        }
        ran += 1;
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    ran
}

fn network(path: &Path, recorded: &Archive) -> Result<usize, String> {
    let program = Program::load(path).map_err(|error| error.to_string())?;
    program.check().map_err(|errors| errors.to_string())?;
    let mut cases = 0;
    while let Some(inputs) = recorded.arrays(&format!("case{cases}.in")) {
        let expected = recorded.arrays(&format!("case{cases}.out")).expect("recorded results");
        // The second run of a size uses its plan.
        for _ in 0..2 {
            let place = |error| format!("case {cases}: {error}");
            let outputs = program.run(&inputs).map_err(|error| place(error.to_string()))?;
            compare(&outputs, &expected).map_err(place)?;
        }
        cases += 1;
    }
    if cases < 4 { Err(format!("{cases} recorded cases")) } else { Ok(cases) }
}

#[test]
fn networks_give_what_pytorch_gave() {
    assert!(networks(&data("")) >= 6);
}

#[test]
#[ignore = "runs the networks of the folder that `OPSMITH_ONNX_NETWORKS` names"]
fn networks_of_a_folder() {
    networks(Path::new(
        &std::env::var("OPSMITH_ONNX_NETWORKS").expect("OPSMITH_ONNX_NETWORKS names a folder"),
    ));
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
