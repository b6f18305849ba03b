//! Random generators in traced functions.
//!
//! In: the creation, seeding, reading and drawing of generators in a traced function. Out: for each generator that it
//! makes, one of the graph with its initial state, since eager mode makes it anew in each call; and an error where a
//! graph would draw other numbers than eager mode. A generator from outside the function is used directly, and
//! continues from run to run.

use opsmith_runtime::arg::Value;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::internals::{GeneratorInternals as _, Start};
use opsmith_runtime::random::{Generator, GeneratorState};

use super::recorder::with;
use crate::ir::{Argument, NodeKind};

/// The generators of a traced function.
#[derive(Default)]
pub(crate) struct Generators {
    made: Vec<Made>,
    /// Initial states of the generators that nodes draw from.
    starts: Vec<GeneratorState>,
    /// Number of nodes that draw from the default generator.
    draws: usize,
    /// The first use of a generator that a graph cannot repeat.
    refused: Option<Error>,
}

/// A generator that the function made.
struct Made {
    own: Generator,
    /// The graph's generator for it since its creation or last seed, once a node drew from it.
    in_graph: Option<Generator>,
}

/// Records a generator that the function makes.
pub(crate) fn made(generator: &Generator) {
    with(|recorder| match recorder.is_in_region() {
        true => recorder.generators.refuse("makes a random generator inside of a branch or loop"),
        false => recorder.generators.made.push(Made { own: generator.clone(), in_graph: None }),
    });
}

/// Records that the function draws from a generator, or reads its state, outside any node. A graph can repeat that only
/// if the function made the generator and no node has drawn from it.
pub(crate) fn read(generator: &Generator) {
    with(|recorder| match recorder.generators.find(generator) {
        Some(Made { in_graph: None, .. }) => {}
        Some(_) => recorder.generators.refuse("looks at a random generator that operators drew from before"),
        None => recorder.generators.refuse("looks at a random generator from outside"),
    });
}

/// Records that the state of a generator is set.
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

/// Number of nodes that drew from the default generator so far.
pub(crate) fn draws() -> usize {
    with(|recorder| recorder.generators.draws)
}

impl Generators {
    /// Initial states of the generators that nodes draw from.
    ///
    /// # Errors
    /// If the function used a generator in a way that a graph cannot repeat.
    pub fn into_starts(self) -> Result<Vec<GeneratorState>> {
        self.refused.map_or(Ok(self.starts), Err)
    }

    /// Counts a node if it draws from the default generator.
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

    /// Makes tracing fail once the function returns.
    fn refuse(&mut self, what: &str) {
        let error = || {
            Error::graph(format!("the traced function {what}, and a graph would draw other numbers then"))
                .with_help("make it inside of the function, before branches and loops, or use it before the graph runs")
        };
        self.refused.get_or_insert_with(error);
    }
}
