//! Rules of shapes and dtypes as expressions of C++, in the functions of `cann_rules.h`.
//!
//! In: an operator and expressions of its rules. Out: expressions of C++ over `arg_NAME`, with the arguments that they read; or the reason why
//! there is none.

use std::cell::RefCell;
use std::collections::BTreeSet;

use opsmith_codegen::analysis::composed;
use opsmith_codegen::model::expr::{Expr, ExprKind, Query, Variable};
use opsmith_codegen::model::{Kind, Model, Op, OpId, Operation, Ty};
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

/// The facts that rules give.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InferredFacts {
    /// Sizes, where dtypes are known.
    Sizes,
    /// Dtypes, where sizes are not.
    DTypes,
}

/// The rule of the dtype of an operator's first result.
pub fn dtype_rule(model: &Model, op: &Op) -> Option<Expr> {
    match &op.infer {
        Some(infer) => infer.dtypes.first().filter(|_| infer.function.is_none()).cloned(),
        None => composed::dtype(model, op, 0),
    }
}

/// The operator that a call means.
pub fn called(model: &Model, id: OpId) -> &Op {
    let op = &model.ops[id.0];
    op.alias_of.map_or(op, |id| &model.ops[id.0])
}

/// Expressions of an operator's rules, and the arguments that they read.
pub struct Translator<'a> {
    model: &'a Model,
    op: &'a Op,
    facts: InferredFacts,
    used: RefCell<BTreeSet<usize>>,
    /// The arguments of the calls whose rules are being read, the innermost last.
    calls: RefCell<Vec<Vec<Expr>>>,
}

type Text = Result<String, String>;

impl<'a> Translator<'a> {
    /// A translator of an operator's rules.
    pub fn new(model: &'a Model, op: &'a Op, facts: InferredFacts) -> Self {
        Translator { model, op, facts, used: RefCell::default(), calls: RefCell::default() }
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
        self.calls.borrow_mut().clear();
        text
    }

    fn text(&self, expr: &Expr) -> Text {
        Ok(match &expr.kind {
            ExprKind::Variable(Variable::Arg(index)) if !self.calls.borrow().is_empty() => {
                self.of_call(*index, |given| self.text(given))?
            }
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
            ExprKind::Op(id, args) => self.call(*id, args)?,
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

    /// Reads an argument of the innermost call, outside of it.
    fn of_call<T>(&self, index: usize, read: impl FnOnce(&Expr) -> Result<T, String>) -> Result<T, String> {
        let Some(args) = self.calls.borrow_mut().pop() else { return Err("a call is missing".to_owned()) };
        let found = match args.get(index) {
            Some(given) if !matches!(given.kind, ExprKind::None) => read(given),
            _ => Err("a rule reads an argument that a call of the composition leaves out".to_owned()),
        };
        self.calls.borrow_mut().push(args);
        found
    }

    /// The result of a called operator, of which the dtype is known.
    fn call(&self, id: OpId, args: &[Expr]) -> Text {
        const DEPTH: usize = 8;
        let rule = dtype_rule(self.model, called(self.model, id));
        let is_readable = self.facts == InferredFacts::DTypes && self.calls.borrow().len() < DEPTH;
        let Some(rule) = rule.filter(|_| is_readable) else {
            return Err("a rule reads the result of an operator that it calls".to_owned());
        };
        self.calls.borrow_mut().push(args.to_vec());
        let text = self.text(&rule);
        self.calls.borrow_mut().pop();
        Ok(format!("typed({})", text?))
    }

    /// The category of a number by its type: of truth values, integers or floats.
    fn category(&self, number: &Expr) -> Result<i64, String> {
        match (&number.kind, &number.ty.kind) {
            (ExprKind::Convert(inner), _) => self.category(inner),
            (ExprKind::Variable(Variable::Arg(index)), _) if !self.calls.borrow().is_empty() => {
                self.of_call(*index, |given| self.category(given))
            }
            (_, Kind::Bool) => Ok(0),
            (_, Kind::Int) => Ok(1),
            (_, Kind::Float) => Ok(2),
            _ => Err(format!("a dtype depends on the kind of a {}, which no attribute has", number.ty)),
        }
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
                let (tensors, numbers): (Vec<Expr>, Vec<Expr>) =
                    args.iter().cloned().partition(|arg| arg.ty.holds_tensors());
                let categories = numbers.iter().map(|number| self.category(number));
                let categories = categories.collect::<Result<Vec<_>, _>>()?;
                let tensors = self.all(&tensors)?.join(", ");
                match categories.into_iter().max() {
                    Some(category) => format!("{}(operands({tensors}), {category})", rule.name()),
                    None => format!("{}(operands({tensors}))", rule.name()),
                }
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
        let reads_sizes = matches!(query, Query::Sizes | Query::Size | Query::Dim | Query::Numel);
        if reads_sizes && self.facts == InferredFacts::DTypes {
            return Err(
                "a dtype depends on sizes, which CANN does not tell where it infers dtypes".to_owned()
            );
        }
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
