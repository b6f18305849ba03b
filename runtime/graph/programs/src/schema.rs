//! The schema of exported programs, as the JSON has it.
//!
//! In: JSON text. Out: its structs, in PyTorch's words. Arguments stay JSON values, so that an argument of an unknown
//! kind is an error of its node (`lower/arguments`). Fields of newer minor versions are ignored.

use std::collections::BTreeMap;

use opsmith_runtime::error::{Error, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::errors::damaged;

/// The major version of the schema that PyTorch 2.6 to 2.15 write.
const MAJOR: i64 = 8;

#[derive(Deserialize)]
struct Head {
    schema_version: Option<Version>,
    #[serde(default)]
    torch_version: String,
}

#[derive(Deserialize)]
struct Version {
    major: i64,
    #[serde(default)]
    minor: i64,
}

/// An exported program.
#[derive(Deserialize)]
pub(crate) struct ExportedProgram {
    pub graph_module: GraphModule,
    #[serde(default)]
    pub range_constraints: BTreeMap<String, RangeConstraint>,
    #[serde(default)]
    pub torch_version: String,
    /// Conditions on inputs, in Python.
    #[serde(default)]
    pub guards_code: Vec<String>,
}

/// The bounds of a symbol, both inclusive; `null` is no bound.
#[derive(Deserialize)]
pub(crate) struct RangeConstraint {
    pub min_val: Option<i64>,
    pub max_val: Option<i64>,
}

#[derive(Deserialize)]
pub(crate) struct GraphModule {
    pub graph: Graph,
    pub signature: Signature,
    /// The calls of modules, of which the first is that of the program, with the trees of its arguments and results.
    #[serde(default)]
    pub module_call_graph: Value,
}

#[derive(Deserialize)]
pub(crate) struct Graph {
    pub inputs: Vec<Value>,
    pub outputs: Vec<Value>,
    pub nodes: Vec<Node>,
    #[serde(default)]
    pub tensor_values: BTreeMap<String, TensorMeta>,
}

#[derive(Deserialize)]
pub(crate) struct Node {
    pub target: String,
    #[serde(default)]
    pub inputs: Vec<NamedArgument>,
    #[serde(default)]
    pub outputs: Vec<Value>,
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
    #[serde(default)]
    pub name: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct NamedArgument {
    #[serde(default)]
    pub name: String,
    pub arg: Value,
    /// 1 if it was given by position, 2 by keyword; older files do not say.
    #[serde(default)]
    pub kind: Option<i64>,
}

#[derive(Deserialize)]
pub(crate) struct Signature {
    pub input_specs: Vec<Value>,
    pub output_specs: Vec<Value>,
}

/// Dtype and layout of a tensor.
#[derive(Deserialize)]
pub(crate) struct TensorMeta {
    pub dtype: i64,
    pub sizes: Vec<SymInt>,
    #[serde(default)]
    pub strides: Vec<SymInt>,
    #[serde(default = "zero")]
    pub storage_offset: SymInt,
}

fn zero() -> SymInt {
    SymInt::AsInt(0)
}

/// An integer: a number, or a formula in SymPy's notation.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SymInt {
    AsInt(i64),
    AsExpr(SymExpr),
}

#[derive(Deserialize)]
pub(crate) struct SymExpr {
    pub expr_str: String,
    /// The value at which the program was exported, `{"as_int": 9}`, or a number in older files.
    #[serde(default)]
    pub hint: Value,
}

impl SymExpr {
    /// The value at which the program was exported, if the file has it.
    pub fn example(&self) -> Option<i64> {
        self.hint.as_i64().or_else(|| self.hint.get("as_int")?.as_i64())
    }
}

/// Weights by name, or constants.
#[derive(Deserialize)]
pub(crate) struct PayloadConfig {
    pub config: BTreeMap<String, PayloadMeta>,
}

/// One weight: the file with its bytes, and its layout over them.
#[derive(Deserialize)]
pub(crate) struct PayloadMeta {
    pub path_name: String,
    #[serde(default)]
    pub use_pickle: bool,
    pub tensor_meta: Option<TensorMeta>,
}

/// Reads a program.
///
/// # Errors
/// If the text is not such JSON, is nested too deeply, or has another major version.
pub(crate) fn program(member: &str, text: &str) -> Result<ExportedProgram> {
    let head: Head = json(member, text)?;
    match head.schema_version {
        Some(Version { major: MAJOR, .. }) => json(member, text),
        found => {
            let found = found.map_or("without a version".to_owned(), |version| {
                format!("version {}.{}", version.major, version.minor)
            });
            let by = match head.torch_version.as_str() {
                "" => String::new(),
                version => format!(", written by PyTorch {version}"),
            };
            Err(Error::io(format!(
                "the program has a schema of {found}{by}, and this reader knows {MAJOR}.x"
            ))
            .with_help("save it with a PyTorch from 2.6 to 2.15, or update opsmith"))
        }
    }
}

/// Reads a JSON member. `serde_json` refuses text that is nested more than 128 levels deep.
///
/// # Errors
/// If the text is not such JSON.
pub(crate) fn json<T: DeserializeOwned>(member: &str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| damaged(member, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_versions_are_named() {
        let error = |text: &str| program("m.json", text).err().expect("refused").to_string();
        let other = error(r#"{"schema_version": {"major": 9, "minor": 1}, "torch_version": "3.0.0"}"#);
        assert!(
            other.contains("version 9.1, written by PyTorch 3.0.0, and this reader knows 8.x"),
            "{other}"
        );
        assert!(error("{}").contains("without a version"));
    }

    #[test]
    fn deep_text_is_refused() {
        let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        let graph = format!(r#"{{"graph": {{"inputs": [{deep}]}}}}"#);
        let version = r#"{"major": 8, "minor": 0}"#;
        let text = format!(r#"{{"schema_version": {version}, "graph_module": {graph}}}"#);
        let error = program("m.json", &text).err().expect("refused").to_string();
        assert!(error.contains("recursion limit"), "{error}");
    }
}
