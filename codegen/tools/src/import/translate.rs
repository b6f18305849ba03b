//! C++ formulas to formulas of the spec language.
//!
//! In: a tree, and its signature. Out: text, whose names and types the checker then resolves. An expression without a
//! counterpart is an error with the reason.
//!
//! Must not name operators: rules are about C++ conventions (`_symint`, `x.f_()` on a temporary value, the bundle of
//! options) and about metadata queries (`sym_sizes()`).

mod words;

use std::collections::HashMap;

use super::cpp::{Cpp, Name};
use opsmith_codegen::model::expr::QUERIES;
use opsmith_codegen::spec::schema::{BaseType, Schema, Type};

/// Signatures by base name, as in formulas.
pub(super) struct Operators<'s> {
    by_base: HashMap<String, Vec<&'s Schema>>,
}

impl<'s> Operators<'s> {
    /// Indexes signatures by name.
    pub fn new(schemas: impl Iterator<Item = &'s Schema>) -> Operators<'s> {
        let mut by_base: HashMap<String, Vec<&Schema>> = HashMap::new();
        for schema in schemas {
            by_base.entry(schema.name.spelling()).or_default().push(schema);
        }
        Operators { by_base }
    }

    fn overloads(&self, name: &str) -> &[&'s Schema] {
        self.by_base.get(name).map_or(&[], Vec::as_slice)
    }

    fn has(&self, name: &str) -> bool {
        self.by_base.contains_key(name)
    }
}

/// The names that a formula may refer to.
pub(super) struct Translator<'a> {
    pub operators: &'a Operators<'a>,
    /// The signature of the entry.
    pub schema: &'a Schema,
}

/// A piece of translated text.
struct Piece {
    text: String,
    /// Its binding strength: 0 for a conditional, 10 for a name or a call.
    level: u8,
    /// Facts about its type.
    hint: Hint,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hint {
    /// A tensor that is present.
    Tensor,
    /// A tensor or another value that may be absent.
    Optional,
    /// A value of another kind.
    Plain,
    Unknown,
}

const ATOM: u8 = 10;
const UNARY: u8 = 9;
const CHOICE: u8 = 0;

type Translated = Result<Piece, String>;

impl Piece {
    fn atom(text: impl Into<String>, hint: Hint) -> Piece {
        Piece { text: text.into(), level: ATOM, hint }
    }

    /// Adds brackets if it binds less tightly than its context requires.
    fn at(self, level: u8) -> String {
        if self.level < level { format!("({})", self.text) } else { self.text }
    }

    /// The piece as a value that is present.
    fn present(self) -> Piece {
        match self.hint {
            Hint::Optional => Piece::atom(format!("{}.unwrap()", self.at(ATOM)), Hint::Unknown),
            _ => self,
        }
    }
}

impl Translator<'_> {
    /// The formula in the spec language.
    pub fn translate(&self, tree: &Cpp) -> Result<String, String> {
        Ok(self.piece(tree)?.text)
    }

    fn piece(&self, tree: &Cpp) -> Translated {
        match tree {
            Cpp::Name(name) => self.name(name),
            Cpp::Number(text) => Ok(Piece::atom(words::number(text), Hint::Plain)),
            Cpp::Text(text) => Ok(Piece::atom(format!("\"{text}\""), Hint::Plain)),
            Cpp::Call(name, arguments) => self.call(name, arguments),
            Cpp::Construct(name, items) => self.construct(name, items),
            Cpp::Member { base, arrow, name, arguments } => {
                self.member(base, *arrow, name, arguments.as_deref())
            }
            Cpp::Index(base, position) => {
                let hint = match &**base {
                    Cpp::Name(name) if name.last() == "grads" && !self.returns_list() => Hint::Optional,
                    _ => Hint::Unknown,
                };
                let (base, position) = (self.piece(base)?.present().at(ATOM), self.piece(position)?.text);
                Ok(Piece::atom(format!("{base}[{position}]"), hint))
            }
            Cpp::Unary('*', operand) => {
                let operand = self.piece(operand)?.at(ATOM);
                Ok(Piece::atom(format!("{operand}.unwrap()"), Hint::Unknown))
            }
            Cpp::Unary('!', operand) => {
                let operand = self.condition(operand)?;
                Ok(Piece { text: format!("!{}", operand.at(UNARY)), level: UNARY, hint: Hint::Plain })
            }
            Cpp::Unary(sign, operand) => {
                let operand = self.piece(operand)?.present();
                let hint = operand.hint;
                Ok(Piece { text: format!("{sign}{}", operand.at(UNARY)), level: UNARY, hint })
            }
            Cpp::Binary(symbol, left, right) => self.binary(symbol, left, right),
            Cpp::Choice(condition, yes, no) => {
                let condition = self.condition(condition)?.text;
                let (yes, no) = (self.piece(yes)?.text, self.piece(no)?.text);
                let text = format!("if {condition} {{ {yes} }} else {{ {no} }}");
                Ok(Piece { text, level: CHOICE, hint: Hint::Unknown })
            }
            Cpp::Braces(items) => self.list(items),
        }
    }

