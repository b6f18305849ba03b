//! Attributes of nodes.
//!
//! In: messages. Out: values, of which blocks are lowered by `lower`.

use bytes::Bytes;
use opsmith_runtime::error::Result;

use crate::errors::{damaged, unsupported};
use crate::model::Attribute;
use crate::proto::{AttributeProto, attribute_kind as kind};
use crate::tensors::Reader;

/// The value of an attribute that is no block.
///
/// # Errors
/// If it is damaged, or of a kind that no operator here takes.
pub(crate) fn value(message: &AttributeProto, reader: &Reader) -> Result<Attribute> {
    let place = || format!("the attribute `{}`", message.name);
    Ok(match message.kind {
        // Zeros may be left out.
        kind::FLOAT => Attribute::Float(f64::from(message.f.unwrap_or(0.0))),
        kind::INT => Attribute::Int(message.i.unwrap_or(0)),
        kind::STRING => Attribute::Text(text(message.s.as_ref().unwrap_or(&Bytes::new()), &place())?),
        kind::TENSOR => match &message.t {
            Some(tensor) => Attribute::Tensor(reader.tensor(tensor)?),
            None => return Err(damaged(&place(), "its tensor is missing")),
        },
        kind::GRAPH => return Err(damaged(&place(), "its graph is missing")),
        kind::FLOATS => Attribute::Floats(message.floats.iter().map(|number| f64::from(*number)).collect()),
        kind::INTS => Attribute::Ints(message.ints.clone()),
        kind::STRINGS => {
            Attribute::Texts(message.strings.iter().map(|each| text(each, &place())).collect::<Result<_>>()?)
        }
        other => return Err(unsupported(format!("{}, of kind {other},", place()))),
    })
}

fn text(bytes: &Bytes, place: &str) -> Result<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| damaged(place, "its text is no UTF-8"))
}
