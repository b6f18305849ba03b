//! A program that repeats one call in its form and on its device, with operands of the recorded shapes, strides and dtypes.

mod values;

use std::fmt::Write as _;

use opsmith_core::{Backend, DType};
use opsmith_runtime::Device;

use crate::error::ProfileError;
use crate::model::{Event, Kind, Profile, ProfiledOp, RecordedArg, TensorShape};
use crate::table::time;
use values::is_value;

impl Profile {
    /// The calls of an operator and the steps of graphs that run it: by its full name, or by its name without overload.
    pub fn calls_of(&self, name: &str) -> impl Iterator<Item = &Event> {
        self.numbers_of_calls(name).map(|number| &self.events[number])
    }

    fn numbers_of_calls(&self, name: &str) -> impl Iterator<Item = usize> {
        let is = move |number: &usize| {
            let event = &self.events[*number];
            matches!(event.kind, Kind::Call | Kind::Step)
                && self.operator_of(event).is_some_and(|op| {
                    op.name == name || op.name.split('.').next() == Some(name) || self.name_of(event) == name
                })
        };
        (0..self.events.len()).filter(is)
    }

    /// The slowest of [`calls_of`](Profile::calls_of), by the time of devices for calls that ran kernels there.
    pub fn slowest_call(&self, name: &str) -> Option<&Event> {
        self.slowest_where(name, |_| true)
    }

    /// The slowest of those of [`calls_of`](Profile::calls_of) that a condition chooses.
    pub fn slowest_where(&self, name: &str, is_chosen: impl Fn(&Event) -> bool) -> Option<&Event> {
        let times = self.working_times();
        let chosen = self.numbers_of_calls(name).filter(|number| is_chosen(&self.events[*number]));
        chosen.max_by_key(|number| times[*number]).map(|number| &self.events[number])
    }

    /// A Rust program that repeats a call, or a step of a graph, and times it: `examples/NAME.rs` of a crate that depends on the operator's
    /// library. Elements are not recorded: the program tries random floats and zeros, which are valid as indices, then positive numbers, then
    /// matrices with a large diagonal, and takes the first that the operator accepts. An in-place form begins with the same elements
    /// each time; an out form writes into the results of another call. Times of a device are those until it has done the work.
    ///
    /// # Errors
    /// If the event is no call, or its operands were not recorded or cannot be written as text.
    pub fn repro(&self, event: &Event) -> Result<String, ProfileError> {
        let (Kind::Call | Kind::Step, Some(operator)) = (event.kind, self.operator_of(event)) else {
            return Err(ProfileError::new(
                "only a call of an operator is repeated",
                "choose one by its operator's name",
            ));
        };
        let Some(operands) = self.operands_of(event) else {
            return Err(ProfileError::new(
                "the call's operands were not recorded",
                "record with `ProfileOptions::shapes(true)`",
            ));
        };
        let form = Form::of(self.name_of(event), operator);
        let mut program = Program::default();
        let mut args = Vec::new();
        for (number, arg) in (0..).zip(&operands.args) {
            program.is_written = form == Form::Inplace && operator.writes.contains(&number);
            args.push(program.argument(arg)?);
        }
        let library = library_of(operator)?;
        let mut text = format!("//! {}\n\n{HEAD}", self.title_of_repro(event, operator));
        if library != "opsmith" {
            let _ = writeln!(text, "use {library} as _;");
        }
        let names: &[String] = operator.arguments.get(operator.positional as usize..).unwrap_or_default();
        let named = args.split_off(args.len().saturating_sub(names.len()));
        let named = names.iter().zip(named).map(|(name, value)| format!("({name:?}, {value})")).collect();
        let (name, functional) = (self.name_of(event), operator.name.as_str());
        text += &program.text(&Call { library, name, functional, form, args, named });
        Ok(text)
    }

    /// The first line of a program, without line breaks, which would end the comment.
    fn title_of_repro(&self, event: &Event, operator: &ProfiledOp) -> String {
        let site = self.site_of(event).map_or_else(String::new, |site| format!(", called at {site}"));
        let number = self.events.iter().position(|known| std::ptr::eq(known, event));
        let took = number.map_or(event.duration_ns, |number| self.working_times()[number].0);
        let title = format!(
            "Repeats one call of `{}` ({}) as it was recorded in `{}`{site}: {} there.",
            operator.name,
            operator.entry,
            self.name,
            time(took)
        );
        title.replace(char::is_control, " ")
    }
}

/// A call as a program writes it: expressions of the arguments by position, and pairs of those by name.
struct Call<'a> {
    library: String,
    name: &'a str,
    functional: &'a str,
    form: Form,
    args: Vec<String>,
    named: Vec<String>,
}

/// Longest list of arguments in one line.
const LINE: usize = 80;

/// A list of arguments, in a line each if one is too long.
fn in_lines(args: &[String]) -> String {
    match args.join(", ") {
        line if line.len() <= LINE => format!("[{line}]"),
        _ => args.iter().fold("[\n".to_owned(), |text, arg| text + &format!("        {arg},\n")) + "    ]",
    }
}

