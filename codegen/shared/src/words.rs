//! The documentation of an operator beside the text of its entry, as its generated functions and other documents show it.
//!
//! In: nothing. Out: plain data. The generator writes the sentences; nothing here knows a spec.

use std::borrow::Cow;

/// Lines of Markdown, an item each.
pub type Markdown = Cow<'static, str>;

/// The sentences about an operator. Names and formulas are those of the spec.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Words {
    /// Its meaning as a formula: the expression of an element, or the composition of other operators.
    pub definition: Markdown,
    /// A line for each argument: its meaning and remarks; an empty one if nothing says it.
    pub arguments: Markdown,
    /// A line for each result that callers get: its meaning, the rules of its shape and dtype.
    pub results: Markdown,
    /// A line for each gradient formula, or the source of gradients.
    pub gradients: Markdown,
    /// A line for each condition whose violation is an error.
    pub errors: Markdown,
}

impl Words {
    /// Sentences of static data: definition, arguments, results, gradients, errors.
    pub const fn of(texts: [&'static str; 5]) -> Words {
        let [definition, arguments, results, gradients, errors] = texts;
        Words {
            definition: Cow::Borrowed(definition),
            arguments: Cow::Borrowed(arguments),
            results: Cow::Borrowed(results),
            gradients: Cow::Borrowed(gradients),
            errors: Cow::Borrowed(errors),
        }
    }
}
