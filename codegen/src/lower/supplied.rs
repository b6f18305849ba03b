//! `supplied`, `origin` and the entries of `declarations`: operators computed by another project.

use super::Context;
use crate::diagnostics::catalogue;
use crate::model::{Kind, Note, Supplied, SuppliedKernel, Ty};
use crate::spec::document::RawOp;
use crate::spec::document::keys::KeyName;
use crate::spec::schema::{Schema, SchemaKind, Type};
use crate::spec::yaml::{Node, NodeKind};

const EXAMPLE: &str = "{add.out: {CUDA: add_stub}}";

/// Whether another project computes an entry; its signature may then use types that this project lacks.
pub(super) fn is_supplied(raw: &RawOp) -> bool {
    raw.declared || raw.entry(KeyName::Supplied).is_some()
}

pub(super) fn head(raw: &RawOp, schema: &Schema) -> Option<Supplied> {
    is_supplied(raw).then(|| Supplied {
        kernels: Vec::new(),
        declared: raw.declared,
        writes: schema.kind() != SchemaKind::Functional,
    })
}

/// The type of another project in a signature.
pub(super) fn foreign(raw: &RawOp, ty: &Type) -> Option<Ty> {
    is_supplied(raw).then(|| Ty::new(Kind::Foreign(ty.to_string())))
}

/// `supplied: {add.Tensor: {CPU: add_stub}, add.out: {CPU: add_out_stub}}`
pub(super) fn lower(
    context: &mut Context<'_>,
    raw: &RawOp,
    schema: &Schema,
    mut supplied: Supplied,
    forms: &[Option<String>; 3],
) -> Supplied {
    let Some(node) = raw.get(KeyName::Supplied) else { return supplied };
    let Some(entries) = node.as_map() else {
        context.push(catalogue::not_a_mapping(node.span, "supplied", EXAMPLE));
        return supplied;
    };
    for (form, kernels) in entries {
        if !forms.iter().flatten().any(|name| *name == form.text) {
            let known: Vec<&str> = forms.iter().flatten().map(String::as_str).collect();
            context.push(catalogue::supplied_form(form.span, &schema.name.to_string(), &form.text, &known));
            continue;
        }
        let Some(kernels) = kernels.as_map() else {
            context.push(catalogue::not_a_mapping(kernels.span, "supplied", EXAMPLE));
            continue;
        };
        for (backend, function) in kernels {
            match function.as_text() {
                Some(text) => supplied.kernels.push(SuppliedKernel {
                    form: form.text.clone(),
                    backend: backend.text.clone(),
                    function: text.to_owned(),
                }),
                None => context.push(catalogue::nested_not_text(function.span, "supplied", EXAMPLE)),
            }
        }
    }
    supplied
}

/// `origin`, any value.
pub(super) fn origin(raw: &RawOp) -> Option<Note> {
    raw.get(KeyName::Origin).map(note)
}

/// A value as it was written. Recursion is as deep as the file's tree, which is limited.
pub fn note(node: &Node) -> Note {
    match &node.kind {
        NodeKind::Null | NodeKind::Broken => Note::Null,
        NodeKind::Scalar(scalar) => Note::Text(scalar.text.clone()),
        NodeKind::Seq(items) => Note::List(items.iter().map(note).collect()),
        NodeKind::Map(entries) => {
            Note::Map(entries.iter().map(|(key, value)| (key.text.clone(), note(value))).collect())
        }
    }
}
