//! Inference rules of a spec, for given arguments, without building anything.
//!
//! In: the model's rules and the known facts of each argument ([`arguments`]). Out: shapes and dtypes, or the reason
//! why they are unknown. The runtime evaluates the rules as trees, so sizes may be numbers, names or unknown; functions
//! of the kernels crate are compiled code that this command does not contain, which the result states.

mod arguments;
#[cfg(test)]
mod tests;

use opsmith_codegen::analysis::rule_trees::{Memory, native, shape_rules};
use opsmith_codegen::model::expr::Expr;
use opsmith_codegen::model::{Infer, Op, ValueUse};
use opsmith_core::rule_tree::{Expr as Tree, Rules};
use opsmith_runtime::infer::symbolic::{
    ArgumentMeta, Condition, Context, Meta, Origin, Size, Symbol, Uncompiled, infer_uncompiled,
};
use opsmith_runtime::{DType, Error};

pub use arguments::{Given, GivenShape, GivenSize};
use arguments::{Known, values};

/// The reason why an expression has no value here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unknown {
    /// The call itself would fail with this error.
    Error(String),
    /// It calls code that this command does not contain.
    Compiled(String),
}

type Result<T> = std::result::Result<T, Unknown>;

/// The sizes of a result: numbers, formulas, −1 if unknown; `None` for an unknown rank.
type Sizes = Result<Option<Vec<String>>>;

/// The result of inference for a call.
pub struct Answer {
    /// The conditions that fail, or that cannot be decided here.
    pub checks: Vec<(String, Unknown)>,
    /// The sizes of each output.
    pub shapes: Vec<Sizes>,
    /// The dtype of each output.
    pub dtypes: Vec<Result<DType>>,
    /// The dtype that selects the kernel.
    pub compute: Result<DType>,
    /// The conditions on unknown sizes.
    pub guards: Vec<String>,
    /// The data-dependent sizes in shapes, each with its upper bound.
    pub found: Vec<(String, String)>,
}

/// The placeholder of rules that are not evaluated.
const NO_SIZES: Tree<'static> = Tree::List(&[]);
const NO_DTYPE: Tree<'static> = Tree::DType(DType::F32);

/// Evaluates an operator's rules for the arguments of a call.
///
/// # Errors
/// If shapes or attributes are missing, too many, or not of their argument's type.
pub fn answer(op: &Op, infer: &Infer, given: &Given) -> anyhow::Result<Answer> {
    let mut context = Context::new();
    let args = values(op, given, &mut context)?;
    let args = args.iter().map(Known::argument).collect();
    let uses = op.args.iter().map(|arg| (arg.name.as_str(), arg.value)).collect();
    let mut call = Call { op, args, uses, context, found: Vec::new() };
    let checks = op.checks.iter().filter_map(|check| {
        let memory = Memory::default();
        let asked = Rules { checks: memory.check(&check.condition, &check.text), ..Rules::NONE };
        let failed = compiled([&check.condition]).and_then(|()| call.ask(asked).map(drop));
        failed.err().map(|why| (check.text.clone(), why))
    });
    let checks = checks.collect();
    let compute = call.dtype(&infer.compute);
    let (shapes, dtypes) = match (&infer.function, &infer.length) {
        // A hand-written function infers every output.
        (Some(path), _) => {
            let compiled = || Unknown::Compiled(path.clone());
            (vec![Err(compiled()); op.outputs.len()], vec![Err(compiled()); op.outputs.len()])
        }
        (None, Some(length)) => call.list(infer, length),
        (None, None) => (call.shapes(infer), infer.dtypes.iter().map(|dtype| call.dtype(dtype)).collect()),
    };
    let symbols = &call.context.symbols;
    let guards = call.context.guards().iter().filter_map(|guard| match &guard.condition {
        Condition::Confirmed(_) => None,
        Condition::Unknown => Some(format!("what is not known fits: {}", guard.reason)),
        condition => Some(condition.named(symbols).to_string()),
    });
    let mut guards: Vec<String> = guards.collect();
    guards.dedup();
    let found = call.found.iter().map(|(symbol, name)| (name.clone(), call.text(symbols.high(*symbol))));
    Ok(Answer { checks, shapes, dtypes, compute, guards, found: found.collect() })
}

/// A call whose rules are evaluated one at a time, so that an error in one does not hide others.
struct Call<'a> {
    op: &'a Op,
    args: Vec<ArgumentMeta<'a>>,
    /// The arguments' names, and whether their elements determine a result's shape or dtype.
    uses: Vec<(&'a str, ValueUse)>,
    context: Context,
    /// Data-dependent sizes, with their names in the spec.
    found: Vec<(Symbol, String)>,
}

