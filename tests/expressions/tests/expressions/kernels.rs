//! The Rust functions that `fixed.yaml` names: kernels and scalar functions.

/// Kernels without derivatives, or with results that have none.
pub mod norm {
    use opsmith::{Element, Result, View, ViewMut};

    fn numbers<T: Element>(x: &View<'_, T>) -> Vec<f64> {
        x.to_contiguous().iter().map(|x| x.to_scalar().to_f64()).collect()
    }

    /// A vector over its quadratic mean, and the reciprocal of that.
    pub fn rms<T: Element>(x: View<'_, T>, mut out: ViewMut<'_, T>, mut rstd: ViewMut<'_, T>) -> Result<()> {
        let x = numbers(&x);
        let mean = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
        let reciprocal = 1.0 / mean.sqrt();
        out.write(x.iter().map(|x| T::from_scalar((x * reciprocal).into())))?;
        rstd.write([T::from_scalar(reciprocal.into())])
    }

    /// The squares of elements, and 1.
    pub fn copied<T: Element>(
        x: View<'_, T>,
        mut out: ViewMut<'_, T>,
        mut one: ViewMut<'_, T>,
    ) -> Result<()> {
        out.write(numbers(&x).iter().map(|x| T::from_scalar((x * x).into())))?;
        one.write([T::from_scalar(1.0.into())])
    }

    /// The elements.
    pub fn first<T: Element>(x: View<'_, T>, mut out: ViewMut<'_, T>) -> Result<()> {
        out.write(x.to_contiguous().iter().copied())
    }

    /// The products of elements.
    pub fn product<T: Element>(x: View<'_, T>, y: View<'_, T>, mut out: ViewMut<'_, T>) -> Result<()> {
        let products = numbers(&x).into_iter().zip(numbers(&y)).map(|(x, y)| T::from_scalar((x * y).into()));
        out.write(products)
    }
}

/// Scalar functions.
pub mod scalar {
    use opsmith::runtime::arith::Arithmetic;

    /// A placeholder for a function without a derivative.
    pub fn steps<T: Arithmetic>(x: T) -> T {
        x
    }
}
