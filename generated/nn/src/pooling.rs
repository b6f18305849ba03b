//! Pooling over one, two and three dimensions.

use opsmith::{
    AvgPool1dOptions, AvgPool2dOptions, AvgPool3dOptions, MaxPool1dOptions, MaxPool2dOptions,
    MaxPool3dOptions, Result, Tensor, TensorOps,
};

use crate::config::config;
use crate::module;
use crate::module::Layer;
use crate::per_axis::PerAxis;

config! {
    /// Options of [`MaxPool`]. Lengths are a number for all axes or an array.
    MaxPoolConfig<const N: usize> {
        /// Distance of neighbouring windows; by default the window, so that none overlap.
        stride: Option<[i64; N]> = None, set impl Into<PerAxis<N>> => Some(stride.into().0);
        /// Places at both ends of each axis that are smaller than any element; 0 by default.
        padding: [i64; N] = [0; N], set impl Into<PerAxis<N>> => padding.into().0;
        /// Distance of the elements of a window; 1 by default.
        dilation: [i64; N] = [1; N], set impl Into<PerAxis<N>> => dilation.into().0;
        /// Whether a last window may reach over the end; false by default.
        ceil_mode: bool = false;
    }
}

config! {
    /// Options of [`AvgPool`]. Lengths are a number for all axes or an array.
    AvgPoolConfig<const N: usize> {
        /// Distance of neighbouring windows; by default the window, so that none overlap.
        stride: Option<[i64; N]> = None, set impl Into<PerAxis<N>> => Some(stride.into().0);
        /// Zeros at both ends of each axis; 0 by default.
        padding: [i64; N] = [0; N], set impl Into<PerAxis<N>> => padding.into().0;
        /// Whether a last window may reach over the end; false by default.
        ceil_mode: bool = false;
        /// Whether those zeros count; true by default.
        count_include_pad: bool = true;
    }
}

/// The largest elements of windows over the last `N` dimensions: [`MaxPool1d`], [`MaxPool2d`], [`MaxPool3d`].
///
/// ```
/// use opsmith_nn::{Layer, MaxPool2d};
///
/// # fn main() -> opsmith::Result<()> {
/// assert_eq!(MaxPool2d::new(2).forward(&opsmith::ones([1, 3, 8, 6])?)?.shape(), [1, 3, 4, 3]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct MaxPool<const N: usize> {
    kernel: [i64; N],
    config: MaxPoolConfig<N>,
}

/// Means of windows over the last `N` dimensions: [`AvgPool1d`], [`AvgPool2d`], [`AvgPool3d`].
///
/// ```
/// use opsmith_nn::{AvgPool1d, Layer};
///
/// # fn main() -> opsmith::Result<()> {
/// assert_eq!(AvgPool1d::new(2).forward(&opsmith::ones([1, 3, 8])?)?.shape(), [1, 3, 4]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AvgPool<const N: usize> {
    kernel: [i64; N],
    config: AvgPoolConfig<N>,
}

/// Largest elements over the last dimension.
pub type MaxPool1d = MaxPool<1>;
/// Largest elements over the last two dimensions.
pub type MaxPool2d = MaxPool<2>;
/// Largest elements over the last three dimensions.
pub type MaxPool3d = MaxPool<3>;
/// Means over the last dimension.
pub type AvgPool1d = AvgPool<1>;
/// Means over the last two dimensions.
pub type AvgPool2d = AvgPool<2>;
/// Means over the last three dimensions.
pub type AvgPool3d = AvgPool<3>;

module!(<const N: usize> MaxPool<N> {});
module!(<const N: usize> AvgPool<N> {});

impl<const N: usize> MaxPool<N> {
    /// Windows that do not overlap.
    pub fn new(kernel: impl Into<PerAxis<N>>) -> Self {
        Self::new_with(kernel, MaxPoolConfig::new())
    }

    /// As [`MaxPool::new`], with options.
    pub fn new_with(kernel: impl Into<PerAxis<N>>, config: MaxPoolConfig<N>) -> Self {
        const { assert!(N >= 1 && N <= 3, "pooling has one to three dimensions") };
        MaxPool { kernel: kernel.into().0, config }
    }
}

impl<const N: usize> AvgPool<N> {
    /// Windows that do not overlap.
    pub fn new(kernel: impl Into<PerAxis<N>>) -> Self {
        Self::new_with(kernel, AvgPoolConfig::new())
    }

