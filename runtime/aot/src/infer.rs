//! Shapes and dtypes of outputs, from a declaration or from the kernel's library.
//!
//! In: shapes, of which sizes (−1) or the number of dimensions (−2) may be unknown, dtypes, attributes.
//! Out: those of the outputs. Nothing runs and nothing is allocated for it. Must not know tensors.

use std::ffi::c_int;
use std::fmt;
use std::sync::Arc;

use opsmith_core::DType;
use opsmith_runtime::error::{Error, Result, ShapeText};
use opsmith_runtime::layout::Dims;

use super::attributes::{AttrValue, Attributes};
use super::dtypes;
use super::extra::Extra;
use super::instance::{Arrays, Slot, failed};
use super::library::Library;
use super::signature::Signature;

/// A size that is not known.
pub const UNKNOWN_DIM: i64 = opsmith_runtime::internals::UNKNOWN_DIM;
/// The only entry of a shape whose number of dimensions is not known.
pub const UNKNOWN_RANK: i64 = opsmith_runtime::internals::UNKNOWN_RANK;

/// The arguments of a function that computes shapes or dtypes.
pub struct InferCall<'a> {
    pub(super) inputs: &'a [Slot],
    pub(super) attributes: &'a Attributes,
}

impl InferCall<'_> {
    /// How many inputs there are; of a list, each tensor counts.
    pub fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Whether there are no inputs.
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty()
    }

    /// The sizes of an input. In inference before anything runs a size may be [`UNKNOWN_DIM`], and a shape
    /// may be `[UNKNOWN_RANK]`.
    ///
    /// # Errors
    /// If there is no such input.
    pub fn shape(&self, input: usize) -> Result<&[i64]> {
        Ok(&self.slot(input)?.sizes)
    }

    /// The dtype of an input; `None` if it is absent.
    ///
    /// # Errors
    /// If there is no such input.
    pub fn dtype(&self, input: usize) -> Result<Option<DType>> {
        Ok(self.slot(input)?.dtype)
    }

    /// The value of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&AttrValue> {
        self.attributes.get(name)
    }

    fn slot(&self, input: usize) -> Result<&Slot> {
        self.inputs.get(input).ok_or_else(|| {
            Error::index(format!("there is no input {input}; the kernel has {}", self.inputs.len()))
        })
    }
}

