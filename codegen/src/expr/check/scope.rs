//! The names that an expression may refer to.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};

use crate::expr::path;
use crate::model::{Arg, Function, FunctionId, Op, OpId, Operator, Output, Role, Ty};

/// Whether formulas may call undeclared functions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Undeclared {
    /// Such a call is an error.
    #[default]
    Refused,
    /// Such a call has the required type: for a draft, whose model lists the missing declarations, and from which no
    /// code can be generated.
    Allowed,
}

/// The kinds of expressions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// `shape:`: gives sizes.
    Shape,
    /// `flops:`: gives a number of operations, from sizes.
    Operations,
    /// `dtype:` and `compute:`: give a dtype.
    DType,
    /// `check:`: gives a truth value.
    Check,
    /// `pointwise:`: gives one element.
    Pointwise,
    /// `derivative:` of a scalar function: gives one element.
    FunctionDerivative,
    /// `derivatives:`: gives gradients.
    Derivative,
    /// `forward:`: gives the tangent of an output.
    Forward,
    /// `decompose:`: gives the operator's results.
    Decompose,
}

impl Mode {
    /// Whether names of tensors denote one element.
    pub fn is_elementwise(self) -> bool {
        matches!(self, Mode::Pointwise | Mode::FunctionDerivative)
    }
}

/// The names that an expression may refer to.
pub struct Scope<'a> {
    /// Every operator, for calls.
    pub ops: &'a OpTable<'a>,
    /// The arguments of the expression's operator.
    pub args: &'a [Arg],
    /// Its results.
    pub outputs: &'a [Output],
    /// The kind of the expression.
    pub mode: Mode,
    /// Names defined for this expression only.
    pub locals: &'a [(String, Ty)],
}

/// A way in which an expression finds operators.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Lookup {
    /// By base name, as it is called.
    Base(String),
    /// By an operator of Rust.
    Symbol(Operator),
    /// By the job for the runtime.
    Role(Role),
}

/// Operators and scalar functions by name.
pub struct OpTable<'a> {
    ops: &'a [Op],
    functions: &'a [Function],
    by_base: HashMap<&'a str, Vec<OpId>>,
    by_symbol: HashMap<Operator, Vec<OpId>>,
    function_by_name: HashMap<&'a str, FunctionId>,
    broken: HashSet<String>,
    met_broken: Cell<bool>,
    lookups: RefCell<HashSet<Lookup>>,
    /// Whether lookups are recorded.
    pub records: bool,
    /// Whether formulas may call undeclared functions.
    pub undeclared: Undeclared,
}

impl<'a> OpTable<'a> {
    /// Indexes operators and functions by name.
    pub fn new(ops: &'a [Op], functions: &'a [Function]) -> OpTable<'a> {
        let (mut by_base, mut by_symbol) =
            (HashMap::<&str, Vec<OpId>>::new(), HashMap::<_, Vec<OpId>>::new());
        for (index, op) in ops.iter().enumerate() {
            by_base.entry(&op.base).or_default().push(OpId(index));
            for operator in &op.operators {
                by_symbol.entry(*operator).or_default().push(OpId(index));
            }
        }
        let mut function_by_name = HashMap::new();
        for (index, function) in functions.iter().enumerate() {
            function_by_name.entry(function.name.as_str()).or_insert(FunctionId(index));
        }
        OpTable {
            ops,
            functions,
            by_base,
            by_symbol,
            function_by_name,
            broken: HashSet::new(),
            met_broken: Cell::new(false),
            lookups: RefCell::default(),
            records: false,
            undeclared: Undeclared::Refused,
        }
    }

    /// An operator.
    pub fn op(&self, id: OpId) -> &'a Op {
        &self.ops[id.0]
    }

    /// A scalar function.
    pub fn function(&self, name: &str) -> Option<(FunctionId, &'a Function)> {
        let id = *self.function_by_name.get(name)?;
        Some((id, &self.functions[id.0]))
    }

    /// Every operator, in order.
    pub fn ops(&self) -> &'a [Op] {
        self.ops
    }

    /// The scalar functions, in order.
    pub fn functions(&self) -> &'a [Function] {
        self.functions
    }

    /// The overloads of a base name. A Rust keyword is called by its Rust function's name, which has an underscore:
    /// `where_`.
    pub fn overloads(&self, base: &str) -> &[OpId] {
        self.record(|| Lookup::Base(base.to_owned()));
        let keyword = || base.strip_suffix('_').filter(|name| !path::is_identifier(name));
        let found = self.by_base.get(base).or_else(|| self.by_base.get(keyword()?));
        found.map_or(&[], Vec::as_slice)
    }

    /// Records a name whose entry has mistakes, so that its users get no diagnostics about it.
    pub fn add_broken(&mut self, name: String) {
        self.broken.insert(name);
    }

    /// Whether an entry of that name has mistakes.
    pub fn is_broken(&self, name: &str) -> bool {
        self.record(|| Lookup::Base(name.to_owned()));
        let broken = self.broken.contains(name) || self.broken.contains(name.trim_end_matches('_'));
        self.met_broken.set(self.met_broken.get() || broken);
        broken
    }

    /// Whether an expression referred to an entry with mistakes since the last call, so that a part is missing without
    /// a diagnostic.
    pub fn met_broken(&self) -> bool {
        self.met_broken.take()
    }

    /// The operators of a symbol.
    pub fn of_symbol(&self, operator: Operator) -> &[OpId] {
        self.record(|| Lookup::Symbol(operator));
        self.by_symbol.get(&operator).map_or(&[], Vec::as_slice)
    }

    /// The first operator with a role.
    pub fn with_role(&self, role: Role) -> Option<&'a Op> {
        self.record(|| Lookup::Role(role));
        self.ops.iter().find(|op| op.role == Some(role))
    }

    /// The lookups since the last call.
    pub fn take_lookups(&self) -> HashSet<Lookup> {
        self.lookups.take()
    }

    fn record(&self, lookup: impl FnOnce() -> Lookup) {
        if self.records {
            self.lookups.borrow_mut().insert(lookup());
        }
    }

    /// Every base name, in order.
    pub fn bases(&self) -> impl Iterator<Item = &'a str> {
        let mut bases: Vec<&str> = self.by_base.keys().copied().collect();
        bases.sort_unstable();
        bases.into_iter()
    }
}
