//! `attributes`: constraints on the values of arguments.
//!
//! In: the constraints as written and the argument's type. Out: checked constraints, which become checks at run time,
//! documents and tests. A default that violates its own constraints is a mistake.

use std::borrow::Cow;

use opsmith_core::constraint::{Constraint, Literal, describe};

use super::Context;
use super::types;
use crate::analysis::naming;
use crate::diagnostics::{Span, catalogue};
use crate::model::{Default, Kind, Ty};
use crate::spec::document::keys::KeyName;
use crate::spec::document::{RawOp, constraints};
use crate::spec::schema::Schema;
use crate::spec::yaml::Node;

/// The constraints of one argument and their span.
pub(super) struct Written {
    pub name: String,
    pub place: Span,
    pub constraints: Vec<Constraint>,
}

/// `attributes: {p: {min: 0, max: 1}}`
pub(super) fn lower(context: &mut Context<'_>, raw: &RawOp, schema: &Schema) -> Vec<Written> {
    let Some(node) = raw.get(KeyName::Attributes) else { return Vec::new() };
    let Some(entries) = node.as_map() else {
        context.push(catalogue::not_a_mapping(node.span, "attributes", "{p: {min: 0, max: 1}}"));
        return Vec::new();
    };
    let mut written = Vec::new();
    for (key, value) in entries {
        let Some(arg) = schema.arg(&key.text) else {
            let known: Vec<&str> = schema.args.iter().map(|arg| arg.name.as_str()).collect();
            context.push(catalogue::argument_unknown(key.span, &schema.name.to_string(), &key.text, &known));
            continue;
        };
        // A type that the runtime lacks is reported with the argument.
        let Some(ty) = types::of_signature(&arg.ty) else { continue };
        let Some(pairs) = value.as_map() else {
            context.push(catalogue::constraints_not_mapping(value.span, &key.text));
            continue;
        };
        let mut reader = Reader { context: &mut *context, name: &key.text, ty: &ty };
        let constraints: Vec<Constraint> =
            pairs.iter().filter_map(|(key, value)| reader.constraint(&key.text, key.span, value)).collect();
        if constraints.len() == pairs.len() && nothing_fits(&constraints) {
            let words = describe(&constraints, ty.is_list());
            context.push(catalogue::constraints_empty(value.span, &key.text, &words));
        }
        written.push(Written { name: key.text.clone(), place: value.span, constraints });
    }
    written
}

/// Reports a default that violates the argument's constraints.
pub(super) fn check_default(
    context: &mut Context<'_>,
    default: &Default,
    (place, ty): (Span, &Ty),
    written: &Written,
) {
    let fits = |value: Literal| written.constraints.iter().all(|constraint| constraint.allows(&value));
    let fits_len = |len: usize| written.constraints.iter().all(|constraint| constraint.allows_len(len));
    // The length constraint is for the whole list; all others are for each item, of each row if there are rows.
    let length = if let Default::List(items) = default { fits_len(items.len()) } else { true };
    let mut fine = length;
    default.for_each_item(&mut |item| {
        fine &= match item {
            Default::Int(value) => fits(Literal::Int(*value)),
            Default::Float(value) => fits(Literal::Float(*value)),
            Default::Str(text) => fits(Literal::Str(Cow::Owned(text.clone()))),
            _ => true,
        }
    });
    if !fine {
        let words = describe(&written.constraints, ty.is_list());
        context.push(catalogue::default_refused(place, written.place, &written.name, &words));
    }
}

/// The kind of one item: of each row, for a list of lists.
fn innermost(ty: &Ty) -> Kind {
    match ty.kind.item() {
        Some(item) => innermost(&item),
        None => ty.kind.clone(),
    }
}

struct Reader<'a, 'b> {
    context: &'a mut Context<'b>,
    name: &'a str,
    ty: &'a Ty,
}

impl Reader<'_, '_> {
    fn constraint(&mut self, key: &str, place: Span, value: &Node) -> Option<Constraint> {
        let item = innermost(self.ty);
        let is_integer = item == Kind::Int;
        let is_number = is_integer || matches!(item, Kind::Float | Kind::Scalar);
        match key {
            "min" | "max" | "above" | "below" => {
                self.fits(key, place, is_number, "numbers and lists of them")?;
                let limit = self.number(key, value)?;
                Some(match key {
                    "min" => Constraint::Min(limit),
                    "max" => Constraint::Max(limit),
                    "above" => Constraint::Above(limit),
                    _ => Constraint::Below(limit),
                })
            }
            "one_of" => {
                let fits = is_number || item == Kind::Str;
                self.fits(key, place, fits, "numbers and text")?;
                self.choices(key, value).map(|choices| Constraint::OneOf(Cow::Owned(choices)))
            }
            "multiple_of" => {
                self.fits(key, place, is_integer, "integers and lists of them")?;
                let step = integer(value).filter(|step| *step > 0);
                self.or_refuse(step, value.span, key, "a positive integer").map(Constraint::MultipleOf)
            }
            "enum" => {
                self.fits(key, place, self.ty.kind == Kind::Int, "integers")?;
                self.names(key, value).map(|names| Constraint::Named(Cow::Owned(names)))
            }
            "len" => {
                self.fits(key, place, self.ty.is_list(), "lists")?;
                let items = value.as_seq().unwrap_or(std::slice::from_ref(value));
                let lengths: Option<Vec<u32>> = items.iter().map(length).collect();
                let lengths = lengths.filter(|lengths| !lengths.is_empty());
                let lengths = self.or_refuse(lengths, value.span, key, "a length or a list of them")?;
                Some(Constraint::Len(Cow::Owned(lengths)))
            }
            "min_len" => {
                self.fits(key, place, self.ty.is_list(), "lists")?;
                self.or_refuse(length(value), value.span, key, "a length").map(Constraint::MinLen)
            }
            unknown => {
                self.context.push(catalogue::constraint_unknown(
                    place,
                    unknown,
                    constraints::constraint_synonym(unknown),
                    &constraints::CONSTRAINTS,
                ));
                None
            }
        }
    }

