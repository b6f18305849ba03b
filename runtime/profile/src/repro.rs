//! A program that repeats one call, with operands of the recorded shapes, strides and dtypes.

use std::fmt::Write as _;

use opsmith_core::DType;

use crate::error::ProfileError;
use crate::model::{Event, Kind, Profile, RecordedArg, TensorShape};
use crate::table::time;

impl Profile {
    /// The calls of an operator and the steps of graphs that run it: by its full name, or by its name without overload.
    pub fn calls_of(&self, name: &str) -> impl Iterator<Item = &Event> {
        let is = move |event: &&Event| {
            matches!(event.kind, Kind::Call | Kind::Step)
                && self.operator_of(event).is_some_and(|op| {
                    op.name == name || op.name.split('.').next() == Some(name) || self.name_of(event) == name
                })
        };
        self.events.iter().filter(is)
    }

    /// The slowest of [`calls_of`](Profile::calls_of).
    pub fn slowest_call(&self, name: &str) -> Option<&Event> {
        self.calls_of(name).max_by_key(|event| event.duration_ns)
    }

    /// A Rust program that repeats a call, or a step of a graph, and times it: `examples/NAME.rs` of a crate that depends on the operator's
    /// library. Elements are random for floats and complex numbers, and 0 for others, which are valid as indices.
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
        let mut program = Program::default();
        let args: Vec<String> =
            operands.args.iter().map(|arg| program.argument(arg)).collect::<Result<_, ProfileError>>()?;
        let library = match operator.library.as_str() {
            "" => "opsmith".to_owned(),
            library => library.replace('-', "_"),
        };
        let site = self.site_of(event).map_or_else(String::new, |site| format!(", called at {site}"));
        let mut text = format!(
            "//! Repeats one call of `{}` ({}) as it was recorded in `{}`{site}: {} there.\n\n",
            operator.name,
            operator.entry,
            self.name,
            time(event.duration_ns)
        );
        text += HEAD;
        if library != "opsmith" {
            let _ = writeln!(text, "use {library} as _;");
        }
        let args = match args.join(", ") {
            line if line.len() <= LINE => format!("[{line}]"),
            _ => {
                args.iter().fold("[\n".to_owned(), |text, arg| text + &format!("        {arg},\n")) + "    ]"
            }
        };
        let lines = &program.lines;
        let name = &operator.name;
        let _ = write!(
            text,
            "\npub fn main() -> Result<()> {{\n{lines}    let args = {args};\n    time(|| {library}::call(\"{name}\", &args, &[]))\n}}\n{TIMING}",
        );
        if program.lines.contains("operand(") {
            text += OPERAND;
        }
        Ok(text)
    }
}

/// Longest list of arguments in one line.
const LINE: usize = 80;

const HEAD: &str = "#![allow(unused_imports, reason = \"which of them a call needs depends on its operands\")]\n\n\
use std::time::Instant;\n\n\
use opsmith::{Complex64, DType, Device, Result, Scalar, Tensor, TensorOps, Value};\n";

const TIMING: &str = r#"
/// Calls it for about a second, and prints the median of the calls' times.
fn time(call: impl Fn() -> Result<Vec<Value>>) -> Result<()> {
    call()?;
    let (start, mut times) = (Instant::now(), Vec::new());
    while times.len() < 5 || start.elapsed().as_secs() < 1 && times.len() < 100_000 {
        let start = Instant::now();
        call()?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    println!("{} calls, median {:?}, fastest {:?}", times.len(), times[times.len() / 2], times[0]);
    Ok(())
}
"#;

const OPERAND: &str = r#"
/// A tensor of these sizes and strides: random numbers between -1 and 1, or zeros for other dtypes than floats.
fn operand(sizes: &[i64], strides: &[i64], dtype: DType) -> Result<Tensor> {
    let reach = sizes.iter().zip(strides).map(|(size, stride)| (size - 1) * stride).sum::<i64>();
    let count = if sizes.contains(&0) { 0 } else { reach + 1 };
    let mut state = 1u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state) / f64::from(u32::MAX) * 2.0 - 1.0
    };
    let zero = !dtype.is_float() && !dtype.is_complex();
    let elements: Vec<f64> = (0..count).map(|_| if zero { 0.0 } else { random() }).collect();
    Tensor::from_slice(&elements, &[count])?.to_dtype(dtype)?.as_strided(sizes, strides)
}
"#;

/// The lines that make a program's operands.
#[derive(Default)]
struct Program {
    lines: String,
    tensors: usize,
}

impl Program {
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
            RecordedArg::Attribute { rust: Some(rust), .. } => rust.clone(),
            RecordedArg::Attribute { text, rust: None } => {
                return Err(ProfileError::new(
                    format!("an argument has no text that makes it again: {text}"),
                    "repeat another call, or write this argument by hand",
                ));
            }
        })
    }

    /// The name of a variable with a tensor like this.
    fn tensor(&mut self, tensor: &TensorShape) -> Result<String, ProfileError> {
        if tensor.strides.iter().any(|stride| *stride < 0) {
            return Err(ProfileError::new("an operand has negative strides", "repeat another call"));
        }
        let Some(dtype) = DType::ALL.into_iter().find(|dtype| dtype.name() == tensor.dtype) else {
            return Err(ProfileError::new(
                format!("there is no dtype `{}`", tensor.dtype),
                "save the profile again",
            ));
        };
        let name = format!("tensor{}", self.tensors);
        self.tensors += 1;
        let _ = writeln!(
            self.lines,
            "    let {name} = operand(&{:?}, &{:?}, DType::{dtype:?})?;",
            tensor.sizes, tensor.strides
        );
        Ok(name)
    }
}
