//! The example in the documentation of a function: the first sample of its operator that Rust can write, as a program.
//!
//! In: a function, with its operator. Out: the lines of a code block, which is a test of the generated crate. The
//! program shows all that runs but its imports and its end.

use opsmith_core::{Backend, DType, DTypeSet};

use super::api::Function;
use super::names::parameter;
use super::{Generation, options};
use crate::analysis::naming;
use crate::analysis::rows::plainest_dtype;
use crate::config::Config;
use crate::model::{Arg, Default, Element, Fill, Kind, Op, Sample, SampleTensor, SampleValue};

/// The most elements that are written one by one.
const MOST_NUMBERS: i64 = 16;

/// The code block, with its fences; nothing if no sample can be written.
pub(super) fn example(generation: &Generation<'_>, function: &Function<'_>) -> Vec<String> {
    let op = function.op;
    if op.facts.backward_only || op.is_supplied() {
        return Vec::new();
    }
    // An alias has the samples of the operator that it names.
    let meant = op.alias_of.map_or(op, |id| &generation.model.ops[id.0]);
    meant.samples.iter().find_map(|sample| Program::of(op, meant, sample)).map_or(Vec::new(), |program| {
        let mut lines = vec!["```".to_owned(), program.imports(generation.config)];
        lines.extend(program.lines());
        let runtime = runtime(generation.config);
        lines.extend([format!("# Ok::<(), {runtime}::Error>(())"), "```".to_owned()]);
        lines
    })
}

/// The program in the documentation of a function, with the values that it calls the operator with.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkedExample {
    /// The program without imports: a line for each tensor, then the call.
    pub code: String,
    /// The sample that has the values of the arguments that are not tensors, by position.
    pub sample: usize,
    /// The tensors of the call, in the order of the arguments.
    pub tensors: Vec<WorkedTensor>,
}

/// A tensor of a program in the documentation.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkedTensor {
    /// Its dtype.
    pub dtype: DType,
    /// Its sizes.
    pub shape: Vec<i64>,
    /// Its elements in row-major order; those of complex numbers have half of each as imaginary part.
    pub numbers: Vec<f64>,
}

/// The program that the documentation of an operator has, which may be another name of `meant`; `None` if no sample can be
/// written in Rust.
pub fn worked(op: &Op, meant: &Op) -> Option<WorkedExample> {
    if op.facts.backward_only || op.is_supplied() {
        return None;
    }
    let programs = meant.samples.iter().enumerate();
    programs.into_iter().find_map(|(sample, values)| {
        let program = Program::of(op, meant, values)?;
        Some(WorkedExample { code: program.lines().join("\n"), sample, tensors: program.made })
    })
}

/// The crate with the runtime's types, as programs that use a library name it.
fn runtime(config: &Config) -> String {
    match config.is_stock() {
        true => config.library.clone(),
        false => config.runtime.to_string().trim_start_matches("::").to_owned(),
    }
}

/// A program that calls a function.
struct Program {
    /// The names of the library that it uses.
    names: Vec<String>,
    /// Those of the runtime.
    types: Vec<&'static str>,
    /// A binding of each tensor.
    tensors: Vec<String>,
    /// The tensors.
    made: Vec<WorkedTensor>,
    /// The call.
    call: String,
    /// Whether an argument is called `x`, so that `self` is not.
    has_x: bool,
}

/// Items between brackets.
fn list(items: &[String]) -> String {
    format!("[{}]", items.join(", "))
}

