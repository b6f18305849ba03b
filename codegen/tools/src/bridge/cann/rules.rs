//! Rules of shapes and dtypes as expressions of C++, in the functions of `cann_rules.h`.
//!
//! In: an operator and expressions of its rules. Out: expressions of C++ over `arg_NAME`, with the arguments that they read; or the reason why
//! there is none.

use std::cell::RefCell;
use std::collections::BTreeSet;

use opsmith_codegen::model::expr::{Expr, ExprKind, Query, Variable};
use opsmith_codegen::model::{Kind, Op, Operation, Ty};
use opsmith_core::DType;
use opsmith_core::rules::{DTypeRule, Rule, ShapeRule};

/// The name of an element type in CANN; `None` without one.
pub fn element_type(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::F32 => "ge::DT_FLOAT",
        DType::F16 => "ge::DT_FLOAT16",
        DType::BF16 => "ge::DT_BF16",
        DType::F64 => "ge::DT_DOUBLE",
        DType::I8 => "ge::DT_INT8",
        DType::I16 => "ge::DT_INT16",
        DType::I32 => "ge::DT_INT32",
        DType::I64 => "ge::DT_INT64",
        DType::U8 => "ge::DT_UINT8",
        DType::U16 => "ge::DT_UINT16",
        DType::U32 => "ge::DT_UINT32",
        DType::U64 => "ge::DT_UINT64",
        DType::Bool => "ge::DT_BOOL",
        DType::C64 => "ge::DT_COMPLEX64",
        DType::C128 => "ge::DT_COMPLEX128",
        _ => return None,
    })
}

