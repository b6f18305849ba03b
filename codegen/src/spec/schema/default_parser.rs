//! Default values: parsing, and checks against the argument's type.

use opsmith_core::{DType, MemoryFormat};

use super::lexer::TokenKind;
use super::parser::Parser;
use super::{ArgumentDefault, BaseType, DefaultValue, INT_CONSTANTS, Type};
use crate::diagnostics::{Reported, catalogue, nearest};

/// Deeper lists are not a default but an attack on the stack.
const MAX_DEPTH: usize = 8;

const LAYOUTS: &[&str] = &["strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"];

impl Parser<'_> {
    /// The value after `=`, which must fit `ty` if `fits` is set.
    pub(super) fn default(&mut self, ty: &Type, name: &str, fits: bool) -> Result<ArgumentDefault, Reported> {
        let start = self.range().start;
        if self.at_item_end() {
            let equals = self.previous_end();
            let range = equals - 1..equals;
            return Err(self.report(range, |span| catalogue::default_missing(span, name)));
        }
        let value = self.default_value(0)?;
        let range = start..self.previous_end();
        let text = self.text[range.clone()].to_owned();
        if let DefaultValue::Ident(name) = &value
            && let Some(meant) = python_spelling(name)
        {
            self.report(range.clone(), |span| catalogue::default_spelling(span, name, meant));
        } else if fits
            && self.at_item_end()
            && let Some(misfit) = misfit(ty, &value)
        {
            let expected = expected_default(ty);
            let shown = ty.to_string();
            self.report(range.clone(), |span| match misfit {
                Misfit::None => catalogue::default_none(span, &shown),
                Misfit::Kind { is_item, found } => {
                    catalogue::default_of_wrong_kind(span, &shown, &text, (is_item, found), &expected)
                }
                Misfit::Length { wanted, found } => catalogue::default_length(span, &shown, wanted, found),
                Misfit::Name(known) => {
                    let ty = ty.without_optional().to_string();
                    catalogue::default_name_unknown(span, &ty, &text, &known)
                }
            });
        }
        Ok(ArgumentDefault { value, text, range })
    }

    fn default_value(&mut self, depth: usize) -> Result<DefaultValue, Reported> {
        let range = self.range();
        let word = self.word();
        let value = match self.peek() {
            TokenKind::Ident => Some(match word {
                "None" => DefaultValue::None,
                "True" => DefaultValue::Bool(true),
                "False" => DefaultValue::Bool(false),
                "inf" => DefaultValue::Float(f64::INFINITY),
                "nan" => DefaultValue::Float(f64::NAN),
                _ => DefaultValue::Ident(word.to_owned()),
            }),
            TokenKind::Number => number(word),
            TokenKind::Str { closed: true } => Some(DefaultValue::Str(unescape(&word[1..word.len() - 1]))),
            TokenKind::Str { closed: false } => {
                return Err(self.report(range, catalogue::string_not_closed));
            }
            TokenKind::Char('[') if depth < MAX_DEPTH => return self.default_list(depth),
            TokenKind::Char('-') => {
                self.bump();
                (self.word() == "inf").then_some(DefaultValue::Float(f64::NEG_INFINITY))
            }
            _ => None,
        };
        let Some(value) = value else {
            let written = word.to_owned();
            return Err(self.report(range, |span| catalogue::default_malformed(span, &written)));
        };
        self.bump();
        Ok(value)
    }

    /// `[a, b]`, from the bracket on.
    fn default_list(&mut self, depth: usize) -> Result<DefaultValue, Reported> {
        self.bump();
        let mut items = Vec::new();
        if self.eat(TokenKind::Char(']')) {
            return Ok(DefaultValue::List(items));
        }
        loop {
            items.push(self.default_value(depth + 1)?);
            if self.eat(TokenKind::Char(']')) {
                return Ok(DefaultValue::List(items));
            }
            if !self.eat(TokenKind::Char(',')) {
                return Err(self.unexpected("`,` or `]`"));
            }
        }
    }
}

/// The constant for a name of another language.
fn python_spelling(name: &str) -> Option<&'static str> {
    match name.to_ascii_lowercase().as_str() {
        "none" | "null" | "nullopt" | "nil" => Some("None"),
        "true" => Some("True"),
        "false" => Some("False"),
        _ => None,
    }
}

/// An integer, or a float if it has a point or an exponent.
fn number(text: &str) -> Option<DefaultValue> {
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        return text.parse().ok().map(DefaultValue::Int);
    }
    let float: f64 = text.parse().ok()?;
    float.is_finite().then_some(DefaultValue::Float(float))
}

/// The text a quoted string stands for.
fn unescape(quoted: &str) -> String {
    let mut text = String::with_capacity(quoted.len());
    let mut chars = quoted.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some(other) => text.push(other),
                None => {}
            },
            other => text.push(other),
        }
    }
    text
}

