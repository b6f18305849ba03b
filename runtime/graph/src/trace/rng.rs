//! Random generators in traced functions.
//!
//! In: the generators that a traced function makes, seeds, reads and draws from. Out: for each that it makes, one of the
//! graph with its initial state, since eager mode makes it anew in each call; and an error where a graph would draw
//! other numbers than eager mode. A generator from outside the function is used as it is, and continues from run to run.

use opsmith_runtime::arg::Value;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::internals::{GeneratorInternals as _, Start};
use opsmith_runtime::random::{Generator, GeneratorState};

use super::recorder::with;
use crate::ir::{Argument, NodeKind};

/// The generators of a function that is traced.
#[derive(Default)]
pub(crate) struct Generators {
    made: Vec<Made>,
    /// Where those that steps draw from start.
    starts: Vec<GeneratorState>,
    /// How many steps draw from the default generator.
    draws: usize,
    /// Something that a graph cannot repeat.
    refused: Option<Error>,
}

/// A generator that the function made.
struct Made {
    own: Generator,
    /// The graph's generator in its place, since it was made or seeded, once a node drew from it.
    in_graph: Option<Generator>,
}

/// Notes a generator that the function makes.
pub(crate) fn made(generator: &Generator) {
    with(|recorder| match recorder.is_in_region() {
        true => recorder.generators.refuse("makes a random generator inside of a branch or loop"),
        false => recorder.generators.made.push(Made { own: generator.clone(), in_graph: None }),
    });
}

/// Notes that numbers are drawn from a generator, or its place is looked at, while no graph runs. That repeats only
/// if the function made the generator and no step has drawn from it.
pub(crate) fn read(generator: &Generator) {
    with(|recorder| match recorder.generators.find(generator) {
        Some(Made { in_graph: None, .. }) => {}
        Some(_) => recorder.generators.refuse("looks at a random generator that operators drew from before"),
        None => recorder.generators.refuse("looks at a random generator from outside"),
    });
}

/// Notes that a generator goes to another place.
pub(crate) fn set(generator: &Generator) {
    with(|recorder| {
        let in_region = recorder.is_in_region();
        match recorder.generators.find(generator) {
            Some(made) if !in_region => made.in_graph = None,
            Some(_) => recorder.generators.refuse("seeds a random generator inside of a branch or loop"),
            None => recorder.generators.refuse("seeds a random generator from outside"),
        }
    });
}

/// How many steps drew from the default generator so far.
pub(crate) fn draws() -> usize {
    with(|recorder| recorder.generators.draws)
}

impl Generators {
    /// Where those that steps draw from start.
    ///
    /// # Errors
    /// If the function did something that a graph cannot repeat.
    pub fn into_starts(self) -> Result<Vec<GeneratorState>> {
        self.refused.map_or(Ok(self.starts), Err)
    }

    /// Counts a step if it draws from the default generator.
    pub fn count(&mut self, kind: &NodeKind<i64>, args: &[Argument<i64>]) {
        let given = |arg: &Argument<i64>| matches!(arg, Argument::Value(Value::Generator(_)));
        let repeats = kind.op().is_none_or(|op| op.facts.deterministic);
        self.draws += usize::from(!repeats && !args.iter().any(given));
    }

    /// The graph's generator for one of the function: itself, or a new one if the function made it.
    pub fn in_graph(&mut self, generator: &Generator) -> Generator {
        let number = self.starts.len();
        let Some(made) = self.find(generator) else { return generator.clone() };
        if let Some(known) = &made.in_graph {
            return known.clone();
        }
        let start = Start { number, state: generator.place() };
        let in_graph = Generator::starting(start);
        made.in_graph = Some(in_graph.clone());
        self.starts.push(start.state);
        in_graph
    }

    fn find(&mut self, generator: &Generator) -> Option<&mut Made> {
        self.made.iter_mut().find(|made| made.own.same(generator))
    }

    /// Lets tracing fail once the function returns.
    fn refuse(&mut self, what: &str) {
        let error = || {
            Error::graph(format!("the traced function {what}, and a graph would draw other numbers then"))
                .with_help("make it inside of the function, before branches and loops, or use it before the graph runs")
        };
        self.refused.get_or_insert_with(error);
    }
}
