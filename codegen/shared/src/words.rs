//! The documentation of an operator beside the text of its entry, as its generated functions and other documents show it.
//!
//! In: nothing. Out: plain data. The generator writes the sentences; nothing here knows a spec.

use std::borrow::Cow;

use crate::DType;

/// Lines of Markdown, an item each.
pub type Markdown = Cow<'static, str>;

/// The sentences about an operator. Names and formulas are those of the spec.
#[derive(Clone, PartialEq, Debug)]
pub struct Words {
    /// Its meaning as a formula: the lines of the entry's, the expression of an element, or the composition of other operators.
    /// Lines of a formula that has several begin with [`Words::PART`], below their title.
    pub definition: Markdown,
    /// A line for each argument: its meaning and remarks; an empty one if nothing says it.
    pub arguments: Markdown,
    /// A line for each result that callers get: its meaning, the rules of its shape and dtype.
    pub results: Markdown,
    /// A line for each gradient formula, or the source of gradients.
    pub gradients: Markdown,
    /// A line for each condition whose violation is an error.
    pub errors: Markdown,
    /// The program in the documentation of its function; none of an operator without samples, or of a spec that was loaded.
    pub example: Option<ExampleCall>,
}

/// A program that calls an operator, with the values that it has.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ExampleCall {
    /// The program in Rust, without imports.
    pub code: &'static str,
    /// The number of the sample that has the values of the arguments that are not tensors.
    pub sample: usize,
    /// The tensors, in the order of the arguments.
    pub tensors: &'static [ExampleTensor],
}

/// A tensor of a program.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ExampleTensor {
    /// Its dtype.
    pub dtype: DType,
    /// Its sizes.
    pub shape: &'static [i64],
    /// Its elements in row-major order; those of complex numbers have half of each as imaginary part.
    pub numbers: &'static [f64],
}

impl Words {
    /// The beginning of a line that is a part of the item above it.
    pub const PART: &'static str = "  ";

    /// Sentences of static data: definition, arguments, results, gradients, errors.
    pub const fn of(texts: [&'static str; 5], example: Option<ExampleCall>) -> Words {
        let [definition, arguments, results, gradients, errors] = texts;
        Words {
            definition: Cow::Borrowed(definition),
            arguments: Cow::Borrowed(arguments),
            results: Cow::Borrowed(results),
            gradients: Cow::Borrowed(gradients),
            errors: Cow::Borrowed(errors),
            example,
        }
    }
}
