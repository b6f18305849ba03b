//! Exported programs: the results of each at all recorded sizes, as PyTorch computed them.
//!
//! Programs are in `tests/data/programs`; further ones, which are too large for the repository, in
//! `../shared/data/programs` if that folder exists.

mod programs_support;

use std::path::Path;

use opsmith::TensorOps as _;
use opsmith_programs::{OutputRole, Program, ProgramOutput};
use programs_support::{Archive, compare, folders};

/// Runs the exports of a program at all recorded cases; says so if there is no export.
fn runs(name: &str) {
    let mut ran = 0;
    for folder in folders() {
        let recorded = folder.join(format!("{name}.npz"));
        for export in [name.to_owned(), format!("{name}.decomposed")] {
            let path = folder.join(format!("{export}.pt2"));
            if !path.exists() {
                continue;
            }
            let program = Program::load(&path).unwrap_or_else(|error| panic!("{export}: {error}"));
            program.check().unwrap_or_else(|errors| panic!("{export}: {errors}"));
            let recorded = Archive::open(&recorded);
            let mut cases = 0;
            while let Some(inputs) = recorded.arrays(&format!("case{cases}.in")) {
                let expected = recorded.arrays(&format!("case{cases}.out")).expect("recorded results");
                let place = format!("{export}, case {cases}");
                // The second run of a size uses its plan.
                for _ in 0..2 {
                    let outputs = program.run(&inputs).unwrap_or_else(|error| panic!("{place}: {error}"));
                    compare(&place, &outputs, &expected);
                }
                cases += 1;
            }
            assert!(cases >= 4, "{export}: {cases} recorded cases");
            println!("{export}: {cases} cases");
            ran += 1;
        }
    }
    if ran == 0 {
        println!("{name}: not here; it is in ../shared/data/programs of the project's data");
    }
}

macro_rules! programs {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            runs(stringify!($name));
        }
    )*};
}

programs! {
    mlp convnet lstm cond tiny_transformer gpt2_eager_attention llama bert t5 clip vit_b_16 squeezenet1_1
    mobilenet_v3_small first_rows positives scans repeated slopes window old float8 joint_mlp joint_patches
    cached nested pairs casts without_casts adam on_copies regions mapped columns prefixes places quantised
    choices turned written thirds
}

#[test]
fn recurrent_layers_of_16_bits_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/programs");
    let program = Program::load(folder.join("narrow.pt2")).unwrap();
    let recorded = Archive::open(&folder.join("narrow.npz"));
    for case in 0..4 {
        let outputs = program.run(&recorded.arrays(&format!("case{case}.in")).unwrap()).unwrap();
        let expected = recorded.arrays(&format!("case{case}.out")).unwrap();
        // Steps of PyTorch are rounded to the narrow type, ours at their end.
        for (output, unit) in [(0, 1.0 / 1024.0), (1, 1.0 / 128.0)] {
            let (found, wanted) =
                (outputs[output].to_vec::<f32>().unwrap(), expected[output].to_vec::<f32>().unwrap());
            assert!(
                found.iter().zip(&wanted).all(|(a, b)| (a - b).abs() <= 2.0 * unit),
                "{found:?} {wanted:?}"
            );
        }
        compare("narrow", &outputs[2..], &expected[2..]);
    }
    let nothing = opsmith::Tensor::of(&[f32::NAN; 15]).reshape([5, 3]).unwrap();
    let error = program.run(&[nothing]).unwrap_err().to_string();
    assert!(error.contains("a check of the program does not hold: no number"), "{error}");
}

#[test]
fn batch_normalisation_in_training_updates_its_statistics() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/programs");
    let program = Program::load(folder.join("statistics.pt2")).unwrap();
    program.check().unwrap();
    let recorded = Archive::open(&folder.join("statistics.npz"));
    // Each case once, in the order of the recording, since each changes the results of the next one.
    for case in 0..4 {
        let inputs = recorded.arrays(&format!("case{case}.in")).unwrap();
        let outputs = program.run(&inputs).unwrap();
        compare("statistics", &outputs, &recorded.arrays(&format!("case{case}.out")).unwrap());
    }
}