    fn binary(&self, symbol: &str, left: &Cpp, right: &Cpp) -> Translated {
        let level = words::level(symbol);
        let (left, right) = match symbol {
            "&&" | "||" => (self.condition(left)?, self.condition(right)?),
            _ => (self.piece(left)?.present(), self.piece(right)?.present()),
        };
        // Rust does not chain comparisons, and binds `&` more tightly than C++ does.
        let own = if matches!(level, 1 | 2 | 7 | 8) { level } else { UNARY };
        let right_level = if matches!(level, 1 | 2) { level } else { level + 1 };
        let right_level = if own == UNARY { UNARY } else { right_level };
        let text = format!("{} {symbol} {}", left.at(own.min(UNARY)), right.at(right_level));
        Ok(Piece { text, level, hint: Hint::Unknown })
    }

    /// A condition; for an optional value, whether it is present.
    fn condition(&self, tree: &Cpp) -> Translated {
        let piece = self.piece(tree)?;
        Ok(match piece.hint {
            Hint::Optional => Piece::atom(format!("{}.is_some()", piece.at(ATOM)), Hint::Plain),
            _ => piece,
        })
    }

    fn list(&self, items: &[Cpp]) -> Translated {
        let items: Vec<String> =
            items.iter().map(|item| Ok(self.piece(item)?.text)).collect::<Result<_, String>>()?;
        Ok(Piece::atom(format!("[{}]", items.join(", ")), Hint::Plain))
    }

    fn tuple(&self, items: &[Cpp]) -> Translated {
        let items: Vec<String> =
            items.iter().map(|item| Ok(self.piece(item)?.text)).collect::<Result<_, String>>()?;
        Ok(Piece::atom(format!("({})", items.join(", ")), Hint::Plain))
    }

    fn returns_list(&self) -> bool {
        matches!(self.schema.returns.as_slice(), [only] if only.ty.is_list_like())
    }

    fn name(&self, name: &Name) -> Translated {
        let last = name.last();
        if let [only] = name.path.as_slice() {
            if let Some(arg) = self.schema.arg(only) {
                return Ok(Piece::atom(only.as_str(), hint(&arg.ty)));
            }
            if let Some(hint) = self.gradient_name(only) {
                return Ok(Piece::atom(only.as_str(), hint));
            }
        }
        words::constant(name)
            .map(|text| Piece::atom(text, if text == "None" { Hint::Unknown } else { Hint::Plain }))
            .ok_or_else(|| {
                format!(
                    "`{}` is known to PyTorch's generated code only",
                    if name.path.len() > 1 { name.text() } else { last.to_owned() }
                )
            })
    }

    /// Names of gradients, tangents and results.
    fn gradient_name(&self, name: &str) -> Option<Hint> {
        let outputs = &self.schema.returns;
        let is_output = |name: &str| outputs.iter().any(|value| value.name.as_deref() == Some(name));
        let is_argument = |name: &str| self.schema.arg(name).is_some_and(|arg| arg.ty.is_tensor_like());
        let tangent = |suffix: &str| {
            name.strip_suffix(suffix).filter(|rest| is_argument(rest) || *rest == "result" || is_output(rest))
        };
        match name {
            "grad" | "result" => Some(Hint::Tensor),
            "grads" | "grad_input_mask" => Some(Hint::Plain),
            _ if is_output(name) => Some(Hint::Tensor),
            _ if name.strip_prefix("grad_").is_some_and(is_output) => Some(Hint::Optional),
            _ if tangent("_t").or_else(|| tangent("_p")).is_some() => Some(Hint::Unknown),
            _ => {
                let index: usize = name.strip_prefix("result")?.parse().ok()?;
                (index < outputs.len()).then_some(Hint::Tensor)
            }
        }
    }

