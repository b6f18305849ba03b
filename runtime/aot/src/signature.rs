//! The signature of a kernel, whichever way it was declared.
//!
//! In: declarations of `declare.rs`, records of `record.rs`, definitions of generated operators. Out: one
//! [`Signature`] for all, the combination of dtypes that a call runs with, and the text that libraries
//! carry. Must not know libraries or tensors.

use std::fmt::Write as _;

use opsmith_core::DType;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::op::{ArgKind, OpDef};

use super::attributes::{AttrType, AttrValue, Attributes};
use super::device::Place;

/// Whether an input must be given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InputKind {
    /// It must.
    Required,
    /// It may be absent: kernels see the dtype `none` and no memory.
    Optional,
    /// A list of tensors of any length: kernels see one after the other.
    Dynamic,
}

/// An input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Input {
    pub name: String,
    pub kind: InputKind,
}

/// An attribute.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Attribute {
    pub name: String,
    pub ty: AttrType,
    /// The value it always has; without one, calls give it.
    pub value: Option<AttrValue>,
    /// The value if a call does not give one.
    pub default: Option<AttrValue>,
}

/// The dtypes that a kernel takes and gives together: of each input, then of each output; `None` for any.
pub(super) type Combination = Vec<Option<DType>>;

/// The inputs, attributes and outputs of a kernel.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Signature {
    /// The operator's name.
    pub name: String,
    pub inputs: Vec<Input>,
    pub outputs: Vec<String>,
    /// Whether the one declared output is a list whose length inference says.
    pub dynamic_output: bool,
    pub attributes: Vec<Attribute>,
    /// The combinations there are kernels for; any if there is none.
    pub combinations: Vec<Combination>,
}

impl Signature {
    /// That of an operator whose spec names a kernel of this interface.
    pub fn of_definition(op: &OpDef) -> Signature {
        let mut inputs = Vec::new();
        let mut attributes = Vec::new();
        for arg in op.schema.args {
            let kind = match arg.ty.kind {
                ArgKind::Tensor if arg.ty.optional => InputKind::Optional,
                ArgKind::Tensor => InputKind::Required,
                ArgKind::Tensors | ArgKind::OptionalTensors => InputKind::Dynamic,
                kind => {
                    if let Some(ty) = AttrType::of_argument(kind) {
                        attributes.push(Attribute {
                            name: arg.name.to_owned(),
                            ty,
                            value: None,
                            default: None,
                        });
                    }
                    continue;
                }
            };
            inputs.push(Input { name: arg.name.to_owned(), kind });
        }
        let outputs = op.schema.returns.iter().enumerate();
        let outputs =
            outputs.map(|(index, output)| output.name.map_or(format!("out{index}"), str::to_owned)).collect();
        let dynamic_output = matches!(op.schema.returns, [only] if only.ty.kind == ArgKind::Tensors);
        Signature {
            name: op.name.to_owned(),
            inputs,
            outputs,
            dynamic_output,
            attributes,
            combinations: Vec::new(),
        }
    }

    /// Whether inference functions of the library return lists: there are several outputs, or one of any
    /// length.
    pub fn infers_lists(&self) -> bool {
        self.outputs.len() != 1 || self.dynamic_output
    }

    /// The attributes with the values of a call, in the order of those that calls give.
    pub fn attributes(&self, at_call: &[Option<AttrValue>]) -> Attributes {
        let mut given = at_call.iter();
        let mut values = Vec::new();
        for attribute in &self.attributes {
            let value = match &attribute.value {
                Some(value) => Some(value.clone()),
                None => given.next().cloned().flatten(),
            };
            values.extend(value.map(|value| (attribute.name.clone(), value)));
        }
        Attributes(values)
    }

    /// The name of an input by its position among all tensors of a call: `x`, or `xs[1]`.
    pub fn input_name(&self, position: usize, count: usize) -> String {
        // At most one input is a list, or the length of each could not be told from their sum.
        let length = (count + 1).saturating_sub(self.inputs.len());
        let mut start = 0;
        for input in &self.inputs {
            let here = if input.kind == InputKind::Dynamic { length } else { 1 };
            if position < start + here {
                return match input.kind {
                    InputKind::Dynamic => format!("{}[{}]", input.name, position - start),
                    _ => input.name.clone(),
                };
            }
            start += here;
        }
        format!("input {position}")
    }

