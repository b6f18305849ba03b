//! Types of signatures to types of the model.

use crate::model::{ItemKind, Kind, Ty};
use crate::spec::schema::{BaseType, Type};

/// The type of an argument or result of a signature; `None` if the runtime has no such type.
pub fn of_signature(ty: &Type) -> Option<Ty> {
    Some(match ty {
        Type::Base(base) => Ty::new(match base {
            BaseType::Tensor => Kind::Tensor,
            BaseType::Scalar => Kind::Scalar,
            BaseType::Int | BaseType::SymInt | BaseType::DeviceIndex => Kind::Int,
            BaseType::Float => Kind::Float,
            BaseType::Bool | BaseType::SymBool => Kind::Bool,
            BaseType::Str => Kind::Str,
            BaseType::ScalarType => Kind::DType,
            BaseType::Device => Kind::Device,
            BaseType::Layout => Kind::MemoryLayout,
            BaseType::MemoryFormat => Kind::MemoryFormat,
            BaseType::Generator => Kind::Generator,
            BaseType::DimVector => Kind::Ints(None),
            BaseType::QScheme | BaseType::Storage | BaseType::Stream | BaseType::GraphModule => {
                return None;
            }
        }),
        Type::Optional(inner) => of_signature(inner)?.or_none(),
        Type::List(inner, length) => {
            let inner = of_signature(inner)?;
            Ty::new(match (inner.kind, inner.optional) {
                (Kind::Tensor, false) => Kind::Tensors,
                (Kind::Tensor, true) => Kind::OptionalTensors,
                (Kind::Int, false) => Kind::Ints(*length),
                (Kind::Float, false) => Kind::Floats,
                (Kind::Bool, false) => Kind::Bools(*length),
                (Kind::Scalar, false) => Kind::Scalars,
                (Kind::Str, false) if length.is_none() => Kind::Strs,
                (Kind::DType, false) if length.is_none() => Kind::DTypes,
                // Lengths of rows are declared as constraints.
                (kind, false) if length.is_none() => {
                    let row = kind.argument()?;
                    Kind::Lists(*ItemKind::ALL.iter().find(|item| item.list() == row)?)
                }
                _ => return None,
            })
        }
        Type::Class(_) => return None,
    })
}
