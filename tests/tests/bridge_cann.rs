//! Folders for CANN: their definitions compile against a stand-in for its header, and their inference gives what calls give.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use opsmith::{DType, LIBRARY, Tensor, Value};
use opsmith_codegen::{Config, pipeline};
use opsmith_runtime::op::OpDef;
use opsmith_runtime::{Arg, Scalar, boxed};
use opsmith_testing::samples::samples;
use opsmith_tools::bridge::{self, Chosen, Framework, LibraryCrate, Settings};
use opsmith_tools::scaffold::Dependencies;
use serde_json::Value as Json;

/// Operators of each way of inference: rules of each name, conditions, several results, lists, optional tensors, attributes of each type,
/// following, compositions.
const FEW: [&str; 20] = [
    "abs",
    "add.Tensor",
    "addmm",
    "amax",
    "argmax",
    "cat",
    "cumsum",
    "exp",
    "gelu",
    "gt.Tensor",
    "index_add",
    "layer_norm",
    "matmul",
    "maximum",
    "mm",
    "softmax.int",
    "sum.dim_IntList",
    "where.self",
    "nll_loss",
    "softsign",
];

/// Element types of CANN by name, with their numbers.
const NUMBERS: [(&str, i64); 15] = [
    ("float32", 0),
    ("float16", 1),
    ("bfloat16", 27),
    ("float64", 11),
    ("int8", 2),
    ("int16", 6),
    ("int32", 3),
    ("int64", 9),
    ("uint8", 4),
    ("uint16", 7),
    ("uint32", 8),
    ("uint64", 10),
    ("bool", 12),
    ("complex64", 16),
    ("complex128", 17),
];

fn number(dtype: DType) -> Option<i64> {
    NUMBERS.iter().find(|(name, _)| *name == dtype.name()).map(|(_, number)| *number)
}

/// A folder with a compiled program that runs the inference of some operators.
struct Folder {
    path: PathBuf,
    /// The definitions by the names of operators.
    definitions: BTreeMap<String, Json>,
}

fn compiler() -> Command {
    let mut command = Command::new(std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned()));
    let support = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bridge_cann_support");
    command.args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-O0", "-I"]).arg(support);
    command
}

fn assert_compiles(command: &mut Command) {
    let run = command.output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}

impl Folder {
    /// The folder of the chosen operators of the stock library; of all without names.
    fn new(name: &str, names: &[&str]) -> Folder {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let checked = pipeline::check(&Config::stock(root.join("ops.yaml"))).unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let chosen = Chosen::of(&checked.model, &names, Framework::Cann).unwrap();
        let library = LibraryCrate { package: "opsmith".to_owned(), dependency: "\"0\"".to_owned() };
        let settings = Settings {
            framework: Framework::Cann,
            namespace: "opsmith",
            spec: "ops.yaml",
            library: &library,
            dependencies: &Dependencies::Version("0".to_owned()),
            inside_workspace: false,
        };
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        _ = std::fs::remove_dir_all(&path);
        let Ok(files) = bridge::folder(&path, &checked.model, &chosen, &settings) else {
            panic!("it is refused")
        };
        for file in &files {
            std::fs::create_dir_all(file.path.parent().unwrap()).unwrap();
            std::fs::write(&file.path, &file.text).unwrap();
        }
        let list = std::fs::read_to_string(path.join("operators.json")).unwrap();
        let list: Vec<Json> = serde_json::from_str(&list).unwrap();
        let names = chosen.operators.iter().map(|place| checked.model.ops[*place].name.clone());
        let folder = Folder { path, definitions: names.zip(list).collect() };
        folder.compile();
        folder
    }

    fn compile(&self) {
        let support = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bridge_cann_support");
        let sources =
            std::fs::read_dir(self.path.join("op_host")).unwrap().map(|entry| entry.unwrap().path());
        let mut sources: Vec<PathBuf> =
            sources.filter(|path| path.extension().is_some_and(|end| end == "cpp")).collect();
        sources.push(support.join("program.cpp"));
        let halves: Vec<&[PathBuf]> = sources.chunks(sources.len().div_ceil(2)).collect();
        std::thread::scope(|scope| {
            for half in halves {
                scope.spawn(move || {
                    for source in half {
                        let object = self.path.join(source.with_extension("o").file_name().unwrap());
                        assert_compiles(compiler().arg("-c").arg(source).arg("-o").arg(object));
                    }
                });
            }
        });
        let objects =
            sources.iter().map(|source| self.path.join(source.with_extension("o").file_name().unwrap()));
        assert_compiles(compiler().args(objects).arg("-o").arg(self.path.join("program")));
    }

