//! The facts about a program without mistakes, in words.
//!
//! In: the facts that `Program::check` found. Out: their text.

use std::fmt;

use crate::inputs::ProgramInput;

/// The facts about a program without mistakes.
#[derive(Clone, Debug)]
pub struct CheckedProgram {
    /// The inputs of each run.
    pub inputs: Vec<ProgramInput>,
    /// Conditions on sizes that operators require, in words.
    pub requirements: Vec<String>,
    /// Conditions that the exporter wrote, and that this reader does not understand; they are not checked.
    pub unread: Vec<String>,
    /// Conditions that sizes meet in the program's graph, each with its reason. At other sizes, a run makes a graph for these, and
    /// keeps it for the next one.
    pub special: Vec<String>,
    /// The first node or input whose elements decide about others, as a size that is an element. Such a program has no graph:
    /// its operators are called one by one, and nodes that depend on those elements are not checked before.
    pub called: Option<String>,
}

impl fmt::Display for CheckedProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inputs.iter().try_for_each(|input| writeln!(f, "input {input}"))?;
        self.requirements.iter().try_for_each(|requirement| writeln!(f, "needs {requirement}"))?;
        self.unread.iter().try_for_each(|text| writeln!(f, "not checked: {text}"))?;
        self.special.iter().try_for_each(|text| writeln!(f, "one graph only where {text}"))?;
        if let Some(place) = &self.called {
            writeln!(f, "no graph, and nodes that depend on it are not checked: {place}")?;
        }
        f.write_str("no mistakes")
    }
}
