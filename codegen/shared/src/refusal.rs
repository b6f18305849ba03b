//! The operators that frameworks of functional operators cannot have.
//!
//! In: facts of an operator, from its entry or its definition. Out: the reason, as users read it.

/// The facts that decide whether a framework can call an operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BridgeFacts<'a> {
    /// Whether only formulas of gradients call it.
    pub is_backward: bool,
    /// Whether all results are tensors or lists of them, and there is one.
    pub gives_tensors: bool,
    /// Whether a result may share memory with an argument.
    pub is_view: bool,
    /// Whether an argument is a tensor or a list of them.
    pub takes_tensors: bool,
    /// Whether it draws random numbers.
    pub is_random: bool,
    /// An argument whose elements determine shapes or dtypes of results.
    pub read_argument: Option<&'a str>,
    /// Whether a result may be absent.
    pub may_lack_results: bool,
    /// Whether sizes of results are known after a run only, and inference does not name them.
    pub has_unnamed_sizes: bool,
    /// Whether results have elements of four bits.
    pub gives_four_bits: bool,
    /// An argument of a type that no framework has.
    pub foreign_argument: Option<&'a str>,
}

impl BridgeFacts<'_> {
    /// The reason for which a framework cannot have the operator; `None` if it can. With `views`, a result may share memory with an
    /// argument, since nothing is written there.
    pub fn refusal(&self, views: bool) -> Option<String> {
        let reason = if self.is_backward {
            "only formulas of gradients call it"
        } else if !self.gives_tensors {
            "its results are no tensors"
        } else if self.is_view && !views {
            "its result shares memory with an argument"
        } else if !self.takes_tensors {
            "no argument is a tensor, by which a framework chooses the device"
        } else if self.is_random {
            "it draws random numbers, which the framework's own seed would not determine"
        } else if let Some(name) = self.read_argument {
            return Some(format!("elements of {name} determine shapes of its results"));
        } else if self.may_lack_results {
            "a result may be absent"
        } else if self.has_unnamed_sizes {
            "sizes of its results depend on elements inside of a composition"
        } else if self.gives_four_bits {
            "its results are integers of four bits, which frameworks do not take over"
        } else if let Some(name) = self.foreign_argument {
            return Some(format!("the type of {name} has no value in the C interface"));
        } else {
            return None;
        };
        Some(reason.to_owned())
    }
}
