//! The examples of this folder: their whole output, and their logits, which PyTorch recorded.

use std::process::Command;

use opsmith::{Device, Generator, Tensor, TensorOps};
use opsmith_example_programs::{file, text};
use opsmith_nn::npz::NpzArchive;
use opsmith_programs::Program;

/// The variable by which this test writes the expected outputs anew.
const UPDATE: &str = "OPSMITH_UPDATE_EXAMPLES";

/// Runs an example and compares its output with the recorded one.
#[track_caller]
fn prints(name: &str, variables: &[(&str, &str)]) {
    let output = Command::new(env!("CARGO_BIN_EXE_opsmith-example-programs"))
        .arg(name)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} failed:\n{errors}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let expected = file(&format!("expected/{name}.txt"));
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&expected, &printed).unwrap();
    }
    let expected = std::fs::read_to_string(expected).unwrap();
    assert_eq!(printed, expected, "with {variables:?}; `{UPDATE}=1` writes the expected output anew");
}

#[test]
fn digits() {
    prints("digits", &[]);
}

#[test]
fn shapes() {
    prints("shapes", &[]);
}

#[test]
fn text_is_the_same_with_other_instructions_and_threads() {
    prints("text", &[]);
    prints("text", &[("OPSMITH_SIMD", "scalar"), ("OPSMITH_NUM_THREADS", "1")]);
    prints("text", &[("OPSMITH_SIMD", "avx2"), ("OPSMITH_NUM_THREADS", "2")]);
}

/// Compares logits within 1e-4 of the largest one.
#[track_caller]
fn compare(found: &Tensor, expected: &Tensor) {
    assert_eq!(found.shape(), expected.shape());
    let bound = 1e-4 * expected.abs().unwrap().max().unwrap().item().unwrap().to_f64().max(1.0);
    let apart = found.sub(expected).unwrap().abs().unwrap().max().unwrap().item().unwrap().to_f64();
    assert!(apart <= bound, "{apart} apart, allowed {bound}");
}

#[test]
fn logits_of_classifiers_are_those_of_pytorch() {
    for name in ["digits", "shapes"] {
        let program = Program::load(file(&format!("{name}.pt2"))).unwrap();
        let mut recorded = NpzArchive::open(file(&format!("{name}.npz"))).unwrap();
        let images = recorded.read("images").unwrap();
        let logits = recorded.read("logits").unwrap();
        compare(&program.run(&[&images]).unwrap()[0], &logits);
        // A batch of one has the kernels of other layouts.
        let one = program.run(&[images.narrow(0, 7, 1).unwrap()]).unwrap();
        compare(&one[0], &logits.narrow(0, 7, 1).unwrap());
        // Rounding changes no name: the best logit is far above the second.
        let (best, _) = logits.topk(2).unwrap();
        let margins = best.select(1, 0).unwrap().sub(&best.select(1, 1).unwrap()).unwrap();
        assert!(margins.min().unwrap().item().unwrap().to_f64() > 1e-2, "{name}");
    }
}

#[test]
fn logits_of_steps_are_those_of_pytorch() {
    let program = Program::load(file("text.pt2")).unwrap();
    let mut recorded = NpzArchive::open(file("text.npz")).unwrap();
    let prompt: Vec<u8> =
        recorded.read("prompt").unwrap().to_vec::<i64>().unwrap().iter().map(|id| *id as u8).collect();
    let mut logits = |name: &str| recorded.read(name).unwrap().squeeze_dim(0).unwrap();
    let graph = program.graph().unwrap();
    compare(&text::step(&program, &prompt, 0).unwrap(), &logits("first"));
    // The second step reads the cache that the first one wrote.
    compare(&text::step(&program, b"f", prompt.len()).unwrap(), &logits("second"));
    // Another text begins at position 0, whatever the cache has.
    compare(&text::step(&program, &prompt, 0).unwrap(), &logits("first"));
    let now = program.graph().unwrap();
    assert!(std::sync::Arc::ptr_eq(&graph, &now), "a step that writes the cache makes no new graph");
}

/// The expected text, whose characters are given to the program all at once, and the choice at each position.
#[test]
fn rounding_changes_no_character_of_the_text() {
    let program = Program::load(file("text.pt2")).unwrap();
    let printed = std::fs::read_to_string(file("expected/text.txt")).unwrap();
    let written = printed.split_once("no mistakes\n\n").unwrap().1.strip_suffix('\n').unwrap().as_bytes();
    assert_eq!(written.len(), text::PROMPT.len() + text::LENGTH);
    let logits = text::step(&program, &written[..written.len() - 1], 0).unwrap();
    let noise = Generator::new(2);
    let generators = [0.0, 1e-4, 1e-4].map(|scale| (scale, Generator::new(text::SEED)));
    for (position, character) in written.iter().enumerate().skip(text::PROMPT.len()) {
        let logits = logits.select(0, position as i64 - 1).unwrap();
        for (scale, generator) in &generators {
            let error = opsmith::randn_generator([128], Some(&noise)).unwrap().mul(*scale).unwrap();
            let chosen = text::sample(&logits.add(&error).unwrap(), generator).unwrap();
            assert_eq!(chosen, *character, "position {position}, logits that differ by {scale}");
        }
    }
}

/// A device that does not exist is an error with its cure.
#[test]
fn devices_have_names() {
    for (words, part) in [
        (vec!["text", "--device", "gpu"], "`gpu` is no device; try `cpu`, `cuda` or `cuda:1`"),
        (vec!["poem"], "there is no example `poem`; try digits, shapes or text"),
        (vec![], "NAME is digits, shapes or text"),
    ] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_opsmith-example-programs")).args(words).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(part), "{errors}");
    }
    assert_eq!(Program::load(file("text.pt2")).unwrap().device(), Device::CPU);
}