    /// Reports a constraint that is for other types.
    fn fits(&mut self, key: &str, place: Span, fits: bool, wants: &str) -> Option<()> {
        if !fits {
            let ty = self.ty.to_string();
            self.context.push(catalogue::constraint_misfit(place, key, self.name, &ty, wants));
        }
        fits.then_some(())
    }

    fn or_refuse<T>(&mut self, value: Option<T>, place: Span, key: &str, wants: &str) -> Option<T> {
        if value.is_none() {
            self.context.push(catalogue::constraint_value(place, key, wants));
        }
        value
    }

    /// A number comparable with the argument's type.
    fn number(&mut self, key: &str, node: &Node) -> Option<Literal> {
        let int = integer(node).map(Literal::Int);
        match innermost(self.ty) {
            Kind::Int => self.or_refuse(int, node.span, key, "an integer"),
            _ => {
                let float =
                    || node.as_text()?.parse().ok().filter(|value: &f64| !value.is_nan()).map(Literal::Float);
                self.or_refuse(int.or_else(float), node.span, key, "a number")
            }
        }
    }

    fn choices(&mut self, key: &str, node: &Node) -> Option<Vec<Literal>> {
        let items = node.as_seq().filter(|items| !items.is_empty());
        let items = self.or_refuse(items, node.span, key, "a list of values")?;
        let mut choices: Vec<(Literal, Span)> = Vec::new();
        for item in items {
            let choice = match (innermost(self.ty), item.as_text()) {
                (Kind::Str, Some(text)) => Literal::Str(Cow::Owned(text.to_owned())),
                (Kind::Str, None) => return self.or_refuse(None, item.span, key, "text"),
                _ => self.number(key, item)?,
            };
            if let Some((_, first)) = choices.iter().find(|(known, _)| *known == choice) {
                let text = item.as_text().unwrap_or_default();
                self.context.push(catalogue::constraint_value_twice(item.span, key, text, *first));
                return None;
            }
            choices.push((choice, item.span));
        }
        Some(choices.into_iter().map(|(choice, _)| choice).collect())
    }

    fn names(&mut self, key: &str, node: &Node) -> Option<Vec<(Cow<'static, str>, i64)>> {
        const WANTS: &str = "a mapping from names to integers";
        let entries = node.as_map().filter(|entries| !entries.is_empty());
        let entries = self.or_refuse(entries, node.span, key, WANTS)?;
        let mut names: Vec<(Cow<'static, str>, i64, Span)> = Vec::new();
        for (name, node) in entries {
            if !is_word(&name.text) {
                self.context.push(catalogue::enum_name(name.span, &name.text));
                return None;
            }
            let value = self.or_refuse(integer(node), node.span, key, WANTS)?;
            let spelling = naming::camel(&name.text);
            let same =
                names.iter().find(|(known, number, _)| *number == value || naming::camel(known) == spelling);
            if let Some((_, _, first)) = same {
                let (place, text) = (name.span, name.text.as_str());
                self.context.push(catalogue::constraint_value_twice(place, key, text, *first));
                return None;
            }
            names.push((Cow::Owned(name.text.clone()), value, name.span));
        }
        Some(names.into_iter().map(|(name, value, _)| (name, value)).collect())
    }
}

fn integer(node: &Node) -> Option<i64> {
    node.as_text()?.parse().ok()
}

fn length(node: &Node) -> Option<u32> {
    node.as_text()?.parse().ok()
}

/// Whether a text is a word that becomes the variant of an enum.
pub(super) fn is_word(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// Whether two bounds exclude every value, or no choice is within the bounds.
fn nothing_fits(constraints: &[Constraint]) -> bool {
    let all = |value: &Literal| constraints.iter().all(|constraint| constraint.allows(value));
    let choices = constraints.iter().find_map(|constraint| match constraint {
        Constraint::OneOf(choices) => Some(choices.to_vec()),
        Constraint::Named(names) => Some(names.iter().map(|(_, value)| Literal::Int(*value)).collect()),
        _ => None,
    });
    if let Some(choices) = choices {
        return !choices.iter().any(all);
    }
    let lengths = constraints.iter().find_map(|constraint| match constraint {
        Constraint::Len(lengths) => Some(lengths.to_vec()),
        _ => None,
    });
    let fits_len = |len: &u32| constraints.iter().all(|constraint| constraint.allows_len(*len as usize));
    if lengths.is_some_and(|lengths| !lengths.iter().any(fits_len)) {
        return true;
    }
    // Between two bounds, the lower one or a value just above it is valid.
    let lower = constraints.iter().find_map(|constraint| match constraint {
        Constraint::Min(limit) => Some((limit, false)),
        Constraint::Above(limit) => Some((limit, true)),
        _ => None,
    });
    let upper = constraints.iter().find_map(|constraint| match constraint {
        Constraint::Max(limit) => Some((limit, false)),
        Constraint::Below(limit) => Some((limit, true)),
        _ => None,
    });
    match (lower, upper) {
        (Some((low, open_low)), Some((high, open_high))) => match (low.number(), high.number()) {
            (Some(low), Some(high)) => low > high || (low == high && (open_low || open_high)),
            _ => false,
        },
        _ => false,
    }
}