    /// The results of calls, a line each.
    fn run(&self, calls: &str) -> Vec<String> {
        let mut program = Command::new(self.path.join("program"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = program.stdin.take().unwrap();
        let calls = calls.to_owned();
        let writer = std::thread::spawn(move || input.write_all(calls.as_bytes()).unwrap());
        let output = program.wait_with_output().unwrap();
        writer.join().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}");
        text.lines().map(str::to_owned).collect()
    }
}

/// The words of a tensor; `None` if CANN has no such element type.
fn words(tensor: &Tensor) -> Option<String> {
    let mut text = format!(" {} {}", number(tensor.dtype())?, tensor.shape().len());
    for size in tensor.shape() {
        write!(text, " {size}").unwrap();
    }
    Some(text)
}

fn real(scalar: Scalar) -> Option<f64> {
    match scalar {
        Scalar::Bool(value) => Some(f64::from(u8::from(value))),
        Scalar::Int(value) => Some(value as f64),
        Scalar::Float(value) => Some(value),
        Scalar::Complex(_) => None,
    }
}

/// The words of an attribute; `None` if it has none.
fn attribute(value: &Value) -> Option<String> {
    let list = |items: Vec<String>| format!("{} {}", items.len(), items.join(" "));
    Some(match value {
        Value::None => "default".to_owned(),
        Value::Bool(value) => u8::from(*value).to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Scalar(scalar) => real(*scalar)?.to_string(),
        Value::Str(text) if !text.is_empty() && !text.contains(' ') => text.clone(),
        Value::Ints(items) => list(items.iter().map(i64::to_string).collect()),
        Value::Floats(items) => list(items.iter().map(|item| (*item as i64).to_string()).collect()),
        Value::Bools(items) => list(items.iter().map(|item| u8::from(*item).to_string()).collect()),
        Value::DType(dtype) => number(*dtype)?.to_string(),
        _ => return None,
    })
}

/// The line of a call; `None` if CANN cannot have it.
fn call(op: &OpDef, definition: &Json, values: &[Value]) -> Option<String> {
    let mut inputs = String::new();
    let tensors = op.schema.args.iter().zip(values).filter(|(def, _)| def.ty.holds_tensors());
    for (_, value) in tensors.clone() {
        match value {
            Value::Tensor(tensor) => write!(inputs, " 1{}", words(tensor)?).unwrap(),
            Value::Tensors(list) => {
                write!(inputs, " {}", list.len()).unwrap();
                for tensor in list {
                    inputs += &words(tensor)?;
                }
            }
            _ => inputs += " 0",
        }
    }
    let attributes = definition["attr"].as_array().unwrap();
    let mut words = String::new();
    for one in attributes {
        let name = one["name"].as_str().unwrap();
        let place = op.argument(name).or_else(|| op.argument(name.trim_end_matches('_'))).unwrap();
        write!(words, " {}", attribute(&values[place])?).unwrap();
    }
    let kind = definition["op"].as_str().unwrap();
    Some(format!("{kind} {}{inputs} {}{words}\n", tensors.count(), attributes.len()))
}

/// Results as the program prints them; `None` if CANN cannot have one.
fn printed(results: &[Value]) -> Option<String> {
    let one = |value: &Value| {
        let Value::Tensor(tensor) = value else { return None };
        let sizes: Vec<String> = tensor.shape().iter().map(i64::to_string).collect();
        Some(format!("{}:{}", number(tensor.dtype())?, sizes.join(",")))
    };
    Some(results.iter().map(one).collect::<Option<Vec<_>>>()?.join(" "))
}

/// Compares inference with calls; returns how many operators and calls were compared.
fn compare(folder: &Folder) -> (usize, usize) {
    let (mut lines, mut expected, mut ops) = (String::new(), Vec::new(), 0);
    for op in LIBRARY.ops {
        let Some(definition) = folder.definitions.get(op.name) else { continue };
        let before = expected.len();
        for dtype in [DType::F32, DType::F16, DType::I64, DType::C64] {
            for values in samples(op, dtype) {
                let args: Vec<Arg<'_>> = values.iter().map(Value::as_arg).collect();
                let mut is_scalar = false;
                args.iter()
                    .for_each(|arg| arg.for_each_tensor(|tensor| is_scalar |= tensor.shape().is_empty()));
                let Ok(results) = boxed::functional(op, &args) else { continue };
                // Dtypes of tensors without dimensions count less in a call, and CANN infers dtypes without shapes.
                let Some(line) = call(op, definition, &values).filter(|_| !is_scalar) else { continue };
                let Some(results) = printed(&results) else { continue };
                expected.push((op.name, line.clone(), results));
                lines += &line;
            }
        }
        ops += usize::from(expected.len() > before);
    }
    let found = folder.run(&lines);
    assert_eq!(found.len(), expected.len());
    let differences: Vec<String> = found
        .iter()
        .zip(&expected)
        .filter(|(found, (.., results))| *found != results)
        .map(|(found, (name, line, results))| format!("{name}: {found}, not {results}: {line}"))
        .collect();
    assert!(differences.is_empty(), "{}", differences.join(""));
    (ops, expected.len())
}

#[test]
fn inference_of_definitions_gives_what_calls_give() {
    let folder = Folder::new("cann_few", &FEW);
    let (ops, calls) = compare(&folder);
    assert!(ops == 20 && calls > 60, "{ops} operators, {calls} calls");
    // Sizes that are not known, numbers of dimensions that are not, and calls that are refused.
    let cases = [
        ("AddTensor 2 1 0 2 -1 3 1 0 1 3 1 1", "0:-1,3"),
        ("AddTensor 2 1 0 2 -1 1 1 0 2 4 -1 1 1", "0:4,-1"),
        ("AddTensor 2 1 0 1 -2 1 0 1 3 1 1", "0:-2"),
        ("AddTensor 2 1 0 2 2 3 1 0 1 4 1 1", "refused"),
        ("AddTensor 2 1 1 1 3 1 27 1 3 1 1", "0:3"),
        ("Cat 1 2 0 2 -1 3 0 2 2 -1 1 0", "0:-1,3"),
        ("Cat 1 0 1 0", "refused"),
        ("Mm 2 1 0 2 -1 3 1 0 2 3 5 0", "0:-1,5"),
        ("Mm 2 1 0 2 2 3 1 0 2 4 5 0", "refused"),
        ("Mm 2 1 0 1 -2 1 0 2 4 5 0", "0:-2"),
        ("SumDimIntlist 1 1 3 3 2 -1 4 3 1 -1 1 default", "9:2,-1,1"),
        ("SumDimIntlist 1 1 3 3 2 -1 4 3 2 1 1 0 default", "refused"),
        ("Amax 1 1 0 2 2 3 2 0 0", "0:"),
    ];
    let lines: String =
        cases.iter().map(|(line, _)| format!("{}\n", line.replace("Intlist", "IntList"))).collect();
    for ((line, expected), found) in cases.iter().zip(folder.run(&lines)) {
        assert_eq!(found, *expected, "{line}");
    }
}

#[test]
#[ignore = "compiles 200 files, which takes minutes"]
fn inference_of_all_definitions_gives_what_calls_give() {
    let (ops, calls) = compare(&Folder::new("cann_all", &[]));
    println!("{ops} operators, {calls} calls");
    assert!(ops > 150, "{ops} operators, {calls} calls");
}

#[test]
fn operators_that_cann_cannot_have_are_left_out_with_the_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let checked = pipeline::check(&Config::stock(root.join("ops.yaml"))).unwrap();
    let refused = |name: &str, reason: &str| {
        let found = Chosen::of(&checked.model, &[name.to_owned()], Framework::Cann);
        let expected = format!("`{name}` cannot be an operator of another framework: {reason}");
        assert_eq!(found.unwrap_err(), expected);
    };
    refused("sort.stable", "`stable` may be absent, which no attribute of CANN of its type is");
    refused(
        "_foreach_mul.Scalar",
        "its result is a list of tensors, whose rules CANN's inference has no place for",
    );
    refused("transpose.int", "its result shares memory with an argument");
    refused("gather", "a function in Rust, `infer::gather`, computes the shape of a result");
    refused("mul.Scalar", "a dtype depends on the kind of a Scalar, which no attribute has");
    assert!(Chosen::of(&checked.model, &["gather".to_owned()], Framework::Onnxruntime).is_ok());
}
