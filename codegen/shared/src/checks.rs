//! The checks of every operator with a derivative, by their names in a spec, and the errors that they allow.

use std::borrow::Cow;

use crate::DType;

/// A generated check of an operator's derivatives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Check {
    /// Gradients against differences in `float64`.
    Gradient,
    /// Gradients against differences in `complex128`.
    Complex,
    /// Gradients of gradients against differences.
    SecondOrder,
    /// Tangents of forward mode against the gradients of reverse mode.
    ForwardMode,
    /// Inputs and cotangents that are not row-major, or show one element at several places.
    Strided,
    /// Inputs without elements.
    Empty,
    /// Outputs of which only one has a gradient.
    Undefined,
    /// The in-place form against the functional one.
    Inplace,
    /// Gradients in narrower dtypes against those in `float64`.
    Precision,
}

/// The error that tests allow an operator.
#[derive(Clone, PartialEq, Debug)]
pub struct Tolerance {
    /// Where it is allowed.
    pub of: ToleranceOf,
    /// The relative error that is allowed; `None` if the check is skipped.
    pub allow: Option<f64>,
    /// Why.
    pub reason: Cow<'static, str>,
}

impl Tolerance {
    /// A row of static data.
    pub const fn of(of: ToleranceOf, allow: Option<f64>, reason: &'static str) -> Tolerance {
        Tolerance { of, allow, reason: Cow::Borrowed(reason) }
    }
}

/// Where a tolerance holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ToleranceOf {
    /// In checks of precision, for one dtype.
    DType(DType),
    /// In one check.
    Check(Check),
}

impl Check {
    /// Every check.
    pub const ALL: [Check; 9] = [
        Check::Gradient,
        Check::Complex,
        Check::SecondOrder,
        Check::ForwardMode,
        Check::Strided,
        Check::Empty,
        Check::Undefined,
        Check::Inplace,
        Check::Precision,
    ];

    /// The name in `tolerance:`.
    pub const fn name(self) -> &'static str {
        match self {
            Check::Gradient => "gradient",
            Check::Complex => "complex",
            Check::SecondOrder => "second_order",
            Check::ForwardMode => "forward_mode",
            Check::Strided => "strided",
            Check::Empty => "no_elements",
            Check::Undefined => "undefined",
            Check::Inplace => "inplace",
            Check::Precision => "precision",
        }
    }

    /// The check of that name.
    pub fn from_name(name: &str) -> Option<Check> {
        Self::ALL.into_iter().find(|check| check.name() == name)
    }
}