#[test]
fn sizes_at_which_the_graph_does_not_hold_get_one_of_their_own() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/programs");
    let program = Program::load(folder.join("places.pt2")).unwrap();
    let checked = program.check().unwrap();
    // One number without a formula fixes all sizes of the graph.
    assert_eq!(checked.special.len(), 3, "{:?}", checked.special);
    let reason = "no formula of the sizes gives `fill_value`";
    assert!(checked.special.iter().all(|text| text.contains(reason)), "{:?}", checked.special);
    assert!(checked.to_string().contains("one graph only where s"), "{checked}");
    // More sizes than graphs are kept, and the first one again.
    for width in (8..40).chain([8]) {
        let x = opsmith::ones([1, 3, 8, width]).unwrap();
        let outputs = program.run(&[x]).unwrap();
        assert_eq!(outputs[0].shape(), [1, 2, width / 4, 2]);
        assert_eq!(outputs[1].to_vec::<f32>().unwrap(), [(width as f64).sqrt() as f32; 2]);
    }
}

#[test]
fn joint_graphs_say_which_results_are_gradients_and_write_running_statistics() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/programs");
    let program = Program::load(folder.join("joint_patches.pt2")).unwrap();
    let outputs = program.outputs();
    assert_eq!(outputs[0], ProgramOutput { name: "out0".to_owned(), role: OutputRole::Loss });
    assert_eq!(outputs[1].to_string(), "out1 (gradient of patches.weight)");
    let of: Vec<&str> = outputs[1..]
        .iter()
        .map(|output| match &output.role {
            OutputRole::Gradient { of } => of.as_str(),
            role => panic!("{role:?}"),
        })
        .collect();
    let parameters: Vec<&str> = program.parameters().map(|(name, _)| name).collect();
    assert_eq!(of, parameters);
    let recorded = Archive::open(&folder.join("joint_patches.npz"));
    let batches = |program: &Program| {
        let (_, batches) = program.weights().find(|(name, _)| name.ends_with("num_batches_tracked")).unwrap();
        batches.to_vec::<i64>().unwrap()
    };
    assert_eq!(batches(&program), [0]);
    program.run(&recorded.arrays("case0.in").unwrap()).unwrap();
    assert_eq!(batches(&program), [1]);
}

#[test]
fn nested_results_have_paths() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/programs");
    let names = |file: &str| -> Vec<String> {
        let program = Program::load(folder.join(file)).unwrap();
        program.outputs().into_iter().map(|output| output.name).collect()
    };
    assert_eq!(names("nested.pt2"), ["0.sum", "0.parts.0", "0.parts.1.0", "0.parts.1.1", "out4"]);
    assert_eq!(names("cached.pt2"), ["out0", "out1", "out2"]);
    assert_eq!(names("../onnx/mlp.onnx").len(), 1);
}

#[test]
fn each_of_several_models_in_an_archive_is_loaded_by_its_name() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/programs");
    let (path, recorded) = (folder.join("coders.pt2"), Archive::open(&folder.join("coders.npz")));
    for name in ["encoder", "decoder"] {
        let array = |kind: &str| recorded.array(&format!("{name}.{kind}")).unwrap();
        let program = Program::load_model(&path, name).unwrap();
        program.check().unwrap();
        compare(name, &program.run(&[array("in")]).unwrap(), &[array("out")]);
    }
    let refused = |error: opsmith::Error| error.to_string();
    let error = refused(Program::load(&path).err().unwrap());
    assert!(error.contains("the archive has several models: decoder, encoder"), "{error}");
    assert!(error.contains("help: name one of them: `Program::load_model`"), "{error}");
    let error = refused(Program::load_model(&path, "coder").err().unwrap());
    assert!(
        error.contains("the archive has no model `coder`\n  help: its models are decoder, encoder"),
        "{error}"
    );
    // Before PyTorch 2.8, models had no names.
    assert!(Program::load_model(folder.join("old.pt2"), "model").is_ok());
    let error = refused(Program::load_model(folder.join("old.pt2"), "old").err().unwrap());
    assert!(error.contains("its models are model"), "{error}");
}
