//! Conditions on symbolic sizes, and the guards made of them.
//!
//! In: comparisons. Out: true, false, or a condition to be checked when the sizes are known.

use std::collections::{HashMap, HashSet};
use std::fmt;

use super::call::Call;
use super::size::Size;
use super::symbols::{Bindings, Origin, Symbol, Symbols};
use crate::error::{Error, Result};

/// A condition on sizes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Condition {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Both sizes are equal.
    Equal(Size, Size),
    /// The first size is smaller.
    Less(Size, Size),
    /// The negation.
    Not(Box<Condition>),
    /// All conditions hold.
    All(Vec<Condition>),
    /// At least one condition holds.
    Any(Vec<Condition>),
    /// Inference of the call with the actual sizes gives the results that were inferred symbolically.
    Confirmed(Call),
    /// Undecidable before the operator runs.
    Unknown,
}

impl Condition {
    /// The condition of a known truth value.
    pub fn known(holds: bool) -> Condition {
        if holds { Condition::True } else { Condition::False }
    }

    /// Whether it holds for these values of symbols; `None` if it stays undecided.
    pub fn holds(&self, bindings: &Bindings) -> Option<bool> {
        self.decided_by(&|size| size.bind(bindings))
    }

    /// As [`Condition::holds`], with a function that gives the values of sizes.
    pub(super) fn decided_by(&self, value_of: &dyn Fn(&Size) -> Option<i64>) -> Option<bool> {
        match self {
            Condition::True => Some(true),
            Condition::False => Some(false),
            Condition::Equal(a, b) => Some(value_of(a)? == value_of(b)?),
            Condition::Less(a, b) => Some(value_of(a)? < value_of(b)?),
            Condition::Not(inner) => inner.decided_by(value_of).map(|holds| !holds),
            Condition::All(parts) => combine(parts, value_of, false),
            Condition::Any(parts) => combine(parts, value_of, true),
            Condition::Confirmed(call) => call.is_confirmed(value_of),
            Condition::Unknown => None,
        }
    }

    /// The symbols in its sizes, in order, without those of calls.
    pub fn symbols(&self) -> Vec<Symbol> {
        let mut found: Vec<Symbol> = match self {
            Condition::Equal(a, b) | Condition::Less(a, b) => [a.symbols(), b.symbols()].concat(),
            Condition::Not(inner) => inner.symbols(),
            Condition::All(parts) | Condition::Any(parts) => {
                parts.iter().flat_map(Condition::symbols).collect()
            }
            Condition::True | Condition::False | Condition::Confirmed(_) | Condition::Unknown => Vec::new(),
        };
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The conjunction, simplified.
    #[must_use]
    pub fn and(self, other: Condition) -> Condition {
        match (self, other) {
            (Condition::False, _) | (_, Condition::False) => Condition::False,
            (Condition::True, other) | (other, Condition::True) => other,
            (Condition::Unknown, Condition::Unknown) => Condition::Unknown,
            (Condition::All(mut parts), other) => {
                parts.push(other);
                Condition::All(parts)
            }
            (a, b) => Condition::All(vec![a, b]),
        }
    }

    /// The disjunction, simplified.
    #[must_use]
    pub fn or(self, other: Condition) -> Condition {
        match (self, other) {
            (Condition::True, _) | (_, Condition::True) => Condition::True,
            (Condition::False, other) | (other, Condition::False) => other,
            (Condition::Unknown, Condition::Unknown) => Condition::Unknown,
            (Condition::Any(mut parts), other) => {
                parts.push(other);
                Condition::Any(parts)
            }
            (a, b) => Condition::Any(vec![a, b]),
        }
    }

    /// The negation, simplified.
    #[must_use]
    pub fn negated(self) -> Condition {
        match self {
            Condition::True => Condition::False,
            Condition::False => Condition::True,
            Condition::Not(inner) => *inner,
            Condition::Unknown => Condition::Unknown,
            other => Condition::Not(Box::new(other)),
        }
    }

    /// Its text with the names of a symbol table: `s0 == 4 || s0 == 1`.
    pub fn named<'a>(&'a self, symbols: &'a Symbols) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| self.write(f, symbols))
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, symbols: &Symbols) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, parts: &[Condition], between: &str| {
            for (index, part) in parts.iter().enumerate() {
                f.write_str(if index > 0 { between } else { "" })?;
                match part {
                    Condition::All(_) | Condition::Any(_) => write!(f, "({})", part.named(symbols))?,
                    _ => part.write(f, symbols)?,
                }
            }
            Ok(())
        };
        match self {
            Condition::True => f.write_str("true"),
            Condition::False => f.write_str("false"),
            Condition::Equal(a, b) => write!(f, "{} == {}", a.named(symbols), b.named(symbols)),
            Condition::Less(a, b) => write!(f, "{} < {}", a.named(symbols), b.named(symbols)),
            Condition::Not(inner) => match &**inner {
                Condition::Equal(a, b) => write!(f, "{} != {}", a.named(symbols), b.named(symbols)),
                Condition::Less(a, b) => write!(f, "{} >= {}", a.named(symbols), b.named(symbols)),
                other => write!(f, "!({})", other.named(symbols)),
            },
            Condition::All(parts) => list(f, parts, " && "),
            Condition::Any(parts) => list(f, parts, " || "),
            Condition::Confirmed(call) => write!(f, "inference of `{}` confirms its result", call.name()),
            Condition::Unknown => f.write_str("a condition on sizes that are not known"),
        }
    }
}