impl Program {
    /// The call of a sample; `None` if a value has no literal in Rust, or no setter.
    fn of(op: &Op, meant: &Op, sample: &Sample) -> Option<Program> {
        let mut program = Program {
            names: Vec::new(),
            types: Vec::new(),
            tensors: Vec::new(),
            made: Vec::new(),
            call: String::new(),
            has_x: op.arg_index("x").is_some(),
        };
        let dtype = dtype(meant, sample)?;
        let (mut given, mut setters) = (Vec::new(), String::new());
        for (index, arg) in op.args.iter().enumerate() {
            let value = sample.args.iter().find(|(at, _)| *at == index).map(|(_, value)| value);
            let dtype = dtype_of(meant, index, dtype);
            match (value, &arg.default) {
                (None | Some(SampleValue::None), Some(Default::None)) | (None, Some(_)) => {}
                (Some(value), Some(_)) => {
                    let value = program.value(arg, &arg.ty.required().kind, value, dtype, true)?;
                    setters.push_str(&format!(".{}({value})", parameter(arg)));
                }
                (None | Some(SampleValue::None), None) => given.push("None".to_owned()),
                (Some(value), None) => {
                    let borrowed = program.value(arg, &arg.ty.kind, value, dtype, false)?;
                    given.push(if arg.ty.optional { format!("Some({borrowed})") } else { borrowed });
                }
            }
        }
        let with_options = !setters.is_empty();
        if with_options {
            let options = options::options_name(op).to_string();
            given.push(format!("{options}::new(){setters}"));
            program.names.push(options);
        }
        let name = naming::function(op, naming::Form::Functional, with_options);
        program.call = format!("{name}({})", given.join(", "));
        program.names.insert(0, name);
        Some(program)
    }

    /// The program without imports.
    fn lines(&self) -> Vec<String> {
        self.tensors.iter().cloned().chain([format!("let result = {}?;", self.call)]).collect()
    }

    fn imports(&self, config: &Config) -> String {
        let package = config.package.as_ref().unwrap_or(&config.library);
        let (library, runtime) = (package.replace('-', "_"), runtime(config));
        let braced = |names: &[String]| match names {
            [only] => only.clone(),
            names => format!("{{{}}}", names.join(", ")),
        };
        let mut types: Vec<String> = self.types.iter().map(|name| (*name).to_owned()).collect();
        types.sort();
        types.dedup();
        if library == runtime {
            return format!("# use {library}::{};", braced(&[self.names.clone(), types].concat()));
        }
        let library = format!("# use {library}::{};", braced(&self.names));
        match types.is_empty() {
            true => library,
            false => format!("{library} use {runtime}::{};", braced(&types)),
        }
    }

