//! The forms of an operator and their names.

use super::Context;
use crate::diagnostics::{Diagnostic, nearest};
use crate::model::{Arg, Forms, Output};
use crate::spec::document::RawOp;
use crate::spec::schema::Schema;

const FORMS: [&str; 3] = ["functional", "inplace", "out"];

pub(super) fn lower(
    context: &mut Context<'_>,
    raw: &RawOp,
    schema: &Schema,
    args: &[Arg],
    outputs: &[Output],
) -> Forms {
    let mut forms = Forms::default();
    for text in raw.texts("variants") {
        for word in text.as_str().split(',').map(str::trim) {
            match word {
                "functional" => {}
                "inplace" => {
                    let fits = args.first().is_some_and(|arg| arg.ty.is_tensor())
                        && matches!(outputs, [only] if only.ty.is_tensor());
                    if !fits {
                        context.diagnostics.push(
                            Diagnostic::error("E0411", format!("`{}` cannot have an in-place form", schema.name), text.span(), "not possible")
                                .with_help("an in-place form writes its one result into the first argument, which must be a tensor"),
                        );
                    }
                    forms.inplace =
                        Some(name(&format!("{}_", schema.name.spelling()), &schema.name.overload));
                }
                "out" => {
                    let fits = !outputs.is_empty() && outputs.iter().all(|output| output.ty.is_tensor());
                    if !fits {
                        context.diagnostics.push(
                            Diagnostic::error(
                                "E0411",
                                format!("`{}` cannot have an out form", schema.name),
                                text.span(),
                                "not possible",
                            )
                            .with_help(
                                "an out form writes into given tensors; every result must be one tensor",
                            ),
                        );
                    }
                    let overload = match schema.name.overload.as_str() {
                        "" => "out".to_owned(),
                        overload => format!("{overload}_out"),
                    };
                    forms.out = Some(name(&schema.name.spelling(), &overload));
                }
                unknown => {
                    let help = match nearest(unknown, FORMS) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("the forms are: {}", FORMS.join(", ")),
                    };
                    context.diagnostics.push(
                        Diagnostic::error(
                            "E0412",
                            format!("there is no form `{unknown}`"),
                            text.span(),
                            "unknown form",
                        )
                        .with_help(help),
                    );
                }
            }
        }
    }
    for (key, value) in raw.text_map("names") {
        let slot = match key.text.as_str() {
            "inplace" => &mut forms.inplace,
            "out" => &mut forms.out,
            _ => {
                context.diagnostics.push(
                    Diagnostic::error(
                        "E0412",
                        format!("the form `{}` has no name of its own", key.text),
                        key.span,
                        "not a form",
                    )
                    .with_help("name `inplace` or `out`"),
                );
                continue;
            }
        };
        if slot.is_none() {
            context.diagnostics.push(
                Diagnostic::error(
                    "E0413",
                    format!("there is no {} form to name", key.text),
                    key.span,
                    "not generated",
                )
                .with_help(format!("add `{}` to `variants`", key.text)),
            );
        }
        *slot = Some(value.as_str().to_owned());
    }
    forms
}

fn name(base: &str, overload: &str) -> String {
    if overload.is_empty() { base.to_owned() } else { format!("{base}.{overload}") }
}

/// The Rust function of an operator without `rust_name`: the base name, with the overload added
/// unless it is the plain one for tensors.
pub(super) fn rust_name(schema: &Schema) -> String {
    let base = schema.name.spelling();
    let overload = schema.name.overload.to_lowercase();
    match overload.as_str() {
        "" | "tensor" | "self" | "default" if !is_keyword(&base) => base,
        "" => format!("{base}_"),
        overload => format!("{base}_{overload}"),
    }
}

fn is_keyword(name: &str) -> bool {
    syn::parse_str::<syn::Ident>(name).is_err()
}
