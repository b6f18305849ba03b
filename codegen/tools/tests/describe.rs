//! Descriptions of operators: every kernel of the stock spec has a location, and it is the right one.

use std::path::{Path, PathBuf};

use opsmith_codegen::{Config, pipeline};
use opsmith_core::{Backend, DType};
use opsmith_tools::describe::{self, DescribedOperator};

fn stock() -> (pipeline::Checked, Config) {
    let mut config = Config::stock(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops.yaml"));
    config.spec_name = config.spec.display().to_string();
    (pipeline::check(&config).unwrap(), config)
}

fn operator(name: &str) -> DescribedOperator {
    let (checked, config) = stock();
    let op = checked.model.ops.iter().find(|op| op.name == name).unwrap();
    describe::describe(&checked, &config, op)
}

/// The text of a line named as `file:line`.
fn line(place: &str) -> String {
    let (file, line) = place.rsplit_once(':').unwrap();
    let text = std::fs::read_to_string(PathBuf::from(file)).unwrap();
    text.lines().nth(line.parse::<usize>().unwrap() - 1).unwrap().to_owned()
}

#[test]
fn every_function_that_the_stock_spec_names_is_found() {
    let (checked, config) = stock();
    let mut missing = Vec::new();
    for op in &checked.model.ops {
        let described = describe::describe(&checked, &config, op);
        for kernel in &described.kernels {
            let Some(source) = &kernel.source else {
                missing.push(format!("{}: {} {}", op.name, kernel.kind, kernel.text));
                continue;
            };
            let text = line(source);
            let name = match kernel.kind {
                "expression" => "pointwise",
                "composition" => "decompose",
                _ => {
                    let path = kernel.text.split('(').next().unwrap();
                    path.rsplit([':', '/']).next().unwrap()
                }
            };
            if !text.contains(name)
                && !std::fs::read_to_string(source.rsplit_once(':').unwrap().0)
                    .unwrap()
                    .contains(&format!("as {name}"))
            {
                missing
                    .push(format!("{}: {} {} is not at {source}: {text}", op.name, kernel.kind, kernel.text));
            }
        }
        let rules = described.inference.iter().flat_map(|infer| infer.shapes.iter().chain(&infer.dtypes));
        for place in rules.flat_map(|rule| &rule.sources) {
            if place.ends_with("not found") {
                missing.push(format!("{}: {place}", op.name));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn the_kernel_chosen_and_why() {
    let mm = operator("mm");
    let (kernel, why) = describe::choose(&mm, Backend::Cpu, Some(DType::F32));
    let kernel = kernel.unwrap();
    assert_eq!((kernel.kind, kernel.text.as_str()), ("Rust function", "linalg::mm"));
    assert!(kernel.source.as_ref().unwrap().contains("kernels/src/cpu/linalg/mod.rs:"));
    assert!(line(kernel.source.as_ref().unwrap()).starts_with("pub fn mm<"));
    assert_eq!(why, "the table has a row for CPU and float32");
    let (kernel, why) = describe::choose(&mm, Backend::Cuda, Some(DType::F32));
    assert!(kernel.unwrap().source.as_ref().unwrap().contains("kernels/src/cuda/linalg.rs:"));
    assert_eq!(why, "the table has a row for CUDA and float32");
    let (exp, factorisation) = (operator("exp"), operator("_linalg_svd"));
    let (kernel, why) = describe::choose(&exp, Backend::Cuda, Some(DType::F32));
    assert_eq!((kernel.unwrap().kind, &*why), ("expression", "the table has a row for CUDA and float32"));
    let (none, why) = describe::choose(&factorisation, Backend::Cuda, Some(DType::I64));
    assert!(none.is_none() && why.contains("no kernel for CUDA and int64, and no composition"), "{why}");
}

#[test]
fn formulas_say_what_they_save() {
    let saves = |name: &str| -> Vec<(String, Vec<String>)> {
        operator(name)
            .derivatives
            .into_iter()
            .map(|derivative| (derivative.of.join(", "), derivative.saves))
            .collect()
    };
    assert_eq!(
        saves("mul.Tensor"),
        [("self".into(), vec!["other".into()]), ("other".into(), vec!["self".into()])]
    );
    assert_eq!(saves("exp"), [("self".into(), vec!["result".into()])]);
    assert_eq!(saves("neg"), [("self".into(), vec![])]);
}

#[test]
fn signatures_are_those_of_the_generated_code() {
    let add = operator("add.Tensor");
    let functions: Vec<&str> = add.functions.iter().map(|function| function.function.as_str()).collect();
    assert_eq!(
        functions,
        [
            "pub fn add<'a>(self_: &Tensor, other: impl Into<TensorOrScalar<'a>>) -> Result<Tensor>",
            "pub fn add_with<'a>(self_: &Tensor, other: impl Into<TensorOrScalar<'a>>, options: impl Into<AddOptions>) -> Result<Tensor>",
            "pub fn add_<'a>(self_: &Tensor, other: impl Into<TensorOrScalar<'a>>) -> Result<()>",
            "pub fn add_with_<'a>(self_: &Tensor, other: impl Into<TensorOrScalar<'a>>, options: impl Into<AddOptions>) -> Result<()>",
            "pub fn add_out<'a>(self_: &Tensor, other: impl Into<TensorOrScalar<'a>>, out: &mut Tensor) -> Result<()>",
            "pub fn add_with_out<'a>(self_: &Tensor, other: impl Into<TensorOrScalar<'a>>, out: &mut Tensor, options: impl Into<AddOptions>) -> Result<()>",
        ]
    );
    assert_eq!(add.functions[0].method.as_deref(), Some("self_.add(other)"));
}

#[test]
fn callers_are_found() {
    let uses = operator("mm").used_by;
    assert!(uses.iter().any(|used| used.op == "mm" && used.place == "gradient of self"), "{uses:?}");
    assert!(uses.iter().any(|used| used.place == "decompose"), "{uses:?}");
}