const HEAD: &str = "#![allow(unused_imports, reason = \"which of them a call needs depends on its operands\")]\n\n\
use std::time::Instant;\n\n\
use opsmith::{Complex64, DType, Device, Result, Scalar, Tensor, TensorOps, Value};\n";

/// The main function, which finds elements that the operator accepts.
const MAIN: &str = r#"
/// The elements of operands.
#[derive(Clone, Copy)]
enum Fill {
    /// Floats between -1 and 1, zeros for integers.
    Any,
    /// Floats between 0.1 and 0.9, ones for integers.
    Positive,
    /// Matrices that a large diagonal makes positive definite; integers count from 1 along the last dimension.
    Dominant,
}

pub fn main() -> Result<()> {
    let refused = match run(Fill::Any) {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    [Fill::Positive, Fill::Dominant].into_iter().find_map(|fill| run(fill).ok()).ok_or(refused)
}
"#;

/// The tensors that an out form writes into.
const OUTS: &str = r#"    // The results of another call have the sizes that it writes.
    let results = CALL?;
    let names: Vec<String> = (0..results.len()).map(|number| format!("out{number}")).collect();
    let outs: Vec<(&str, Value)> = NAMED.chain(names.iter().map(String::as_str).zip(results)).collect();
"#;

/// The arguments that are given by name.
const KEYWORDS: &str = "    let named: Vec<(&str, Value)> = LIST.to_vec();\n";

const TIMING: &str = r#"
/// Calls it for about a second, and prints the median of the calls' times. A device is waited for: a time is then that of twenty
/// calls, divided by twenty.
fn time(
    device: Device,
    prepare: impl Fn() -> Result<()>,
    call: impl Fn() -> Result<Vec<Value>>,
) -> Result<()> {
    let together = if device == Device::CPU { 1 } else { 20 };
    prepare()?;
    call()?;
    let (begin, mut times) = (Instant::now(), Vec::new());
    while times.len() < 5 || begin.elapsed().as_secs() < 1 && times.len() < 100_000 {
        prepare()?;
        device.synchronize()?;
        let start = Instant::now();
        for _ in 0..together {
            call()?;
        }
        device.synchronize()?;
        times.push(start.elapsed() / together);
    }
    times.sort_unstable();
    let calls = times.len() * together as usize;
    println!("{calls} calls, median {:?}, fastest {:?}", times[times.len() / 2], times[0]);
    Ok(())
}
"#;

const OPERAND: &str = r#"
/// A tensor of these sizes and strides.
fn operand(sizes: &[i64], strides: &[i64], dtype: DType, device: Device, fill: Fill) -> Result<Tensor> {
    let reach = sizes.iter().zip(strides).map(|(size, stride)| (size - 1) * stride).sum::<i64>();
    let count = if sizes.contains(&0) { 0 } else { reach + 1 };
    let mut state = 1u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state) / f64::from(u32::MAX)
    };
    let whole = !dtype.is_float() && !dtype.is_complex();
    let mut elements = vec![0.0; count as usize];
    for number in 0..sizes.iter().product::<i64>() {
        let (mut rest, mut place, mut row_and_column) = (number, 0, [0; 2]);
        for (dim, (size, stride)) in sizes.iter().zip(strides).enumerate().rev() {
            place += rest % size * stride;
            if dim + 2 >= sizes.len() {
                row_and_column[dim + 2 - sizes.len()] = rest % size;
            }
            rest /= size;
        }
        let [row, column] = row_and_column;
        elements[place as usize] = match fill {
            _ if dtype == DType::Bool => random().round(),
            Fill::Any if whole => 0.0,
            Fill::Positive if whole => 1.0,
            Fill::Dominant if whole => (column + 1) as f64,
            Fill::Any => random() * 2.0 - 1.0,
            Fill::Positive => 0.1 + 0.8 * random(),
            Fill::Dominant if row == column => *sizes.last().unwrap_or(&1) as f64,
            Fill::Dominant => 0.5,
        };
    }
    Tensor::from_slice(&elements, &[count])?.to_dtype(dtype)?.to_device(device)?.as_strided(sizes, strides)
}
"#;

/// The library of an operator, as Rust names it.
fn library_of(operator: &ProfiledOp) -> Result<String, ProfileError> {
    let name = match operator.library.as_str() {
        "" => "opsmith".to_owned(),
        library => library.replace('-', "_"),
    };
    let is_name = name.chars().all(|letter| letter == '_' || letter.is_alphanumeric())
        && !name.starts_with(|letter: char| letter.is_numeric());
    match is_name {
        true => Ok(name),
        false => Err(ProfileError::new(
            format!("`{}` is not the name of a library", operator.library),
            "record the profile again",
        )),
    }
}

/// The form of a recorded call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Functional,
    Inplace,
    Out,
}

impl Form {
    /// The form of this name.
    fn of(name: &str, operator: &ProfiledOp) -> Form {
        match Some(name) {
            name if name == operator.inplace.as_deref() => Form::Inplace,
            name if name == operator.out.as_deref() => Form::Out,
            _ => Form::Functional,
        }
    }
}