    fn construct(&self, name: &Name, items: &[Cpp]) -> Translated {
        match name.last() {
            "tuple" => self.tuple(items),
            "vector" | "array" | "ArrayRef" | "IntArrayRef" | "TensorList" => self.list(items),
            "Tensor" | "optional" if items.is_empty() => Ok(Piece::atom("None", Hint::Unknown)),
            _ => Err(format!("`{}` has no counterpart", name.text())),
        }
    }

    fn call(&self, name: &Name, arguments: &[Cpp]) -> Translated {
        let one = || match arguments {
            [only] => self.piece(only),
            _ => Err(format!("`{}` of {} values", name.text(), arguments.len())),
        };
        let in_std = name.text().starts_with("std::");
        match name.last() {
            "not_implemented" | "not_implemented_list" => {
                let [Cpp::Text(reason), ..] = arguments else {
                    return Err("a refusal without a text".to_owned());
                };
                return Ok(Piece::atom(format!("not_implemented(\"{reason}\")"), Hint::Unknown));
            }
            "wrap_opt_if" => {
                let [value, condition] = arguments else {
                    return Err("`wrap_opt_if` takes two values".to_owned());
                };
                let (value, condition) = (self.piece(value)?.text, self.condition(condition)?.text);
                let text = format!("if {condition} {{ {value} }} else {{ None }}");
                return Ok(Piece { text, level: CHOICE, hint: Hint::Optional });
            }
            "get" if in_std => {
                let index = name.template.as_deref().unwrap_or_default();
                return Ok(Piece::atom(format!("{}[{index}]", one()?.at(ATOM)), Hint::Unknown));
            }
            "tuple" | "make_tuple" if in_std && arguments.is_empty() => {
                let count = name.template.as_deref().unwrap_or_default().split(',').count();
                return Ok(Piece::atom(format!("({})", vec!["None"; count].join(", ")), Hint::Plain));
            }
            "tuple" | "make_tuple" if in_std => return self.tuple(arguments),
            "vector" if in_std && arguments.is_empty() => return Ok(Piece::atom("[]", Hint::Plain)),
            "optional" | "Tensor" if arguments.is_empty() => return Ok(Piece::atom("None", Hint::Unknown)),
            "optional" | "Scalar" | "SymInt" | "static_cast" | "IntArrayRef" | "OptionalArrayRef"
            | "SymIntArrayRef" | "int64_t" | "double" => return one(),
            // The parts of the class, one by one.
            "TensorGeometry" => {
                let tensor = one()?.at(ATOM);
                let text = format!("{tensor}.sizes(), {tensor}.strides(), {tensor}.storage_offset()");
                return Ok(Piece::atom(text, Hint::Unknown));
            }
            _ => {}
        }
        if in_std || name.template.is_some() {
            return Err(format!("`{}` has no counterpart", name.text()));
        }
        let spelling = self.function(name);
        let arguments = self.arguments(&spelling, arguments, 0)?;
        Ok(Piece::atom(format!("{}({arguments})", words::callable(&spelling)), Hint::Tensor))
    }

    /// A function's name without C++ decorations.
    fn function(&self, name: &Name) -> String {
        let plain = |name: &str| name.strip_suffix("_symint").unwrap_or(name).to_owned();
        let last = plain(name.last());
        if self.operators.has(&last) || name.path.len() == 1 {
            return self.value_form(&last);
        }
        let own = name
            .path
            .iter()
            .filter(|part| !matches!(part.as_str(), "at" | "c10" | "torch" | "native" | "sparse"));
        plain(&own.cloned().collect::<Vec<_>>().join("_")).to_lowercase()
    }

    /// `f` for `f_`: the written value is a temporary, so no other code sees the write.
    fn value_form(&self, name: &str) -> String {
        match name.strip_suffix('_').filter(|base| self.operators.has(base)) {
            Some(base) => base.to_owned(),
            None => name.to_owned(),
        }
    }

