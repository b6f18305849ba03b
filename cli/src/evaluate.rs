//! Inference rules of a spec, for given arguments, without building anything.
//!
//! In: the model's rules and what is known of each argument ([`arguments`]). Out: shapes and dtypes, or why they cannot
//! be known here. The rules become those of the runtime (`rules`), which evaluates them, so sizes may be numbers, names
//! or unknown; functions of the kernels crate are compiled code that this command does not contain, and are said to be
//! so.

mod arguments;
mod rules;
#[cfg(test)]
mod tests;

use opsmith_codegen::model::expr::Expr;
use opsmith_codegen::model::{Infer, Op};
use opsmith_runtime::infer::expr::{Expr as Tree, RuleCheck, Rules};
use opsmith_runtime::infer::symbolic::{
    Argument, Condition, Context, Inference, Meta, Origin, Size, Symbol, infer,
};
use opsmith_runtime::{DType, Error};

pub use arguments::{Given, GivenShape, GivenSize};
use arguments::{Known, values};

/// Why an expression has no value here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unknown {
    /// The call itself would fail so.
    Error(String),
    /// It calls code that this command does not contain.
    Compiled(String),
}

type Result<T> = std::result::Result<T, Unknown>;

/// The sizes of a result: numbers, formulas, −1 where nothing is known; none where not even their number is.
type Sizes = Result<Option<Vec<String>>>;

/// What inference says of a call.
pub struct Answer {
    /// The conditions that do not hold, or cannot be decided here.
    pub checks: Vec<(String, Unknown)>,
    /// The sizes of each output.
    pub shapes: Vec<Sizes>,
    /// The dtype of each output.
    pub dtypes: Vec<Result<DType>>,
    /// The dtype that chooses the kernel.
    pub compute: Result<DType>,
    /// What sizes that are not known have to fulfil.
    pub guards: Vec<String>,
    /// The sizes in shapes that only a run tells, each with what it is at most.
    pub found: Vec<(String, String)>,
}

/// What stands for rules that are not asked about.
const NO_SIZES: Tree = Tree::List(&[]);
const NO_DTYPE: Tree = Tree::DType(DType::F32);

/// Evaluates an operator's rules for the arguments of a call.
///
/// # Errors
/// If shapes or attributes are missing, too many, or not of their argument's type.
pub fn answer(op: &Op, infer: &Infer, given: &Given) -> anyhow::Result<Answer> {
    let mut context = Context::new();
    let args = values(op, given, &mut context)?;
    let args = args.iter().map(Known::argument).collect();
    let mut call = Call { op, args, context, found: Vec::new() };
    let checks = op.checks.iter().filter_map(|check| {
        let (condition, text) = (rules::tree(&check.condition), rules::text(&check.text));
        let asked = Rules { checks: Vec::leak(vec![RuleCheck { condition, text }]), ..Rules::NONE };
        let failed = match rules::native(&check.condition) {
            Some(path) => Err(Unknown::Compiled(path)),
            None => call.ask(asked, 0).map(drop),
        };
        failed.err().map(|why| (check.text.clone(), why))
    });
    let checks = checks.collect();
    let compute = call.dtype(&infer.compute);
    let (shapes, dtypes) = match (&infer.function, &infer.length) {
        // A hand-written function says it for every output.
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

/// The rules of shapes: where a run decides, what is known before it.
fn shape_rules(infer: &Infer) -> &[Expr] {
    if infer.run_shapes.is_empty() { &infer.shapes } else { &infer.run_shapes }
}

/// A call that is asked about, a rule at a time, so that a mistake in one hides no other.
struct Call<'a> {
    op: &'a Op,
    args: Vec<Argument<'a>>,
    context: Context,
    /// Sizes that only a run tells, with their names in the spec.
    found: Vec<(Symbol, String)>,
}

impl Call<'_> {
    /// What inference says where these are the rules, of so many results.
    fn ask(&mut self, asked: Rules, results: usize) -> Result<Vec<Meta>> {
        let op = rules::definition(self.op, asked, results);
        match infer(op, &self.args, &mut self.context).map_err(error)? {
            Inference::Tensors(outputs) => Ok(outputs.outs.into_vec()),
            Inference::Composition | Inference::Values => Ok(Vec::new()),
        }
    }

    fn dtype(&mut self, rule: &Expr) -> Result<DType> {
        if let Some(path) = rules::native(rule) {
            return Err(Unknown::Compiled(path));
        }
        let asked = Rules {
            shapes: &[NO_SIZES],
            dtypes: Vec::leak(vec![rules::tree(rule)]),
            compute: Some(NO_DTYPE),
            ..Rules::NONE
        };
        let found = self.ask(asked, 1)?;
        found.first().map(|out| out.dtype).ok_or_else(|| Unknown::Error("there is no result".to_owned()))
    }

    /// The shape of each output: all at once, since a size that a run tells may be of several of them; else one by
    /// one, as far as they go.
    fn shapes(&mut self, infer: &Infer) -> Vec<Sizes> {
        let rules = shape_rules(infer);
        if !rules.iter().any(|rule| rules::native(rule).is_some())
            && let Ok(found) = self.ask_shapes(infer, rules)
            && found.len() == rules.len()
        {
            return found.iter().map(|out| Ok(self.sizes(out))).collect();
        }
        let one = |rule: &Expr| {
            if let Some(path) = rules::native(rule) {
                return Err(Unknown::Compiled(path));
            }
            let found = self.ask_shapes(infer, std::slice::from_ref(rule))?;
            Ok(found.first().and_then(|out| self.sizes(out)))
        };
        rules.iter().map(one).collect()
    }

    /// Facts about outputs by rules of their shapes.
    fn ask_shapes(&mut self, infer: &Infer, rules: &[Expr]) -> Result<Vec<Meta>> {
        let asked = Rules {
            shapes: Vec::leak(rules.iter().map(rules::tree).collect()),
            dtypes: Vec::leak(rules.iter().map(|_| NO_DTYPE).collect()),
            compute: Some(NO_DTYPE),
            run_sizes: run_sizes(infer),
            ..Rules::NONE
        };
        let found = self.ask(asked, rules.len());
        self.name_found(infer);
        found
    }

    /// Gives sizes that only a run tells the names that the spec has for them.
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
        let compiled = shapes.iter().chain(&infer.dtypes).chain([length]).find_map(rules::native);
        let found = match compiled {
            Some(path) => Err(Unknown::Compiled(path)),
            None => self.ask(
                Rules {
                    shapes: Vec::leak(shapes.iter().map(rules::tree).collect()),
                    run_sizes: run_sizes(infer),
                    dtypes: Vec::leak(infer.dtypes.iter().map(rules::tree).collect()),
                    compute: Some(rules::tree(&infer.compute)),
                    length: Some(rules::tree(length)),
                    ..Rules::NONE
                },
                1,
            ),
        };
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

    /// A size with the names that the user and the spec gave.
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

/// The sizes that only a run tells, as rules have them.
fn run_sizes(infer: &Infer) -> &'static [(&'static str, Tree)] {
    let sizes = infer.run_sizes.iter().map(|(name, bound)| (rules::text(name), rules::tree(bound)));
    Vec::leak(sizes.collect())
}

/// What is wrong and what to do, without the operands, which the user has just given.
fn error(error: Error) -> Unknown {
    let notes: String = error.notes().iter().map(|note| format!("\n  {note}")).collect();
    let help = error.help().map(|help| format!("\n  help: {help}")).unwrap_or_default();
    Unknown::Error(format!("{}{notes}{help}", error.message()))
}