/// The lines that make a program's operands.
#[derive(Default)]
struct Program {
    lines: String,
    tensors: usize,
    /// The device of the work: that of the first tensor that is not the host's.
    device: Option<Device>,
    /// Whether the call writes the argument, and the lines that give such tensors their first elements again.
    is_written: bool,
    restored: String,
}

/// A device as an expression.
fn device_text(device: Device) -> String {
    match device.backend {
        Backend::Cpu => "Device::CPU".to_owned(),
        Backend::Cuda => format!("Device::cuda({})", device.index),
    }
}

impl Program {
    /// The functions of a program that repeats a call.
    fn text(&self, call: &Call<'_>) -> String {
        let Program { lines, restored, device, tensors, .. } = self;
        let Call { library, name, functional, form, args, named } = call;
        let args = in_lines(args);
        let (keywords, given, chained) = match named.as_slice() {
            [] => (String::new(), "&[]", "std::iter::empty()"),
            named => (KEYWORDS.replace("LIST", &in_lines(named)), "&named", "named.iter().cloned()"),
        };
        let outs = match form {
            Form::Out => {
                let results = format!("{library}::call({functional:?}, &args, {given})");
                OUTS.replace("CALL", &results).replace("NAMED", chained)
            }
            _ => String::new(),
        };
        let given = if *form == Form::Out { "&outs" } else { given };
        let device = device_text(device.unwrap_or(Device::CPU));
        let prepare = match restored.as_str() {
            "" => "{ Ok(()) }".to_owned(),
            lines => format!("{{\n{lines}        Ok(())\n    }}"),
        };
        let (parameter, operand) = if *tensors > 0 { ("fill: Fill", OPERAND) } else { ("_: Fill", "") };
        format!(
            "{MAIN}\nfn run({parameter}) -> Result<()> {{\n{lines}    let args = {args};\n{keywords}{outs}    \
             let prepare = || -> Result<()> {prepare};\n    \
             time({device}, prepare, || {library}::call({name:?}, &args, {given}))\n}}\n{TIMING}{operand}",
        )
    }

    /// The expression of an argument.
    fn argument(&mut self, arg: &RecordedArg) -> Result<String, ProfileError> {
        Ok(match arg {
            RecordedArg::None => "Value::None".to_owned(),
            RecordedArg::Tensor(tensor) => format!("Value::Tensor({})", self.tensor(tensor)?),
            RecordedArg::Tensors(tensors) => {
                let names: Vec<String> =
                    tensors.iter().map(|tensor| self.tensor(tensor)).collect::<Result<_, ProfileError>>()?;
                format!("Value::Tensors(vec![{}])", names.join(", "))
            }
            RecordedArg::OptionalTensors(tensors) => {
                let name = |tensor: &Option<TensorShape>| match tensor {
                    Some(tensor) => Ok(format!("Some({})", self.tensor(tensor)?)),
                    None => Ok("None".to_owned()),
                };
                let names: Vec<String> = tensors.iter().map(name).collect::<Result<_, ProfileError>>()?;
                format!("Value::OptionalTensors(vec![{}])", names.join(", "))
            }
            RecordedArg::Attribute { rust: Some(rust), .. } if is_value(rust) => rust.clone(),
            RecordedArg::Attribute { text, .. } => {
                return Err(ProfileError::new(
                    format!("an argument has no text that makes it again: {text}"),
                    "repeat another call, or write this argument by hand",
                ));
            }
        })
    }

    /// The name of a variable with a tensor like this.
    fn tensor(&mut self, tensor: &TensorShape) -> Result<String, ProfileError> {
        let negative = |numbers: &[i64]| numbers.iter().any(|number| *number < 0);
        if negative(&tensor.strides) || negative(&tensor.sizes) || tensor.sizes.len() != tensor.strides.len()
        {
            return Err(ProfileError::new(
                "an operand has negative sizes or strides, or not as many of both",
                "repeat another call",
            ));
        }
        let Some(dtype) = DType::ALL.into_iter().find(|dtype| dtype.name() == tensor.dtype) else {
            return Err(ProfileError::new(
                format!("there is no dtype `{}`", tensor.dtype),
                "save the profile again",
            ));
        };
        let Some(device) = Device::from_name(&tensor.device) else {
            return Err(ProfileError::new(
                format!("there is no device `{}`", tensor.device),
                "save the profile again",
            ));
        };
        self.device = self.device.or((device != Device::CPU).then_some(device));
        let name = format!("tensor{}", self.tensors);
        let (sizes, strides) = (&tensor.sizes, &tensor.strides);
        let made =
            format!("operand(&{sizes:?}, &{strides:?}, DType::{dtype:?}, {}, fill)?", device_text(device));
        let _ = writeln!(self.lines, "    let {name} = {made};");
        if self.is_written {
            let first = format!("first{}", self.tensors);
            let _ = writeln!(self.lines, "    let {first} = {made};");
            let _ = writeln!(self.restored, "        {name}.copy_(&{first})?;");
        }
        self.tensors += 1;
        Ok(if self.is_written { format!("{name}.clone()") } else { name })
    }
}