/// Whether one part holds (`any`), or all do.
fn combine(parts: &[Condition], value_of: &dyn Fn(&Size) -> Option<i64>, any: bool) -> Option<bool> {
    let mut open = false;
    for part in parts {
        match part.decided_by(value_of) {
            Some(holds) if holds == any => return Some(any),
            Some(_) => {}
            None => open = true,
        }
    }
    if open { None } else { Some(!any) }
}

/// A condition under which an inferred result is right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Guard {
    /// The condition.
    pub condition: Condition,
    /// The operator that requires it; empty if none does.
    pub op: &'static str,
    /// The reason, from the operator's spec or rule.
    pub reason: String,
}

/// The state of inference: the symbols, and the guards so far.
#[derive(Clone, Default, Debug)]
pub struct Context {
    /// The symbols.
    pub symbols: Symbols,
    guards: Vec<Guard>,
    assumed: HashSet<Condition>,
    equal: HashMap<Symbol, Size>,
}

impl Context {
    /// A context without symbols and guards.
    pub fn new() -> Context {
        Context::default()
    }

    /// The context of a table of symbols, whose declared divisors are assumed, and of guards that hold.
    pub fn of(symbols: Symbols, guards: &[Guard]) -> Context {
        let mut context = Context { symbols, ..Context::default() };
        for symbol in context.symbols.all() {
            let multiple_of = context.symbols.info(symbol).map_or(1, |info| info.multiple_of);
            context.declare_multiple(&Size::from(symbol), multiple_of);
        }
        guards.iter().for_each(|guard| context.assume(guard.clone()));
        context
    }

    /// Assumes that a size is a multiple of a number; no operator requires this.
    pub fn declare_multiple(&mut self, size: &Size, of: i64) {
        if of > 1 {
            let rest = self.symbols.remainder(size, &Size::Const(of));
            let condition = Condition::Equal(rest, Size::Const(0));
            self.assume(Guard { condition, op: "", reason: String::new() });
        }
    }

    /// The guards in the order of their creation, each once, without undecidable ones.
    pub fn guards(&self) -> &[Guard] {
        &self.guards
    }

