//! Run-time errors: data first, sentence second.
//!
//! The function that finds a mistake provides the message and a remedy; the dispatcher adds the called operator and its
//! operands.

use std::borrow::Cow;
use std::fmt;

use opsmith_core::DType;

/// The result of every operator.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an [`Error`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Incompatible shapes.
    Shape,
    /// An element type that is not supported or does not match.
    DType,
    /// A tensor on the wrong device.
    Device,
    /// An index or dimension out of range.
    Index,
    /// An attribute whose value is not allowed.
    Value,
    /// The wrong number or type of arguments in a call by name.
    Argument,
    /// More memory than the system has.
    Memory,
    /// Memory shared where a kernel does not support it.
    Aliasing,
    /// A mistake in differentiation.
    Autograd,
    /// An unknown name.
    NotFound,
    /// A kernel or derivative that does not exist.
    NotImplemented,
    /// A file that cannot be read or written.
    Io,
    /// A failure reported by a kernel outside the project.
    Kernel,
    /// A function that cannot become a graph, or a graph whose arguments do not fit.
    Graph,
}

/// One tensor operand of the call that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ErrorOperand {
    /// The argument's name in the signature, with its position if it is a list: `tensors[1]`.
    pub name: String,
    /// Its element type.
    pub dtype: DType,
    /// Its shape; −1 for a symbolic size, and −2 alone for an unknown rank.
    pub shape: Vec<i64>,
    /// Its shape as text, where sizes are formulas: `(batch, 4)`.
    pub formulas: Option<String>,
}

/// An error of the runtime.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Data>);

#[derive(Clone, PartialEq, Eq)]
struct Data {
    kind: ErrorKind,
    op: Option<Cow<'static, str>>,
    operands: Vec<ErrorOperand>,
    message: String,
    notes: Vec<String>,
    help: Option<String>,
    cause: Cause,
}

/// The causes of errors that other code has to tell from the rest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// Elements were asked for that exist only when a graph runs.
    LackOfElements,
    /// Inference gave a kernel an output of another shape than its result has.
    Inference,
    /// A graph was run at sizes at which its function makes other calls.
    OtherSizes,
    Other,
}

impl Error {
    /// An error of the given kind; `message` describes the mistake.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error(Box::new(Data {
            kind,
            op: None,
            operands: Vec::new(),
            message: message.into(),
            notes: Vec::new(),
            help: None,
            cause: Cause::Other,
        }))
    }

    /// An error of kind [`ErrorKind::Graph`]: a traced function needs elements that exist only when its graph runs.
    pub fn without_elements(message: impl Into<String>) -> Error {
        let mut error = Error::new(ErrorKind::Graph, message);
        error.0.cause = Cause::LackOfElements;
        error
    }

    /// An error of kind [`ErrorKind::Shape`] for kernels: an output has another shape than the result. It is a mistake of the
    /// operator's entry, whose inference or checks let the call pass.
    pub fn of_inference(output: &[i64], result: &[i64]) -> Error {
        let mut error = Error::shape(format!(
            "the kernel was given an output of the shape {}, its result has {}",
            ShapeText(output),
            ShapeText(result)
        ));
        error.0.cause = Cause::Inference;
        error.with_help("the operator's shape inference and its kernel disagree")
    }

    /// An error of kind [`ErrorKind::Graph`]: a graph is run at sizes that it was not made for, at which its function makes other
    /// calls, or may.
    pub fn of_other_sizes(message: impl Into<String>) -> Error {
        let mut error = Error::new(ErrorKind::Graph, message);
        error.0.cause = Cause::OtherSizes;
        error
    }

    /// Adds a remedy.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Error {
        self.0.help = Some(help.into());
        self
    }

    /// Adds a location, from the inside out: "in the gradient of an argument".
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Error {
        self.0.notes.push(note.into());
        self
    }

    /// Adds the operator and its operands, unless an inner call already did.
    #[must_use]
    pub fn in_op(mut self, op: impl Into<Cow<'static, str>>, operands: Vec<ErrorOperand>) -> Error {
        if self.0.op.is_none() {
            self.0.op = Some(op.into());
            self.0.operands = operands;
        }
        self
    }

    /// The kind of mistake.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Whether a traced function needs elements that exist only when its graph runs, so that the same calls succeed outside of
    /// a trace.
    pub fn lacks_elements(&self) -> bool {
        self.0.cause == Cause::LackOfElements
    }

    /// Whether inference gave a kernel an output of another shape than its result has.
    pub fn is_of_inference(&self) -> bool {
        self.0.cause == Cause::Inference
    }

    /// Whether a graph was run at sizes that it was not made for, so that its function has to be traced again at these.
    pub fn is_of_other_sizes(&self) -> bool {
        self.0.cause == Cause::OtherSizes
    }

    /// The operator that was called, e.g. `mm`.
    pub fn op(&self) -> Option<&str> {
        self.0.op.as_deref()
    }

    /// The tensor operands of the call.
    pub fn operands(&self) -> &[ErrorOperand] {
        &self.0.operands
    }

    /// The mistake, without operator and operands.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The locations, from the inside out.
    pub fn notes(&self) -> &[String] {
        &self.0.notes
    }

    /// The remedy.
    pub fn help(&self) -> Option<&str> {
        self.0.help.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Data { op, operands, message, notes, help, .. } = &*self.0;
        if let Some(op) = op {
            write!(f, "{op}: ")?;
        }
        f.write_str(message)?;
        for operand in operands {
            write!(f, "\n  {}: {} ", operand.name, operand.dtype)?;
            match &operand.formulas {
                Some(formulas) => f.write_str(formulas)?,
                None => write!(f, "{}", ShapeText(&operand.shape))?,
            }
        }
        for note in notes {
            write!(f, "\n  {note}")?;
        }
        if let Some(help) = help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `main` prints a returned error with Debug; users need the sentence there too.
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

/// Prints a shape as `(2, 3)`, a scalar's as `()`; with `{:#}` a single size as a tuple of one, `(3,)`.
pub struct ShapeText<'a>(pub &'a [i64]);

impl fmt::Display for ShapeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (position, size) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{size}")?;
        }
        f.write_str(if f.alternate() && self.0.len() == 1 { ",)" } else { ")" })
    }
}

macro_rules! constructors {
    ($($name:ident => $kind:ident),* $(,)?) => {$(
        #[doc = concat!("An error of kind [`ErrorKind::", stringify!($kind), "`].")]
        pub fn $name(message: impl Into<String>) -> Error {
            Error::new(ErrorKind::$kind, message)
        }
    )*};
}

impl Error {
    constructors! {
        shape => Shape, dtype => DType, device => Device, index => Index, value => Value,
        argument => Argument, memory => Memory, aliasing => Aliasing, autograd => Autograd, not_found => NotFound,
        not_implemented => NotImplemented, io => Io, kernel => Kernel, graph => Graph,
    }
}