    /// The name of an output.
    pub fn output_name(&self, position: usize) -> String {
        match (self.dynamic_output, self.outputs.as_slice()) {
            (true, [only]) => format!("{only}[{position}]"),
            (_, names) => names.get(position).cloned().unwrap_or_else(|| format!("output {position}")),
        }
    }

    /// Which dtypes the kernel sees for inputs of these dtypes (absent ones are `None`), and the row they
    /// come from. A row that fits exactly is chosen before one that needs conversions: int16 and int64 to
    /// int32, float16 and float64 to float32. Among equals the first counts.
    ///
    /// # Errors
    /// If no row fits; the error lists the rows.
    #[inline]
    pub fn select(&self, given: &[Option<DType>]) -> Result<Option<&Combination>> {
        if self.combinations.is_empty() {
            return Ok(None);
        }
        let fits = |row: &Combination, fit: fn(DType, DType) -> bool| {
            given.iter().enumerate().all(|(position, dtype)| {
                match (self.wanted(row, position, given.len()), dtype) {
                    (Some(wanted), Some(dtype)) => fit(wanted, *dtype),
                    // Any will do, or none was given.
                    _ => true,
                }
            })
        };
        let exact = self.combinations.iter().find(|row| fits(row, |wanted, given| wanted == given));
        let row = exact.or_else(|| self.combinations.iter().find(|row| fits(row, converts)));
        row.map(Some).ok_or_else(|| self.unsupported(given))
    }

    /// The dtype that a row wants of a tensor, by its position among all inputs. All tensors of a list
    /// have one column.
    #[inline]
    pub fn wanted(&self, row: &Combination, position: usize, count: usize) -> Option<DType> {
        if count == self.inputs.len() {
            return row[position];
        }
        let length = (count + 1).saturating_sub(self.inputs.len());
        let mut start = 0;
        for (column, input) in self.inputs.iter().enumerate() {
            let here = if input.kind == InputKind::Dynamic { length } else { 1 };
            if position < start + here {
                return row[column];
            }
            start += here;
        }
        None
    }

    #[cold]
    fn unsupported(&self, given: &[Option<DType>]) -> Error {
        let text = |dtypes: &[Option<DType>]| {
            let names: Vec<&str> = dtypes.iter().map(|dtype| dtype.map_or("any", DType::name)).collect();
            names.join(", ")
        };
        let names: Vec<&str> = given.iter().map(|dtype| dtype.map_or("none", DType::name)).collect();
        let rows: Vec<String> = self
            .combinations
            .iter()
            .map(|row| {
                let (inputs, outputs) = row.split_at(self.inputs.len());
                format!("({}) -> ({})", text(inputs), text(outputs))
            })
            .collect();
        Error::dtype(format!("no combination of dtypes takes ({})", names.join(", "))).with_help(format!(
            "supported are {}; int16 and int64 are converted to int32, float16 and float64 to float32",
            rows.join(", ")
        ))
    }

    /// The signature as libraries carry it: a line for each field. Values of attributes are not part of it.
    pub fn fingerprint(&self, function: &str, place: Place) -> String {
        let mut text = format!("interface=1\nfunction={function}\n");
        if place != Place::Host {
            let _ = writeln!(text, "target={}", place.backend().key());
        }
        for input in &self.inputs {
            let kind = match input.kind {
                InputKind::Required => "required",
                InputKind::Optional => "optional",
                InputKind::Dynamic => "dynamic",
            };
            let _ = writeln!(text, "input {}={kind}", input.name);
        }
        for output in &self.outputs {
            let _ = writeln!(
                text,
                "output {output}={}",
                if self.dynamic_output { "dynamic" } else { "required" }
            );
        }
        for attribute in &self.attributes {
            let _ = writeln!(text, "attribute {}={}", attribute.name, attribute.ty.name());
        }
        let mut rows: Vec<String> = self
            .combinations
            .iter()
            .map(|row| row.iter().map(|dtype| dtype.map_or("any", DType::name)).collect::<Vec<_>>().join(" "))
            .collect();
        rows.sort();
        let _ = writeln!(text, "dtypes={}", rows.join("; "));
        text
    }
}

