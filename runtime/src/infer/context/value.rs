//! Elements of inputs that inference asks for.
//!
//! In: an input declared in `value_depends`. Out: its elements, where they are known. Must not know the rule that asks.

use opsmith_core::DType;

use super::{InferContext, Key};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::facts::ValueUse;
use crate::tensor::Tensor;
use crate::view::View;

impl InferContext<'_> {
    /// The elements of an input if it is a constant, as one declared `value_depends: required` always is.
    ///
    /// # Errors
    /// If the input is not declared in `value_depends`, is absent, or has elements of another type.
    pub fn value<'k, T: Element>(&self, key: impl Into<Key<'k>>) -> Result<Option<Vec<T>>> {
        self.known::<T>(key.into())?.map(Tensor::to_vec::<T>).transpose()
    }

    /// The result of a function of an input's elements, as [`InferContext::value`] has them, where they lie.
    ///
    /// # Errors
    /// As [`InferContext::value`].
    pub fn with_value<'k, T: Element, R>(
        &self,
        key: impl Into<Key<'k>>,
        read: impl FnOnce(View<'_, T>) -> R,
    ) -> Result<Option<R>> {
        self.known::<T>(key.into())?.map(|value| value.with_view(read)).transpose()
    }

    /// The tensor whose elements are those of an input, if they are known.
    fn known<T: Element>(&self, key: Key<'_>) -> Result<Option<&Tensor>> {
        let at = self.find(key, true)?;
        let def = &self.op.schema.args[at];
        if def.value == ValueUse::None {
            return Err(Error::value(format!(
                "the elements of `{}` are asked for, and they need not be known when results are inferred",
                def.name
            ))
            .with_help(format!("declare `value_depends: {{{}: required}}`, or `optional`", def.name)));
        }
        let meta = self.input(def.name)?;
        if meta.dtype != T::DTYPE {
            return Err(Error::dtype(format!(
                "`{}` holds {}, its elements are asked for as {}",
                def.name,
                meta.dtype,
                T::DTYPE
            ))
            .with_help("ask for the type that it holds"));
        }
        match &meta.value {
            None if def.value == ValueUse::Required => Err(crate::infer::value_unknown(def.name)),
            value => Ok(value.as_ref()),
        }
    }

    /// Number of true elements of a mask, a `bool` or `uint8` tensor in a list input, if they are known.
    ///
    /// # Errors
    /// As [`InferContext::variadic_input`]; if the input is not declared in `value_depends`, or there is no mask.
    pub fn mask_count<'k>(&self, key: impl Into<Key<'k>>, position: usize) -> Result<Option<i64>> {
        let at = self.find(key.into(), true)?;
        let def = &self.op.schema.args[at];
        let meta = self.variadic_input(def.name, position)?;
        let Some(meta) = meta.filter(|meta| def.value.counts(meta.dtype)) else {
            return Err(Error::value(format!("`{}[{position}]` is no mask whose elements decide", def.name))
                .with_help(format!("declare `value_depends: {{{}: masks}}`", def.name)));
        };
        let Some(value) = &meta.value else { return Ok(None) };
        let count = match value.dtype() {
            DType::Bool => value.to_vec::<bool>()?.into_iter().filter(|held| *held).count(),
            DType::U8 => value.to_vec::<u8>()?.into_iter().filter(|held| *held != 0).count(),
            other => return Err(Error::dtype(format!("a mask is bool or uint8, not {other}"))),
        };
        Ok(Some(count as i64))
    }
}