impl Call<'_> {
    /// The results of the given rules.
    fn ask(&mut self, rules: Rules<'_>) -> Result<Vec<Meta>> {
        let op = Uncompiled { args: &self.uses, combinations: &self.op.combinations, rules };
        let outputs = infer_uncompiled(&op, &self.args, &mut self.context).map_err(error)?;
        Ok(outputs.outs.into_vec())
    }

    fn dtype(&mut self, rule: &Expr) -> Result<DType> {
        compiled([rule])?;
        let memory = Memory::default();
        let found = self.ask(Rules {
            shapes: &[NO_SIZES],
            dtypes: &[memory.tree(rule)],
            compute: Some(NO_DTYPE),
            ..Rules::NONE
        })?;
        found.first().map(|out| out.dtype).ok_or_else(|| Unknown::Error("there is no result".to_owned()))
    }

    /// The shape of each output: all at once with data-dependent sizes, which may occur in several; else one by one, so
    /// that each has its own error.
    fn shapes(&mut self, infer: &Infer) -> Vec<Sizes> {
        let rules = shape_rules(infer);
        if compiled(rules).is_ok()
            && let Ok(found) = self.ask_shapes(infer, rules)
            && found.len() == rules.len()
        {
            return found.iter().map(|out| Ok(self.sizes(out))).collect();
        }
        let one = |rule: &Expr| {
            compiled([rule])?;
            let found = self.ask_shapes(infer, std::slice::from_ref(rule))?;
            Ok(found.first().and_then(|out| self.sizes(out)))
        };
        rules.iter().map(one).collect()
    }

    /// The outputs' metas, from rules of their shapes.
    fn ask_shapes(&mut self, infer: &Infer, rules: &[Expr]) -> Result<Vec<Meta>> {
        let memory = Memory::default();
        let found = self.ask(Rules {
            shapes: memory.list(rules),
            dtypes: &vec![NO_DTYPE; rules.len()],
            compute: Some(NO_DTYPE),
            run_sizes: memory.run_sizes(infer),
            ..Rules::NONE
        });
        self.name_found(infer);
        found
    }

    /// Gives data-dependent sizes their names in the spec.
    fn name_found(&mut self, infer: &Infer) {
        let symbols = &self.context.symbols;
        let is_new = |symbol: &Symbol| {
            *symbols.origin(*symbol) == Origin::Run && !self.found.iter().any(|(known, _)| known == symbol)
        };
        let new: Vec<Symbol> = symbols.all().filter(is_new).collect();
        let names = infer.run_sizes.iter().map(|(name, _)| name.clone());
        self.found.extend(new.into_iter().zip(names));
    }

    /// The results of an operator that returns a list.
    fn list(&mut self, infer: &Infer, length: &Expr) -> (Vec<Sizes>, Vec<Result<DType>>) {
        let shapes = shape_rules(infer);
        let memory = Memory::default();
        let rules = Rules {
            shapes: memory.list(shapes),
            run_sizes: memory.run_sizes(infer),
            dtypes: memory.list(&infer.dtypes),
            compute: Some(memory.tree(&infer.compute)),
            length: Some(memory.tree(length)),
            ..Rules::NONE
        };
        let all = shapes.iter().chain(&infer.dtypes).chain([length]);
        let found = compiled(all).and_then(|()| self.ask(rules));
        self.name_found(infer);
        match found {
            Err(why) => (vec![Err(why.clone())], vec![Err(why)]),
            Ok(outs) => {
                let shapes = outs.iter().map(|out| Ok(self.sizes(out))).collect();
                (shapes, outs.iter().map(|out| Ok(out.dtype)).collect())
            }
        }
    }

    fn sizes(&self, out: &Meta) -> Option<Vec<String>> {
        Some(out.shape.sizes()?.iter().map(|size| self.text(size)).collect())
    }

    /// A size with the names from the user and the spec.
    fn text(&self, size: &Size) -> String {
        let of_found = |symbol: Symbol| self.found.iter().find(|(known, _)| *known == symbol);
        if !size.symbols().into_iter().any(|symbol| of_found(symbol).is_some()) {
            return size.named(&self.context.symbols).to_string();
        }
        let names: Vec<(Symbol, String)> = size
            .symbols()
            .into_iter()
            .map(|symbol| match of_found(symbol) {
                Some(known) => known.clone(),
                None => (symbol, Size::from(symbol).named(&self.context.symbols).to_string()),
            })
            .collect();
        let name = |symbol: Symbol| names.iter().find(|(known, _)| *known == symbol).map(|(_, name)| &**name);
        size.with_names(&name).to_string()
    }
}

/// Returns an error for rules that call functions of the kernels crate.
fn compiled<'a>(rules: impl IntoIterator<Item = &'a Expr>) -> Result<()> {
    match rules.into_iter().find_map(native) {
        Some(path) => Err(Unknown::Compiled(path.to_owned())),
        None => Ok(()),
    }
}

/// Error and help, without the operands, which the user has just given.
fn error(error: Error) -> Unknown {
    let notes: String = error.notes().iter().map(|note| format!("\n  {note}")).collect();
    let help = error.help().map(|help| format!("\n  help: {help}")).unwrap_or_default();
    Unknown::Error(format!("{}{notes}{help}", error.message()))
}