    /// As [`AvgPool::new`], with options.
    pub fn new_with(kernel: impl Into<PerAxis<N>>, config: AvgPoolConfig<N>) -> Self {
        const { assert!(N >= 1 && N <= 3, "pooling has one to three dimensions") };
        AvgPool { kernel: kernel.into().0, config }
    }
}

impl<const N: usize> Layer for MaxPool<N> {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let MaxPoolConfig { stride, padding, dilation, ceil_mode } = &self.config;
        macro_rules! options {
            ($options:ident) => {
                $options::new()
                    .stride(stride.unwrap_or(self.kernel))
                    .padding(padding)
                    .dilation(dilation)
                    .ceil_mode(*ceil_mode)
            };
        }
        match N {
            1 => input.max_pool1d_with(self.kernel, options!(MaxPool1dOptions)),
            2 => input.max_pool2d_with(self.kernel, options!(MaxPool2dOptions)),
            _ => input.max_pool3d_with(self.kernel, options!(MaxPool3dOptions)),
        }
    }
}

impl<const N: usize> Layer for AvgPool<N> {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let AvgPoolConfig { stride, padding, ceil_mode, count_include_pad } = &self.config;
        macro_rules! options {
            ($options:ident) => {
                $options::new()
                    .stride(stride.unwrap_or(self.kernel))
                    .padding(padding)
                    .ceil_mode(*ceil_mode)
                    .count_include_pad(*count_include_pad)
            };
        }
        match N {
            1 => input.avg_pool1d_with(self.kernel, options!(AvgPool1dOptions)),
            2 => input.avg_pool2d_with(self.kernel, options!(AvgPool2dOptions)),
            _ => input.avg_pool3d_with(self.kernel, options!(AvgPool3dOptions)),
        }
    }
}

macro_rules! adaptive {
    ($(#[$doc:meta])* $name:ident, $one:ident, $two:ident, $three:ident, $input:ident, $sizes:ident => $calls:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<const N: usize> {
            sizes: [i64; N],
        }

        #[doc = concat!("[`", stringify!($name), "`] over the last dimension.")]
        pub type $one = $name<1>;
        #[doc = concat!("[`", stringify!($name), "`] over the last two dimensions.")]
        pub type $two = $name<2>;
        #[doc = concat!("[`", stringify!($name), "`] over the last three dimensions.")]
        pub type $three = $name<3>;

        module!(<const N: usize> $name<N> {});

        impl<const N: usize> $name<N> {
            /// A layer whose results have the given sizes.
            pub fn new(sizes: impl Into<PerAxis<N>>) -> Self {
                const { assert!(N >= 1 && N <= 3, "pooling has one to three dimensions") };
                Self { sizes: sizes.into().0 }
            }
        }

        impl<const N: usize> Layer for $name<N> {
            fn forward(&self, $input: &Tensor) -> Result<Tensor> {
                let $sizes = self.sizes;
                $calls
            }
        }
    };
}

adaptive! {
    /// Means of parts that cover the last `N` dimensions, as equal as they can be, and as many as given.
    ///
    /// ```
    /// use opsmith_nn::{AdaptiveAvgPool2d, Layer};
    ///
    /// # fn main() -> opsmith::Result<()> {
    /// let pooled = AdaptiveAvgPool2d::new(1).forward(&opsmith::ones([2, 3, 7, 5])?)?;
    /// assert_eq!(pooled.shape(), [2, 3, 1, 1]);
    /// # Ok(())
    /// # }
    /// ```
    AdaptiveAvgPool, AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d, input, sizes => match N {
        1 => input.adaptive_avg_pool1d(sizes),
        2 => input.adaptive_avg_pool2d(sizes),
        _ => input.adaptive_avg_pool3d(sizes),
    }
}

adaptive! {
    /// The largest elements of parts that cover the last `N` dimensions, as equal as they can be, and as many as given.
    ///
    /// ```
    /// use opsmith_nn::{AdaptiveMaxPool1d, Layer};
    ///
    /// # fn main() -> opsmith::Result<()> {
    /// let x = opsmith::Tensor::from_slice(&[1.0f32, 3.0, 2.0, 0.0], &[1, 1, 4])?;
    /// assert_eq!(AdaptiveMaxPool1d::new(2).forward(&x)?.to_vec::<f32>()?, [3.0, 2.0]);
    /// # Ok(())
    /// # }
    /// ```
    AdaptiveMaxPool, AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d, input, sizes => Ok(match N {
        1 => input.adaptive_max_pool1d(sizes)?,
        2 => input.adaptive_max_pool2d(sizes)?,
        _ => input.adaptive_max_pool3d(sizes)?,
    }.0)
}