/// Refuses a signature that no call could fit.
pub(super) fn check_signature(signature: &Signature) -> Result<()> {
    let inputs = signature.inputs.iter().map(|input| &input.name);
    let attributes = signature.attributes.iter().map(|attribute| &attribute.name);
    let names: Vec<&String> = inputs.chain(attributes).collect();
    if !signature.name.split('.').all(is_name) {
        return Err(Error::argument(format!("`{}` is no name of an operator", signature.name)));
    }
    for (index, name) in names.iter().enumerate() {
        if !is_name(name) {
            return Err(Error::argument(format!("`{name}` is no name of an input or attribute"))
                .with_help("names are letters, digits and underscores"));
        }
        if names[..index].contains(name) {
            return Err(Error::argument(format!("`{name}` is declared twice")));
        }
    }
    if signature.outputs.is_empty() {
        return Err(Error::argument("no output is declared").with_help("add `output(NAME)`"));
    }
    if signature.dynamic_output && signature.outputs.len() > 1 {
        return Err(Error::argument("an output that is a list must be the only one"));
    }
    if signature.inputs.iter().filter(|input| input.kind == InputKind::Dynamic).count() > 1 {
        return Err(Error::argument(
            "only one input can be a list: the kernel sees one tensor after the other",
        ));
    }
    if names.len() > 63 {
        return Err(Error::argument(format!(
            "{} inputs and attributes are declared, 63 can be",
            names.len()
        )));
    }
    let wanted = signature.inputs.len() + signature.outputs.len();
    if let Some(row) = signature.combinations.iter().find(|row| row.len() != wanted) {
        return Err(Error::argument(format!(
            "a combination has {} dtypes, for {} inputs and {} outputs",
            row.len(),
            signature.inputs.len(),
            signature.outputs.len()
        )));
    }
    Ok(())
}

pub(super) fn is_name(text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.chars().all(word) && text.chars().next().is_some_and(|first| !first.is_ascii_digit())
}

/// Whether the interface converts an input of one dtype to another that a kernel wants.
fn converts(wanted: DType, given: DType) -> bool {
    wanted == given
        || match wanted {
            DType::I32 => matches!(given, DType::I16 | DType::I64),
            DType::F32 => matches!(given, DType::F16 | DType::F64),
            _ => false,
        }
}

/// Compares the signature that a library carries with the declared one.
///
/// # Errors
/// If a field differs: which, and how.
pub(super) fn compare_fingerprints(library: &str, declared: &str) -> Result<()> {
    if library == declared {
        return Ok(());
    }
    let fields = |text: &str| -> Vec<(String, String)> {
        let split =
            |line: &str| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        text.lines().filter_map(split).collect()
    };
    let (library, declared) = (fields(library), fields(declared));
    let mut differences = Vec::new();
    for (name, value) in &library {
        match declared.iter().find(|(other, _)| other == name) {
            None => differences.push(format!("`{name}` ({value}) is not declared")),
            Some((_, other)) if other != value => {
                differences.push(format!("`{name}` is {value} in the library, {other} in the declaration"));
            }
            Some(_) => {}
        }
    }
    for (name, value) in &declared {
        if !library.iter().any(|(other, _)| other == name) {
            differences.push(format!("`{name}` ({value}) is not in the library"));
        }
    }
    if differences.is_empty() {
        let list = |fields: &[(String, String)]| {
            fields.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>().join(", ")
        };
        differences.push(format!(
            "the order is {} in the library, {} in the declaration",
            list(&library),
            list(&declared)
        ));
    }
    Err(Error::kernel(format!("the library was made for another signature: {}", differences.join("; ")))
        .with_help("build the library from its source with this declaration, or correct the declaration"))
}
