//! The names of a signature in the keys of an entry: a row for each key of the language.
//!
//! In: a key. Out: the names that keys of its mapping are, and the form of names in its texts. Completion, hover,
//! definitions, references and renaming all read these rows, and a key without one does not compile.

use opsmith_codegen::expr::check::Mode;
use opsmith_codegen::spec::document::KeyName;
use opsmith_codegen::spec::yaml::{Key, Node, NodeKind};

use super::schema;

/// The names in the value of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Naming {
    /// The names that the keys of its mapping are, or those of the mappings in its list.
    pub keys: Names,
    /// The names in its texts.
    pub texts: TextForm,
}

/// A part of the names of a signature.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Names {
    /// No names.
    None,
    /// Arguments, or parameters of a scalar function.
    Arguments,
    /// Results.
    Results,
    /// Arguments and named results.
    All,
}

impl Names {
    pub fn have_arguments(self) -> bool {
        matches!(self, Names::Arguments | Names::All)
    }

    pub fn have_results(self) -> bool {
        matches!(self, Names::Results | Names::All)
    }
}

/// The form of names in texts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TextForm {
    /// Text without names.
    Other,
    /// Sentences: a word that is a name is explained, but a renaming leaves it alone, because it may mean something else.
    Prose,
    /// One name: `dim`.
    Name(Names),
    /// One name, alone or in parentheses: `last(dim)`.
    NameOrCall,
    /// A path, and arguments in parentheses: `reduce::sum(self, dim)`.
    Kernel,
    /// An expression.
    Expression(Mode),
    /// Names in braces: `{self}^T`.
    Notation,
    /// Names in braces, and words: `y_i = exp({self}_i)`.
    Formula,
}

/// The rows: keys, the names that keys of their mappings are, and the form of names in their texts.
macro_rules! naming_rows {
    ($($($key:ident)+ => $names:ident, $texts:expr;)+) => {
        /// The row of a key.
        pub(super) const fn naming(key: KeyName) -> Naming {
            use TextForm::{Expression, Formula, Kernel, Name, NameOrCall, Notation, Other, Prose};
            match key {
                $($(KeyName::$key)|+ => Naming { keys: Names::$names, texts: $texts },)+
            }
        }
    };
}

naming_rows! {
    Edition Include Features Namespaces Unlike Functions Ops Declarations => None, Other;
    Func AliasOf Since Deprecated Tags BackwardOnly KnownAs Variants Names RustName View Infer => None, Other;
    Dtypes Supplied Operator Role OutputDifferentiability Deterministic Updates Origin => None, Other;
    Rust Cuda Op => None, Other;
    Doc Tolerance => None, Prose;
    Descriptions => All, Prose;
    Ignored Method Contiguous Rounded NoBuffer => None, Name(Names::Arguments);
    Intermediate => None, Name(Names::Results);
    Inplace => Arguments, Name(Names::Results);
    ArgumentAliases Attributes Numbers ValueDepends Types Samples => Arguments, Other;
    Combinations => All, Other;
    Lines => None, NameOrCall;
    Notation => None, Notation;
    Formula => None, Formula;
    Dispatch => None, Kernel;
    Shape RunShape RunSizes Length => None, Expression(Mode::Shape);
    Dtype Compute => None, Expression(Mode::DType);
    Check => None, Expression(Mode::Check);
    Present => Results, Expression(Mode::Check);
    Flops => None, Expression(Mode::Operations);
    Pointwise => None, Expression(Mode::Pointwise);
    Decompose => None, Expression(Mode::Decompose);
    Derivatives => Arguments, Expression(Mode::Derivative);
    Forward => Results, Expression(Mode::Forward);
    Derivative Wirtinger => Arguments, Expression(Mode::FunctionDerivative);
}

/// The row of the key that a place is in: the list of the file and the keys inside the entry.
pub(super) fn naming_at(list: &str, keys: &[&str]) -> Option<Naming> {
    key_at(list, keys).map(naming)
}

/// The key of an entry that a place is in.
pub(super) fn key_at(list: &str, keys: &[&str]) -> Option<KeyName> {
    schema::row(&[list], keys.first()?).map(|row| row.key)
}

/// The kind of expression under a key; `None` if its texts are no expressions.
pub(super) const fn expression_mode(key: KeyName) -> Option<Mode> {
    match naming(key).texts {
        TextForm::Expression(mode) => Some(mode),
        _ => None,
    }
}

/// The keys of a value that may be names: those of its mapping, or of the mappings in its list. Mappings further inside have
/// words of the language.
pub(super) fn naming_keys(node: &Node) -> Vec<&Key> {
    match &node.kind {
        NodeKind::Seq(items) => items.iter().flat_map(naming_keys).collect(),
        NodeKind::Map(entries) => entries.iter().map(|(key, _)| key).collect(),
        NodeKind::Scalar(_) | NodeKind::Null | NodeKind::Broken => Vec::new(),
    }
}