/// A text as a literal of C++.
pub fn literal(text: &str) -> String {
    let escaped = text.chars().map(|letter| match letter {
        '"' | '\\' => format!("\\{letter}"),
        '\n' => " ".to_owned(),
        letter => letter.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

/// The type in C++ of a value; `None` if `cann_rules.h` has none.
fn cpp_type(ty: &Ty) -> Option<String> {
    let plain = match ty.kind {
        Kind::Tensor => return Some("Tensor".to_owned()),
        Kind::Tensors => "Tensors",
        Kind::Int => "Number",
        Kind::Float | Kind::Scalar => "double",
        Kind::Bool => "bool",
        Kind::Str => "std::string",
        Kind::Ints(_) => "Numbers",
        Kind::DType => "ge::DataType",
        _ => return None,
    };
    Some(if ty.optional { format!("std::optional<{plain}>") } else { plain.to_owned() })
}

/// Expressions of an operator's rules, and the arguments that they read.
pub struct Translator<'a> {
    op: &'a Op,
    used: RefCell<BTreeSet<usize>>,
}

type Text = Result<String, String>;

impl<'a> Translator<'a> {
    /// A translator of an operator's rules.
    pub fn new(op: &'a Op) -> Self {
        Translator { op, used: RefCell::default() }
    }

    /// The arguments that were read so far.
    pub fn used(&self) -> BTreeSet<usize> {
        self.used.borrow().clone()
    }

    fn all(&self, parts: &[Expr]) -> Result<Vec<String>, String> {
        parts.iter().map(|part| self.text(part)).collect()
    }

    /// An expression of C++. The arguments of one without a translation do not count as read.
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn translated(&self, expr: &Expr) -> Text {
        let before = self.used();
        let text = self.text(expr);
        if text.is_err() {
            self.used.replace(before);
        }
        text
    }

    fn text(&self, expr: &Expr) -> Text {
        Ok(match &expr.kind {
            ExprKind::Variable(Variable::Arg(index)) => {
                self.used.borrow_mut().insert(*index);
                format!("arg_{}", self.op.args[*index].name)
            }
            ExprKind::Variable(Variable::Local(name)) => format!("let_{name}"),
            ExprKind::Int(value) => format!("Number({value})"),
            ExprKind::Float(value) => format!("{value:?}"),
            ExprKind::Bool(value) => value.to_string(),
            ExprKind::Str(value) => format!("std::string({})", literal(value)),
            ExprKind::DType(dtype) => {
                element_type(*dtype).ok_or_else(|| format!("CANN has no tensors of {dtype}"))?.to_owned()
            }
            ExprKind::None => "std::nullopt".to_owned(),
            ExprKind::List(items) => match expr.ty.kind {
                Kind::Ints(_) => format!("Numbers{{{}}}", self.all(items)?.join(", ")),
                Kind::Tensors => format!("Tensors{{{}}}", self.all(items)?.join(", ")),
                _ => return Err(format!("a rule has a list of the type {}", expr.ty)),
            },
            ExprKind::Rule(Rule::Shape(rule), args) => self.shape_rule(*rule, args)?,
            ExprKind::Rule(Rule::DType(rule), args) => self.dtype_rule(*rule, args)?,
            ExprKind::Native(path, _) => {
                return Err(format!("a function in Rust, `{path}`, computes the shape of a result"));
            }
            ExprKind::Op(..) => {
                return Err("a rule reads the result of an operator that it calls".to_owned());
            }
            ExprKind::Query(query, of, args) => self.query(*query, of, args)?,
            ExprKind::Binary(operation, a, b) => self.binary(*operation, a, b)?,
            ExprKind::Logical(is_and, a, b) => {
                format!("({} {} {})", self.text(a)?, if *is_and { "&&" } else { "||" }, self.text(b)?)
            }
            ExprKind::Unary(Operation::Neg, of) => format!("(-{})", self.text(of)?),
            ExprKind::Unary(Operation::Not, of) => format!("(!{})", self.text(of)?),
            ExprKind::If(condition, yes, no) => {
                let ty = cpp_type(&expr.ty).ok_or_else(|| format!("a choice has the type {}", expr.ty))?;
                let (condition, yes, no) = (self.text(condition)?, self.text(yes)?, self.text(no)?);
                format!("({condition} ? {ty}({yes}) : {ty}({no}))")
            }
            ExprKind::Block(bindings, tail) => self.block(bindings, tail)?,
            ExprKind::Index(list, at) => format!("item({}, {})", self.text(list)?, self.text(at)?),
            ExprKind::Convert(inner) => self.converted(inner, &expr.ty)?,
            _ => return Err("a rule has a part that C++ has no words for".to_owned()),
        })
    }

    fn shape_rule(&self, rule: ShapeRule, args: &[Expr]) -> Text {
        if rule == ShapeRule::Broadcast {
            let tensors: Vec<Expr> = args.iter().filter(|arg| arg.ty.holds_tensors()).cloned().collect();
            return Ok(format!("broadcast(operands({}))", self.all(&tensors)?.join(", ")));
        }
        Ok(format!("{}({})", rule.name(), self.all(args)?.join(", ")))
    }

    fn dtype_rule(&self, rule: DTypeRule, args: &[Expr]) -> Text {
        let all = || Ok::<String, String>(self.all(args)?.join(", "));
        Ok(match (rule, args) {
            (DTypeRule::Follow, [of]) => format!("{}.dtype()", self.text(of)?),
            (DTypeRule::Same, _) => {
                let tensors: Vec<Expr> = args.iter().filter(|arg| arg.ty.holds_tensors()).cloned().collect();
                format!("same(operands({}))", self.all(&tensors)?.join(", "))
            }
            (DTypeRule::Promote | DTypeRule::PromoteFloat, _) => {
                if let Some(number) = args.iter().find(|arg| !arg.ty.holds_tensors()) {
                    return Err(format!(
                        "a dtype depends on the kind of a {}, which no attribute has",
                        number.ty
                    ));
                }
                format!("{}(operands({}))", rule.name(), all()?)
            }
            (DTypeRule::Real | DTypeRule::Opmath | DTypeRule::Complex, [of]) => {
                format!("{}({}.dtype())", rule.name(), self.text(of)?)
            }
            (DTypeRule::Accumulate, [of, given]) => {
                format!("accumulate({}.dtype(), {})", self.text(of)?, self.text(given)?)
            }
            _ => format!("{}({})", rule.name(), all()?),
        })
    }

    fn query(&self, query: Query, of: &Expr, args: &[Expr]) -> Text {
        let (is_tensor, base) = (of.ty.kind == Kind::Tensor, self.text(of)?);
        let args = self.all(args)?;
        let first = args.first().map_or("", String::as_str);
        let of_dtype = |name: &str| match of.ty.kind {
            Kind::Tensor => Ok(format!("{name}({base}.dtype())")),
            Kind::DType => Ok(format!("{name}({base})")),
            _ => Err(format!("a rule asks for the kind of a {}, which no attribute has", of.ty)),
        };
        Ok(match query {
            Query::Sizes => format!("{base}.sizes()"),
            Query::Size => format!("{base}.size({first})"),
            Query::Dim => format!("{base}.dim()"),
            Query::Numel => format!("{base}.numel()"),
            Query::DType => format!("{base}.dtype()"),
            Query::IsComplex => of_dtype("is_complex")?,
            Query::IsFloat => of_dtype("is_float")?,
            Query::IsInt => of_dtype("is_int")?,
            Query::Len => format!("Number(static_cast<int64_t>({base}.size()))"),
            Query::IsSome if is_tensor => format!("{base}.is_there"),
            Query::IsNone if is_tensor => format!("(!{base}.is_there)"),
            Query::IsSome => format!("{base}.has_value()"),
            Query::IsNone => format!("(!{base}.has_value())"),
            Query::Unwrap if is_tensor => base,
            Query::Unwrap => format!("given({base})"),
            Query::UnwrapOr if is_tensor => format!("({base}.is_there ? {base} : {first})"),
            Query::UnwrapOr => format!("{base}.value_or({first})"),
            Query::Contains => format!("contains({base}, {first})"),
            Query::Concat if matches!(of.ty.kind, Kind::Ints(_)) => format!("concat({base}, {first})"),
            _ => return Err("a rule asks for a fact that CANN's inference does not have".to_owned()),
        })
    }

    fn binary(&self, operation: Operation, a: &Expr, b: &Expr) -> Text {
        let is_bitwise = matches!(operation, Operation::BitAnd | Operation::BitOr | Operation::BitXor);
        let symbol = Operation::ALL.iter().find(|(known, _)| *known == operation && !is_bitwise);
        let Some((_, symbol)) = symbol else {
            return Err("a rule has an operation between the bits of numbers".to_owned());
        };
        Ok(format!("({} {symbol} {})", self.text(a)?, self.text(b)?))
    }

    fn block(&self, bindings: &[(String, Expr)], tail: &Expr) -> Text {
        let mut text = format!("return {};", self.text(tail)?);
        for (name, value) in bindings.iter().rev() {
            // A name that nothing reads would be a warning.
            if text.contains(&format!("let_{name}")) {
                text = format!("const auto let_{name} = {}; {text}", self.text(value)?);
            }
        }
        Ok(format!("[&] {{ {text} }}()"))
    }

    fn converted(&self, inner: &Expr, to: &Ty) -> Text {
        let text = self.text(inner)?;
        Ok(match (&inner.ty.kind, &to.kind) {
            (from, to) if from == to => text,
            (Kind::None, _) | (Kind::Float, Kind::Scalar) => text,
            (Kind::Int, Kind::Ints(length)) if inner.ty.optional => {
                format!("repeated({text}, {})", length.unwrap_or(1))
            }
            (Kind::Int, Kind::Float | Kind::Scalar) if !inner.ty.optional => {
                format!("static_cast<double>({text}.value())")
            }
            (Kind::Int, Kind::Ints(length)) => format!("Numbers({}, {text})", length.unwrap_or(1)),
            (Kind::Ints(_), Kind::Ints(Some(length))) => format!("repeated({text}, {length})"),
            (Kind::Ints(_), Kind::Ints(None)) => text,
            _ => return Err(format!("a rule converts a {} to a {to}", inner.ty)),
        })
    }
}