/// Computes the shapes of all outputs.
pub type ShapeFn = dyn Fn(&InferCall<'_>) -> Result<Vec<Vec<i64>>> + Send + Sync;
/// Computes the dtypes of all outputs.
pub type DTypeFn = dyn Fn(&InferCall<'_>) -> Result<Vec<DType>> + Send + Sync;

/// Where the shapes of outputs come from.
#[derive(Clone, Default)]
pub(super) enum OutputShapes {
    /// `FInferShape` of the library.
    #[default]
    Library,
    Constant(Vec<Vec<i64>>),
    Computed(Arc<ShapeFn>),
}

/// Where the dtypes of outputs come from.
#[derive(Clone, Default)]
pub(super) enum OutputDTypes {
    /// The combination of dtypes, if it says them; else `FInferType` of the library.
    #[default]
    Library,
    Constant(Vec<DType>),
    Computed(Arc<DTypeFn>),
}

/// Infers outputs for one kernel.
pub(super) struct Inference<'a> {
    pub signature: &'a Signature,
    pub function: &'a str,
    pub shapes: &'a OutputShapes,
    pub dtypes: &'a OutputDTypes,
}

impl Inference<'_> {
    /// Shape and dtype of each output. `inputs` are as the kernel sees them.
    ///
    /// # Errors
    /// If neither a declaration nor the library has them, or their function fails or gives nonsense.
    pub fn outputs(
        &self,
        inputs: &[Slot],
        attributes: &Attributes,
        library: &mut dyn FnMut() -> Result<Arc<Library>>,
    ) -> Result<Vec<Slot>> {
        let context = InferCall { inputs, attributes };
        let shapes = match self.shapes {
            OutputShapes::Constant(shapes) => shapes.clone(),
            OutputShapes::Computed(compute) => compute(&context)?,
            OutputShapes::Library => self.shapes_of_library(&context, &*library()?)?,
        };
        let symbolic = inputs.iter().any(|slot| slot.sizes.iter().any(|size| *size < 0));
        for shape in &shapes {
            check_shape(self.function, shape, symbolic)?;
        }
        let count = shapes.len();
        if !self.signature.dynamic_output && count != self.signature.outputs.len() {
            return Err(Error::kernel(format!(
                "inference gave {count} shapes for the {} outputs of `{}`",
                self.signature.outputs.len(),
                self.function
            )));
        }
        let dtypes = self.dtypes(&context, count, library)?;
        if dtypes.len() != count {
            return Err(Error::kernel(format!(
                "inference gave {} dtypes for {count} outputs of `{}`",
                dtypes.len(),
                self.function
            )));
        }
        let slot = |(sizes, dtype)| Slot { dtype: Some(dtype), sizes: Dims::from_vec(sizes) };
        Ok(shapes.into_iter().zip(dtypes).map(slot).collect())
    }

    fn dtypes(
        &self,
        context: &InferCall<'_>,
        count: usize,
        library: &mut dyn FnMut() -> Result<Arc<Library>>,
    ) -> Result<Vec<DType>> {
        match self.dtypes {
            OutputDTypes::Constant(dtypes) if self.signature.dynamic_output && dtypes.len() == 1 => {
                return Ok(vec![dtypes[0]; count]);
            }
            OutputDTypes::Constant(dtypes) => return Ok(dtypes.clone()),
            OutputDTypes::Computed(compute) => return compute(context),
            OutputDTypes::Library => {}
        }
        let given: Vec<Option<DType>> = context.inputs.iter().map(|slot| slot.dtype).collect();
        if let Some(row) = self.signature.select(&given)? {
            let outputs: Option<Vec<DType>> = row[self.signature.inputs.len()..].iter().copied().collect();
            match outputs.as_deref() {
                Some(&[only]) if self.signature.dynamic_output => return Ok(vec![only; count]),
                Some(dtypes) => return Ok(dtypes.to_vec()),
                None => {}
            }
        }
        self.dtypes_of_library(context, &*library()?)
    }

    fn shapes_of_library(&self, context: &InferCall<'_>, library: &Library) -> Result<Vec<Vec<i64>>> {
        let Some(infer) = library.infer_shape else {
            return Err(missing(library, &format!("{}InferShape", self.function), "shape", "output_shape"));
        };
        let mut arrays = Arrays::of(context.inputs);
        // Another object than the kernel's: the data that inference leaves in it is destroyed with it.
        let mut extra = Extra::new(context.attributes.clone(), library.names());
        let several = self.signature.infers_lists();
        // SAFETY: the arrays have an entry for each input, and live for the call. The function's type depends on whether
        // it has several outputs; the interface says so, and nothing else is known of it.
        let result = unsafe { extra.infer_shape(library, infer, several, arrays.pointers()) };
        result.map_err(|failure| failed(&failure, &format!("{}InferShape", self.function), &library.source))
    }

    fn dtypes_of_library(&self, context: &InferCall<'_>, library: &Library) -> Result<Vec<DType>> {
        let name = format!("{}InferType", self.function);
        // Absent inputs have the number of "none".
        let ids =
            context.inputs.iter().map(|slot| slot.dtype.map_or(0, dtypes::type_id)).collect::<Vec<c_int>>();
        let Some(infer) = library.infer_type else {
            return Err(missing(library, &name, "dtype", "output_dtype"));
        };
        let mut extra = Extra::new(context.attributes.clone(), library.names());
        // SAFETY: the function's type depends on whether it has several outputs; the interface says so.
        let result = unsafe { extra.infer_type(library, infer, self.signature.infers_lists(), &ids) };
        let ids = result.map_err(|failure| failed(&failure, &name, &library.source))?;
        let dtype = |id: c_int| {
            dtypes::of_type_id(id).ok_or_else(|| {
                Error::dtype(format!(
                    "`{name}` ({}) gave the type number {id}, which no tensor here can have",
                    library.source.display()
                ))
            })
        };
        ids.into_iter().map(dtype).collect()
    }
}

/// Refuses a list that is no shape; sizes may be unknown only where some of the inputs' are.
pub(super) fn check_shape(function: &str, shape: &[i64], symbolic: bool) -> Result<()> {
    let unknown_rank = shape == [UNKNOWN_RANK];
    let least = if symbolic { UNKNOWN_DIM } else { 0 };
    if symbolic && unknown_rank || shape.iter().all(|size| *size >= least) {
        return Ok(());
    }
    Err(Error::shape(format!("inference for `{function}` gave the shape {}", ShapeText(shape))).with_help(
        if symbolic {
            "sizes are 0 or more, -1 if unknown; [-2] is a shape of unknown rank"
        } else {
            "all inputs are known, so every size must be 0 or more"
        },
    ))
}

#[cold]
fn missing(library: &Library, name: &str, what: &str, method: &str) -> Error {
    let declaration = match what {
        "shape" => {
            format!("extern \"C\" std::vector<int64_t> {name}(int *ndims, int64_t **shapes, AotExtra *extra)")
        }
        _ => format!("extern \"C\" TypeId {name}(std::vector<TypeId> dtypes, AotExtra *extra)"),
    };
    Error::not_found(format!(
        "nothing says the {what} of the outputs: there is no function `{name}` in {}",
        library.source.display()
    ))
    .with_help(format!("add `{declaration}` to the source, or declare the {what} with `{method}`"))
}

impl fmt::Debug for OutputShapes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OutputShapes::Library => f.write_str("Library"),
            OutputShapes::Constant(shapes) => f.debug_tuple("Constant").field(shapes).finish(),
            OutputShapes::Computed(_) => f.write_str("Computed"),
        }
    }
}