/// The reason why a default does not fit.
enum Misfit {
    /// `None` for an argument that is not optional.
    None,
    /// Another kind of value: of the whole, or of an item of a list.
    Kind { is_item: bool, found: &'static str },
    /// A list of another length.
    Length { wanted: u32, found: usize },
    /// A name that is not among these.
    Name(Vec<&'static str>),
}

impl Misfit {
    /// The same reason, for an item of a list.
    fn of_item(self) -> Misfit {
        match self {
            Misfit::Kind { found, .. } => Misfit::Kind { is_item: true, found },
            other => other,
        }
    }
}

fn other_kind(value: &DefaultValue) -> Misfit {
    Misfit::Kind { is_item: false, found: value.kind() }
}

/// The reason why `value` is not a value of `ty`; `None` if it is one.
fn misfit(ty: &Type, value: &DefaultValue) -> Option<Misfit> {
    match (ty, value) {
        (Type::Optional(_), DefaultValue::None) => None,
        (Type::Optional(inner), value) => misfit(inner, value),
        // The placeholder of a type with mistakes accepts any default.
        (Type::Class(path), _) if path.is_empty() => None,
        (_, DefaultValue::None) => Some(Misfit::None),
        (Type::Class(_), value) => Some(other_kind(value)),
        (Type::List(item, length), DefaultValue::List(items)) => {
            let misfits = items.iter().find_map(|value| misfit(item, value)).map(Misfit::of_item);
            // `T[1]` is a list of any length that may be given as one `T`. An empty list with another declared length
            // means "as another argument says".
            let wanted = length.filter(|&n| n > 1 && !items.is_empty() && items.len() != n as usize);
            misfits.or_else(|| wanted.map(|wanted| Misfit::Length { wanted, found: items.len() }))
        }
        // One value is a list of equal ones.
        (Type::List(item, Some(_)), value) => misfit(item, value),
        (Type::List(_, None), value) => Some(other_kind(value)),
        (Type::Base(base), value) => base_misfit(*base, value),
    }
}

fn base_misfit(base: BaseType, value: &DefaultValue) -> Option<Misfit> {
    use BaseType as B;
    use DefaultValue as V;
    let known =
        |name: &str, names: Vec<&'static str>| (!names.contains(&name)).then_some(Misfit::Name(names));
    match (base, value) {
        (B::Int | B::SymInt | B::DeviceIndex, V::Int(_))
        | (B::Float, V::Int(_) | V::Float(_))
        | (B::Scalar, V::Int(_) | V::Float(_) | V::Bool(_))
        | (B::Bool | B::SymBool, V::Bool(_))
        | (B::Str | B::Device, V::Str(_)) => None,
        (B::Int | B::SymInt, V::Ident(name)) => {
            // `true` for an integer is more likely a `bool` than a misspelt `Mean`.
            let names: Vec<_> = INT_CONSTANTS.iter().map(|(name, _)| *name).collect();
            match names.contains(&name.as_str()) || nearest(name, names.iter().copied()).is_some() {
                true => known(name, names),
                false => Some(other_kind(value)),
            }
        }
        (B::ScalarType, V::Ident(name)) if DType::from_name(name).is_some() => None,
        (B::ScalarType, V::Ident(_)) => Some(Misfit::Name(DType::ALL.iter().map(|d| d.name()).collect())),
        (B::MemoryFormat, V::Ident(name)) => known(name, MemoryFormat::NAMES.map(|(name, _)| name).to_vec()),
        (B::Layout, V::Ident(name)) => known(name, LAYOUTS.to_vec()),
        (B::Device, V::Ident(name)) => known(name, vec!["cpu", "cuda"]),
        _ => Some(other_kind(value)),
    }
}

/// An example of a default of that type.
fn expected_default(ty: &Type) -> String {
    let one = match ty.base() {
        Some(BaseType::Int | BaseType::SymInt | BaseType::DeviceIndex) => "an integer such as `1`",
        Some(BaseType::Float) => "a number such as `0.5`",
        Some(BaseType::Scalar) => "a number such as `1`",
        Some(BaseType::Bool | BaseType::SymBool) => "`True` or `False`",
        Some(BaseType::Str) => "a quoted string such as `\"mean\"`",
        Some(BaseType::ScalarType) => "a dtype such as `float32`",
        Some(BaseType::MemoryFormat) => "a memory format such as `contiguous_format`",
        Some(BaseType::Layout) => "a layout such as `strided`",
        Some(BaseType::Device) => "a quoted device such as `\"cpu\"`",
        _ if ty.is_optional() => return "`None`".to_owned(),
        _ => return format!("`None`, and make the type `{ty}?`"),
    };
    match ty.without_optional() {
        Type::List(row, None) if row.is_list_like() => {
            format!("a list of lists, such as `[[…], […]]`, each item {one}")
        }
        Type::List(_, None) => format!("a list in brackets, each item {one}"),
        Type::List(_, Some(_)) => format!("a list in brackets or one item, each {one}"),
        _ => one.to_owned(),
    }
}