    /// The arguments of a call, without `skip` of them that are passed separately.
    fn arguments(&self, callee: &str, arguments: &[Cpp], skip: usize) -> Result<String, String> {
        let overloads = self.operators.overloads(callee);
        let mut texts = Vec::new();
        for (position, argument) in arguments.iter().enumerate() {
            if let Some(tensor) = options_of(argument) {
                let tensor = self.piece(tensor)?.present().at(ATOM);
                let named =
                    if overloads.is_empty() { ["", "", ""] } else { ["dtype = ", "layout = ", "device = "] };
                let [dtype, layout, device] = named;
                texts.push(format!(
                    "{dtype}{tensor}.dtype(), {layout}{tensor}.layout(), {device}{tensor}.device()"
                ));
                continue;
            }
            let wants = |accepts: fn(&Type) -> bool| {
                let fits = |schema: &&&Schema| schema.args.len() >= arguments.len() + skip;
                let mut fitting = overloads.iter().filter(fits).peekable();
                fitting.peek().is_some() && fitting.all(|schema| accepts(&schema.args[position + skip].ty))
            };
            // `{}` is the default value of the parameter's type.
            if matches!(argument, Cpp::Braces(items) if items.is_empty()) && wants(Type::is_optional) {
                texts.push("None".to_owned());
                continue;
            }
            let piece = self.piece(argument)?;
            let required = wants(|ty| !ty.is_optional() && *ty == Type::Base(BaseType::Tensor));
            texts.push(if required { piece.present().text } else { piece.text });
        }
        Ok(texts.join(", "))
    }

    fn member(&self, base: &Cpp, arrow: bool, name: &Name, arguments: Option<&[Cpp]>) -> Translated {
        let receiver = self.piece(base)?;
        let Some(arguments) = arguments else {
            return Err(format!("the field `{}`", name.text()));
        };
        let method = name.last().strip_suffix("_symint").unwrap_or(name.last());
        if arguments.is_empty() {
            match (method, receiver.hint) {
                ("defined", Hint::Tensor) => return Ok(Piece::atom("true", Hint::Plain)),
                ("defined" | "has_value", _) => {
                    return Ok(Piece::atom(format!("{}.is_some()", receiver.at(ATOM)), Hint::Plain));
                }
                ("value", _) => return Ok(receiver.present()),
                // A number keeps its kind, which is irrelevant in a gradient.
                ("toDouble" | "toFloat" | "toComplexDouble", Hint::Plain) => return Ok(receiver),
                (_, _) if words::asks_if_empty(method) => {
                    let text = format!("{}.len() == 0", receiver.present().at(ATOM));
                    return Ok(Piece { text, level: words::level("=="), hint: Hint::Plain });
                }
                _ => {}
            }
        }
        if let Some(template) = &name.template {
            return Err(format!("`{method}<{template}>` has no counterpart"));
        }
        if method == "value_or" {
            let arguments = self.arguments(method, arguments, 0)?;
            return Ok(Piece::atom(format!("{}.unwrap_or({arguments})", receiver.at(ATOM)), Hint::Unknown));
        }
        let was_plain = receiver.hint == Hint::Plain;
        let receiver = if arrow && receiver.hint != Hint::Optional {
            Piece::atom(format!("{}.unwrap()", receiver.at(ATOM)), Hint::Unknown)
        } else {
            receiver.present()
        };
        let query = words::query(method, arguments.len(), was_plain);
        if let Some(query) = query {
            let arguments = self.arguments(query, arguments, 0)?;
            return Ok(Piece::atom(format!("{}.{query}({arguments})", receiver.at(ATOM)), Hint::Plain));
        }
        let method = self.value_form(method);
        let translated = self.arguments(&method, arguments, 1)?;
        let known = self.operators.has(&method) || QUERIES.iter().any(|row| row.name == method);
        if known {
            let method = words::callable(&method);
            return Ok(Piece::atom(format!("{}.{method}({translated})", receiver.at(ATOM)), Hint::Tensor));
        }
        // A C++-only method, as a function of its object.
        let separator = if translated.is_empty() { "" } else { ", " };
        let text = format!("{}({}{separator}{translated})", words::callable(&method), receiver.text);
        Ok(Piece::atom(text, Hint::Unknown))
    }
}

fn hint(ty: &Type) -> Hint {
    match ty {
        Type::Optional(_) => Hint::Optional,
        Type::Base(BaseType::Tensor) => Hint::Tensor,
        _ => Hint::Plain,
    }
}

/// `x` of `x.options()`, the bundle of dtype, layout and device.
fn options_of(argument: &Cpp) -> Option<&Cpp> {
    match argument {
        Cpp::Member { base, name, arguments: Some(none), .. }
            if name.last() == "options" && none.is_empty() =>
        {
            Some(base)
        }
        _ => None,
    }
}
