//! The names of a signature in its formula.
//!
//! In: the schema. Out: lookups.

use crate::spec::schema::Schema;

/// The meaning of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Named {
    /// An argument, by position.
    Argument(usize),
    /// A result, by position.
    Result(usize),
}

/// The names that a formula may use.
pub(super) struct Signature<'a> {
    arguments: Vec<&'a str>,
    /// The names of results, or none.
    results: Vec<Option<&'a str>>,
}

impl<'a> Signature<'a> {
    pub fn new(schema: &'a Schema) -> Signature<'a> {
        Signature {
            arguments: schema.args.iter().map(|arg| arg.name.as_str()).collect(),
            results: schema.returns.iter().map(|result| result.name.as_deref()).collect(),
        }
    }

    /// The argument or named result of this name; where an argument is called y, the only unnamed result is `result`.
    pub fn find(&self, name: &str) -> Option<Named> {
        let argument = self.arguments.iter().position(|known| *known == name).map(Named::Argument);
        let result = || self.results.iter().position(|known| *known == Some(name)).map(Named::Result);
        let unnamed =
            || (name == "result" && self.is_y_taken() && self.results == [None]).then_some(Named::Result(0));
        argument.or_else(result).or_else(unnamed)
    }

    fn is_y_taken(&self) -> bool {
        self.arguments.contains(&"y")
    }

    /// Whether the only result is `y`.
    pub fn has_one_result(&self) -> bool {
        self.results == [None] && !self.is_y_taken()
    }

    /// Whether `y_index` is a result.
    pub fn has_result(&self, index: usize) -> bool {
        self.results.len() > 1 && self.results.get(index) == Some(&None)
    }

    /// The names in braces.
    pub fn names(&self) -> Vec<&'a str> {
        self.arguments.iter().copied().chain(self.results.iter().copied().flatten()).collect()
    }

    /// A result as a formula writes it.
    pub fn shown(&self, index: usize) -> String {
        match self.results.get(index).copied().flatten() {
            Some(name) => format!("{{{name}}}"),
            None if self.results.len() > 1 => format!("y_{index}"),
            None if self.is_y_taken() => "{result}".to_owned(),
            None => "y".to_owned(),
        }
    }
}
