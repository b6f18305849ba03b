//! The name of an operator, parsed from its spelling.

use std::fmt;

/// Python's special names whose base begins with an i. Any other such name belongs to the `x += y` family: `__iadd__`
/// is the in-place form of `__add__`.
pub const BEGIN_WITH_I: [&str; 7] =
    ["__index__", "__init__", "__init_subclass__", "__instancecheck__", "__int__", "__invert__", "__iter__"];

/// A name such as `add_.Tensor`, in parts.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct OpName {
    /// Namespace, before `::`.
    pub namespace: Option<String>,
    /// The bare name: `add` for `add`, `add_` and `__iadd__`.
    pub base: String,
    /// The part after the point; empty if there is none.
    pub overload: String,
    /// Whether it writes `self`: `add_`, `__iadd__`.
    pub inplace: bool,
    /// Whether it is spelt `__name__`.
    pub dunder: bool,
    /// Whether it ends in `_functional`, the form of a mutable operator that writes nothing.
    pub functional_overload: bool,
}

impl OpName {
    /// Parses a spelling; `name` is the part before the point.
    pub fn new(namespace: Option<&str>, name: &str, overload: &str) -> OpName {
        let mut op = OpName {
            namespace: namespace.map(str::to_owned),
            base: name.to_owned(),
            overload: overload.to_owned(),
            inplace: false,
            dunder: false,
            functional_overload: false,
        };
        let inner = name.strip_prefix("__").and_then(|rest| rest.strip_suffix("__"));
        if let Some(inner) = inner.filter(|inner| !inner.is_empty()) {
            op.dunder = true;
            let augmented = inner.strip_prefix('i').filter(|_| !BEGIN_WITH_I.contains(&name));
            op.inplace = augmented.is_some();
            op.base = augmented.unwrap_or(inner).to_owned();
        } else if let Some(base) = name.strip_suffix('_').filter(|base| !base.is_empty()) {
            op.inplace = true;
            op.base = base.to_owned();
        } else if let Some(base) = name.strip_suffix("_functional").filter(|base| !base.is_empty()) {
            op.functional_overload = true;
            op.base = base.to_owned();
        }
        op
    }

    /// The spelling without namespace and overload: `add_`.
    pub fn spelling(&self) -> String {
        let OpName { base, .. } = self;
        match (self.dunder, self.inplace, self.functional_overload) {
            (true, true, _) => format!("__i{base}__"),
            (true, false, _) => format!("__{base}__"),
            (false, true, _) => format!("{base}_"),
            (false, false, true) => format!("{base}_functional"),
            (false, false, false) => base.clone(),
        }
    }
}

impl fmt::Display for OpName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}::")?;
        }
        f.write_str(&self.spelling())?;
        if !self.overload.is_empty() {
            write!(f, ".{}", self.overload)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::OpName;

    #[test]
    fn spelling_is_taken_apart_and_put_together() {
        let cases = [
            ("add", "add", false, false, false),
            ("add_", "add", true, false, false),
            ("__iadd__", "add", true, true, false),
            ("__and__", "and", false, true, false),
            ("__index__", "index", false, true, false),
            ("step_functional", "step", false, false, true),
            ("_foo_", "_foo", true, false, false),
        ];
        for (name, base, inplace, dunder, functional) in cases {
            let op = OpName::new(None, name, "");
            assert_eq!((op.base.as_str(), op.inplace, op.dunder), (base, inplace, dunder), "{name}");
            assert_eq!(op.functional_overload, functional, "{name}");
            assert_eq!(op.to_string(), name);
        }
        assert_eq!(OpName::new(Some("my"), "add_", "Tensor").to_string(), "my::add_.Tensor");
    }
}