    /// A name of the runtime, which is then imported.
    fn ty(&mut self, name: &'static str) -> &'static str {
        self.types.push(name);
        name
    }

    /// A value as a parameter takes it, or a setter of options.
    fn value(
        &mut self,
        arg: &Arg,
        kind: &Kind,
        value: &SampleValue,
        dtype: DType,
        set: bool,
    ) -> Option<String> {
        Some(match (kind, value) {
            (Kind::Tensor, SampleValue::Tensor(tensor)) => {
                let name = match parameter(arg).to_string() {
                    name if name == "self_" && !self.has_x => "x".to_owned(),
                    name => name,
                };
                let tensor = self.tensor(tensor, dtype)?;
                self.tensors.push(format!("let {name} = {tensor}?;"));
                format!("&{name}")
            }
            (Kind::Tensors | Kind::OptionalTensors, SampleValue::Tensors(tensors)) => {
                let tensors = self.several(tensors, dtype, *kind == Kind::OptionalTensors)?;
                format!("{}{}", if set { "vec!" } else { "&" }, list(&tensors))
            }
            (Kind::Lists(item), SampleValue::List(rows)) => {
                let kind: Kind = item.kind().into();
                let mut row = |row: &SampleValue| match row {
                    SampleValue::List(row) => Some(format!("vec!{}", list(&self.items(&kind, row)?))),
                    _ => None,
                };
                format!("vec!{}", list(&rows.iter().map(&mut row).collect::<Option<Vec<_>>>()?))
            }
            (Kind::Strs, SampleValue::List(items)) if set || !arg.ty.optional => {
                format!("&{}", list(&self.plain(&Kind::Str, items)?))
            }
            (Kind::Scalars, SampleValue::List(items)) => {
                format!("{}{}", if set { "vec!" } else { "&" }, list(&self.items(&Kind::Scalar, items)?))
            }
            (Kind::Ints(_) | Kind::Floats | Kind::Bools(_) | Kind::DTypes, SampleValue::List(items)) => {
                let converts = set || matches!(kind, Kind::Ints(_)) && !arg.ty.optional;
                let items = list(&self.plain(&kind.item()?.kind, items)?);
                if converts { items } else { format!("&{items}") }
            }
            // Without a parameter whose type converts, a number has to.
            (Kind::Scalar, value) if !set && arg.ty.optional => {
                self.items(kind, std::slice::from_ref(value))?.concat()
            }
            (kind, value) => self.plain(kind, std::slice::from_ref(value))?.concat(),
        })
    }

    /// The tensors of a list, of which some may be absent.
    fn several(
        &mut self,
        tensors: &[Option<SampleTensor>],
        dtype: DType,
        may_lack: bool,
    ) -> Option<Vec<String>> {
        let mut one = |tensor: &Option<SampleTensor>| {
            let Some(tensor) = tensor else { return Some("None".to_owned()) };
            let tensor = self.tensor(tensor, dtype)?;
            Some(if may_lack { format!("Some({tensor}?)") } else { format!("{tensor}?") })
        };
        tensors.iter().map(&mut one).collect()
    }

    /// Items of a list, which have one type: numbers of several are converted.
    fn items(&mut self, kind: &Kind, values: &[SampleValue]) -> Option<Vec<String>> {
        let plain = self.plain(kind, values)?;
        if *kind != Kind::Scalar {
            return Some(plain);
        }
        let scalar = self.ty("Scalar");
        Some(plain.iter().map(|number| format!("{scalar}::from({number})")).collect())
    }

    /// Values of one kind that is no tensor.
    fn plain(&mut self, kind: &Kind, values: &[SampleValue]) -> Option<Vec<String>> {
        let mut one = |value: &SampleValue| {
            Some(match (kind, value) {
                (_, SampleValue::Bool(value)) => value.to_string(),
                (Kind::Float, SampleValue::Int(value)) => format!("{:?}", *value as f64),
                (_, SampleValue::Int(value)) => value.to_string(),
                (_, SampleValue::Float(value)) if value.is_nan() => "f64::NAN".to_owned(),
                (_, SampleValue::Float(value)) if value.is_infinite() => {
                    format!("{}f64::INFINITY", if *value < 0.0 { "-" } else { "" })
                }
                (_, SampleValue::Float(value)) => format!("{value:?}"),
                (_, SampleValue::Complex(re, im)) => format!("{}::new({re:?}, {im:?})", self.ty("Complex64")),
                (Kind::Device, SampleValue::Str(text)) => {
                    format!("{}::{}", self.ty("Device"), text.to_uppercase())
                }
                (_, SampleValue::Str(text)) => format!("{text:?}"),
                (_, SampleValue::DType(dtype)) => format!("{}::{}", self.ty("DType"), dtype.ident()),
                (
                    _,
                    SampleValue::None
                    | SampleValue::List(_)
                    | SampleValue::Tensor(_)
                    | SampleValue::Tensors(_),
                ) => {
                    return None;
                }
            })
        };
        values.iter().map(&mut one).collect()
    }

    /// A tensor of numbers, without the `?` of the error that there is no memory.
    fn tensor(&mut self, tensor: &SampleTensor, dtype: DType) -> Option<String> {
        let count = tensor.shape.iter().product::<i64>();
        if count == 0 {
            return None;
        }
        let dtype = match tensor.fill {
            Fill::Integers(..) | Fill::Places(_) => DType::I64,
            Fill::Mask => DType::Bool,
            Fill::Between(..) | Fill::Numbers(_) => dtype,
        };
        let numbers: Vec<f64> = match &tensor.fill {
            Fill::Numbers(values) => values.clone(),
            Fill::Places(values) => values.iter().map(|value| *value as f64).collect(),
            Fill::Mask => (0..count).map(|index| f64::from(index % 3 != 1)).collect(),
            Fill::Integers(low, high) => {
                (0..count).map(|index| (low + index * 7 % (high - low)) as f64).collect()
            }
            Fill::Between(low, high) => between(*low, *high, count, self.tensors.len()),
        };
        let alike = count > MOST_NUMBERS && !matches!(tensor.fill, Fill::Numbers(_) | Fill::Places(_));
        let numbers = match numbers.first() {
            Some(first) if alike => vec![*first; numbers.len()],
            _ => numbers,
        };
        let mut literals = Vec::new();
        for number in &numbers[..if alike { 1 } else { numbers.len() }] {
            // The type of the first is that of all.
            let suffix = if literals.is_empty() { dtype.rust_type() } else { "" };
            literals.push(self.element(*number, dtype, suffix)?);
        }
        let elements = match alike {
            true => format!("[{}; {count}]", literals.concat()),
            false => list(&literals),
        };
        self.made.push(WorkedTensor { dtype, shape: tensor.shape.clone(), numbers });
        let ty = self.ty("Tensor");
        let shape = tensor.shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        Some(format!("{ty}::from_slice(&{elements}, &[{shape}])"))
    }

    /// A number as an element of a dtype; `None` where Rust has no literal for it.
    fn element(&mut self, number: f64, dtype: DType, suffix: &str) -> Option<String> {
        Some(match dtype {
            DType::Bool => (number != 0.0).to_string(),
            DType::C64 => format!("{}::new({number:?}, {:?})", self.ty("Complex32"), number / 2.0),
            DType::C128 => format!("{}::new({number:?}, {:?})", self.ty("Complex64"), number / 2.0),
            DType::F32 | DType::F64 if number.is_finite() => format!("{number:?}{suffix}"),
            DType::I8
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::U8
            | DType::U16
            | DType::U32
            | DType::U64 => {
                format!("{}{suffix}", number as i64)
            }
            _ => return None,
        })
    }
}

/// Numbers between two, none twice, of few digits; those of several tensors are in different orders.
fn between(low: f64, high: f64, count: i64, tensor: usize) -> Vec<f64> {
    let step = (1..).map(|odd| 2 * odd + 1).find(|step| count % step != 0).unwrap_or(1);
    let place = |index: i64| ((index * step + tensor as i64) % count) as f64 + 0.6;
    let number = |index: i64| low + (high - low) * place(index) / count as f64;
    (0..count).map(|index| (number(index) * 100.0).round() / 100.0).collect()
}

/// The dtype of an example's tensors of numbers.
fn dtype(op: &Op, sample: &Sample) -> Option<DType> {
    let is_complex = |value: &SampleValue| matches!(value, SampleValue::Complex(..));
    let complex = sample.args.iter().any(|(_, value)| match value {
        SampleValue::List(items) => items.iter().any(is_complex),
        value => is_complex(value),
    });
    let kernels = op.body.dtypes_of_row(Backend::Cpu);
    let wished = if complex { [DType::C128; 4] } else { [DType::F32, DType::I64, DType::C64, DType::Bool] };
    let supported = wished.into_iter().find(|dtype| kernels == DTypeSet::EMPTY || kernels.contains(*dtype));
    supported.or_else(|| plainest_dtype(op, Backend::Cpu))
}

/// The dtype of an argument in a call in a dtype.
fn dtype_of(op: &Op, index: usize, dtype: DType) -> DType {
    let combined = op.combinations.first().and_then(|row| row.inputs.iter().find(|(at, _)| *at == index));
    match (combined, op.args[index].element) {
        (Some((_, dtype)), _) => *dtype,
        (None, Element::Real) => dtype.to_real(),
        (None, Element::Opmath) => dtype.to_compute(),
        (None, Element::Fixed { kernel, accepted }) if !accepted.contains(dtype) => kernel,
        _ => dtype,
    }
}
