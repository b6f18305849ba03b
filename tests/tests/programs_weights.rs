//! Programs with other weights: safetensors files, several with an index, and ones that do not fit.

mod programs_support;

use std::path::{Path, PathBuf};

use opsmith::{DType, Tensor, TensorOps};
use opsmith_programs::Program;
use programs_support::{LIBRARY, compare};
use safetensors::tensor::TensorView;

fn scratch(name: &str) -> PathBuf {
    assert!(!LIBRARY.ops.is_empty());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("programs-weights-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn program(name: &str) -> Program {
    Program::load(Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name)).unwrap()
}

/// Writes tensors as `float32`, or as `float16`.
fn save(path: &Path, tensors: &[(&str, Tensor)], half: bool) {
    let bytes: Vec<(&str, Vec<u8>, Vec<usize>)> = tensors
        .iter()
        .map(|(name, tensor)| {
            let tensor = tensor.to_dtype(if half { DType::F16 } else { DType::F32 }).unwrap();
            let bytes = match half {
                true => tensor
                    .to_vec::<opsmith_runtime::f16>()
                    .unwrap()
                    .iter()
                    .flat_map(|x| x.to_le_bytes())
                    .collect(),
                false => tensor.to_vec::<f32>().unwrap().iter().flat_map(|x| x.to_le_bytes()).collect(),
            };
            (*name, bytes, tensor.shape().iter().map(|size| *size as usize).collect())
        })
        .collect();
    let dtype = if half { safetensors::Dtype::F16 } else { safetensors::Dtype::F32 };
    let views = bytes
        .iter()
        .map(|(name, bytes, shape)| (*name, TensorView::new(dtype, shape.clone(), bytes).unwrap()));
    std::fs::write(path, safetensors::serialize(views, None).unwrap()).unwrap();
}

/// The parameters of the program times a number.
fn scaled(program: &Program, by: f64) -> Vec<(String, Tensor)> {
    let weights = program.weights().filter(|(_, tensor)| tensor.dtype() == DType::F32);
    weights.map(|(name, tensor)| (name.to_owned(), tensor.mul(by).unwrap())).collect()
}

#[test]
fn a_program_runs_with_the_weights_of_several_files() {
    let folder = scratch("several");
    for (name, half) in [("programs/mlp.pt2", false), ("programs/mlp.pt2", true), ("onnx/mlp.onnx", false)] {
        let mut program = program(name);
        let x = opsmith::linspace(-1.0, 1.0, 128)
            .unwrap()
            .reshape([2, 64])
            .unwrap()
            .to_dtype(DType::F32)
            .unwrap();
        let before = program.run(&[&x]).unwrap();
        let new = scaled(&program, 0.5);
        let named: Vec<(&str, Tensor)> =
            new.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
        let (first, second) = named.split_at(2);
        save(&folder.join("part-1.safetensors"), first, half);
        save(&folder.join("part-2.safetensors"), second, half);
        let map: serde_json::Map<String, serde_json::Value> = named
            .iter()
            .enumerate()
            .map(|(at, (name, _))| (name.to_string(), format!("part-{}.safetensors", 1 + at / 2).into()))
            .collect();
        let index = folder.join("model.safetensors.index.json");
        std::fs::write(&index, serde_json::json!({ "metadata": {}, "weight_map": map }).to_string()).unwrap();
        program.load_weights(&index).unwrap();
        let after = program.run(&[&x]).unwrap();
        // Without biases a factor of a half at two layers would be a quarter: the results are others, and those of `call`.
        assert_ne!(before[0].to_vec::<f32>().unwrap(), after[0].to_vec::<f32>().unwrap());
        compare(name, &after, &program.call(&[&x]).unwrap());
        if !half {
            let (names, tensors): (Vec<_>, Vec<_>) =
                program.weights().map(|(n, t)| (n.to_owned(), t.clone())).unzip();
            for ((name, expected), _) in new.iter().zip(&tensors) {
                let found = &tensors[names.iter().position(|known| known == name).unwrap()];
                compare(name, std::slice::from_ref(found), std::slice::from_ref(expected));
            }
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn weights_that_do_not_fit_are_all_reported_and_change_nothing() {
    let folder = scratch("misfit");
    let mut program = program("programs/mlp.pt2");
    let names: Vec<String> = program.weights().map(|(name, _)| name.to_owned()).collect();
    let wrong = Tensor::of(&[1.0f32, 2.0]);
    let path = folder.join("model.safetensors");
    save(&path, &[(names[0].as_str(), wrong.clone()), ("other", wrong)], false);
    let text = program.load_weights(&path).unwrap_err().to_string();
    for part in
        ["`other`", "the program has no weight", &names[0], "has the shape [2]", "the files have no weight"]
    {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let kept: Vec<String> = program.weights().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(kept, names);
    let whole = std::fs::read(&path).unwrap();
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        assert!(!program.load_weights(&path).unwrap_err().to_string().is_empty());
    }
    let index = folder.join("outside.json");
    std::fs::write(&index, r#"{"weight_map": {"a": "../model.safetensors"}}"#).unwrap();
    let text = program.load_weights(&index).unwrap_err().to_string();
    assert!(text.contains("not beside it"), "{text}");
    std::fs::remove_dir_all(folder).unwrap();
}