    /// Assumes a condition from here on, and keeps it as a guard unless it is known to hold.
    pub fn assume(&mut self, guard: Guard) {
        // Two unknown conditions are never the same one.
        let is_new = guard.condition == Condition::Unknown || self.assumed.insert(guard.condition.clone());
        if guard.condition == Condition::True || !is_new {
            return;
        }
        if let Condition::Equal(a, b) = &guard.condition {
            let (a, b) = (self.simplified(a), self.simplified(b));
            // The younger symbol is replaced, so that replacements cannot form a cycle.
            match (a.as_symbol(), b.as_symbol()) {
                (Some(x), Some(y)) if x < y => drop(self.equal.insert(y, a)),
                (Some(x), Some(_)) => drop(self.equal.insert(x, b)),
                (Some(x), None) if !b.symbols().contains(&x) && !b.is_unknown() => {
                    drop(self.equal.insert(x, b));
                }
                (None, Some(y)) if !a.symbols().contains(&y) && !a.is_unknown() => {
                    drop(self.equal.insert(y, a));
                }
                _ => {}
            }
        }
        self.guards.push(guard);
    }

    /// Checks every guard for the actual sizes.
    ///
    /// # Errors
    /// For the first guard that does not hold. Guards that stay undecided are left to the operators, which check their
    /// arguments when they run.
    pub fn check(&self, bindings: &Bindings) -> Result<()> {
        let broken = |guard: &&Guard| guard.condition.holds(bindings) == Some(false);
        match self.guards.iter().find(broken) {
            None => Ok(()),
            Some(guard) => Err(self.broken(guard, bindings)),
        }
    }

    #[cold]
    fn broken(&self, guard: &Guard, bindings: &Bindings) -> Error {
        let values: Vec<String> = self
            .symbols
            .all()
            .filter(|symbol| !matches!(self.symbols.origin(*symbol), Origin::Derived(_)))
            .filter_map(|symbol| {
                let name = Size::from(symbol);
                bindings.get(symbol).map(|value| format!("{} = {value}", name.named(&self.symbols)))
            })
            .collect();
        Error::shape(format!(
            "the graph holds only where {}, because {}",
            guard.condition.named(&self.symbols),
            guard.reason
        ))
        .with_help(format!("the inputs give {}; build the graph anew for them", values.join(", ")))
        .in_op(guard.op, Vec::new())
    }

    /// The size after substitution of the assumed equalities.
    pub fn simplified(&self, size: &Size) -> Size {
        let mut size = size.clone();
        // Each round replaces symbols by older ones or by sizes that do not contain them.
        for _ in 0..=self.equal.len() {
            if !size.symbols().iter().any(|symbol| self.equal.contains_key(symbol)) {
                break;
            }
            size = size
                .substitute(|symbol| self.equal.get(&symbol).cloned().unwrap_or_else(|| Size::from(symbol)));
        }
        size
    }

    /// Whether two sizes are equal.
    pub fn equal(&self, a: &Size, b: &Size) -> Condition {
        let decided = a.equals(b, &self.symbols).or_else(|| {
            let again = !self.equal.is_empty();
            again.then(|| self.simplified(a).equals(&self.simplified(b), &self.symbols)).flatten()
        });
        self.open(decided, || Condition::Equal(a.clone(), b.clone()))
    }

    /// Whether one size is less than another.
    pub fn less(&self, a: &Size, b: &Size) -> Condition {
        let decided = a.is_less(b, &self.symbols).or_else(|| {
            let again = !self.equal.is_empty();
            again.then(|| self.simplified(a).is_less(&self.simplified(b), &self.symbols)).flatten()
        });
        self.open(decided, || Condition::Less(a.clone(), b.clone()))
    }

    fn open(&self, decided: Option<bool>, condition: impl FnOnce() -> Condition) -> Condition {
        if let Some(decided) = decided {
            return Condition::known(decided);
        }
        let condition = condition();
        if let Condition::Equal(a, b) | Condition::Less(a, b) = &condition
            && (a.is_unknown() || b.is_unknown())
        {
            return Condition::Unknown;
        }
        match self.assumed.contains(&condition) {
            true => Condition::True,
            false => condition,
        }
    }
}
