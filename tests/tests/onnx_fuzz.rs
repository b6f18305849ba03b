//! Mutated ONNX models: each is either rejected with an error, or a valid program.
//!
//! `cargo test -p opsmith-tests --test onnx_fuzz -- --ignored --nocapture` runs for `OPSMITH_FUZZ_SECONDS` seconds (60), from
//! the seed `OPSMITH_FUZZ_SEED` (the time, printed), in child processes with little memory. `OPSMITH_FUZZ_ONLY=SEED` looks at
//! one model alone, in this process. Each former finding is a test in `onnx_hostile.rs`.

mod fuzz_support;
mod programs_support;

use std::io::Read as _;
use std::path::Path;

use fuzz_support::children::{Children, number};
use opsmith::{Tensor, TensorOps};
use opsmith_programs::{Program, ProgramInput, ProgramSize};
use opsmith_testing::fuzz::Random;
use programs_support::LIBRARY;
use zip::ZipArchive;

const CHILDREN: Children = Children {
    name: "onnx-fuzz",
    // A loop may go on for ever, as any loop in a program.
    may_hang: |step, input| step.starts_with("run") && has_a_loop(input),
};

/// Larger runs would take all the time.
const LARGE: i64 = 1 << 16;

/// The models of all cases, and those of small networks.
fn corpus() -> Vec<Vec<u8>> {
    assert!(!LIBRARY.ops.is_empty());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/onnx");
    let mut zip = ZipArchive::new(std::fs::File::open(folder.join("nodes.zip")).unwrap()).unwrap();
    let mut models = Vec::new();
    for number in 0..zip.len() {
        let mut member = zip.by_index(number).unwrap();
        if member.name().unwrap().ends_with(".onnx") {
            let mut bytes = Vec::new();
            member.read_to_end(&mut bytes).unwrap();
            models.push(bytes);
        }
    }
    for name in ["cond.onnx", "lstm.onnx", "convnet.onnx"] {
        models.push(std::fs::read(folder.join(name)).unwrap());
    }
    models
}

/// A model of the corpus with a few changes, which a seed decides.
fn mutated(corpus: &[Vec<u8>], seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = corpus[random.below(corpus.len())].clone();
    for _ in 0..1 + random.below(4) / (1 + random.below(3)) {
        let at = random.below(bytes.len().max(1));
        if bytes.is_empty() {
            break;
        }
        match random.below(8) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.draw() as u8,
            2 => bytes[at] = bytes[at].wrapping_add(1),
            3 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
            4 => {
                let other = &corpus[random.below(corpus.len())];
                let from = random.below(other.len());
                let part = other[from..(from + 1 + random.below(40)).min(other.len())].to_vec();
                bytes.splice(at..at, part);
            }
            5 => {
                let end = (at + 1 + random.below(20)).min(bytes.len());
                bytes.drain(at..end);
            }
            6 => {
                // A name or number at two places.
                let end = (at + 1 + random.below(12)).min(bytes.len());
                let part = bytes[at..end].to_vec();
                let target = random.below(bytes.len() - part.len() + 1);
                bytes[target..target + part.len()].copy_from_slice(&part);
            }
            _ => bytes.truncate(at),
        }
    }
    bytes
}

/// Does everything with a model. Errors are answers, and each says something.
fn look(model: Vec<u8>, note: &dyn Fn(&str)) {
    let says = |text: String| assert!(!text.trim().is_empty(), "an error without a text");
    note("load");
    let program = match Program::from_bytes(model) {
        Ok(program) => program,
        Err(error) => return says(error.to_string()),
    };
    note("check");
    if let Err(errors) = program.check() {
        return says(errors.to_string());
    }
    note("describe");
    if let Ok(graph) = program.graph() {
        let _ = (graph.describe(), graph.to_dot());
    }
    for size in [0, 1, 3] {
        note(&format!("run at {size}"));
        let inputs = program.inputs().iter().map(|input| tensor(input, size)).collect::<Option<Vec<_>>>();
        if let Some(Err(error)) = inputs.map(|inputs| program.run(&inputs)) {
            says(error.to_string());
        }
    }
}

/// An input at about a size; `None` if it would be large.
fn tensor(input: &ProgramInput, near: i64) -> Option<Tensor> {
    let size = |size: &ProgramSize| match size {
        ProgramSize::Fixed(size) => *size,
        ProgramSize::Symbol { least, most, .. } => near.max(*least).min(most.unwrap_or(i64::MAX)),
        // The models have none.
        ProgramSize::Sum { plus, .. } => *plus,
    };
    let shape: Vec<i64> = input.sizes.iter().map(size).collect();
    let count = shape.iter().try_fold(1i64, |count, size| count.checked_mul(*size).filter(|_| *size >= 0))?;
    let values = opsmith::linspace(-1.0, 2.0, Some(count).filter(|count| *count <= LARGE)?).ok()?;
    values.reshape(&shape).ok()?.to_dtype(input.dtype).ok()
}

/// Whether the model in a folder has a loop.
fn has_a_loop(folder: &Path) -> bool {
    std::fs::read(folder.join("model.onnx"))
        .ok()
        .and_then(|model| Program::from_bytes(model).ok())
        .is_some_and(|program| program.graph().is_ok_and(|graph| graph.describe().contains("while")))
}

#[test]
#[ignore = "is what the others start as a process of its own"]
fn child() {
    CHILDREN.child(|folder| {
        let (corpus, file) = (corpus(), folder.join("input/model.onnx"));
        Box::new(move |seed, note| {
            let model = mutated(&corpus, seed);
            // Overwriting a file waits for the disk, making one does not.
            let _ = std::fs::remove_file(&file);
            std::fs::write(&file, &model).expect("the folder for temporary files can be written");
            look(model, note);
        })
    });
}

#[test]
fn a_few_mutated_models() {
    let (inputs, found) = CHILDREN.fuzz("few", 1, 600, 300, 1);
    assert!(found.is_empty(), "{}", found.join("\n\n"));
    assert_eq!(inputs, 300);
}

#[test]
#[ignore = "takes a minute; `.ci/run` calls it"]
fn fuzz_models() {
    if let Some(seed) = number("OPSMITH_FUZZ_ONLY") {
        return look(mutated(&corpus(), seed), &|step| println!("{step}"));
    }
    CHILDREN.fuzz_long();
}
