//! Symbolic inference of a sequence of calls.
//!
//! In: operators, and the metas of their arguments. Out: the metas of their results, and the conditions on sizes, each
//! with the call that requires it. Must not know graphs or builders.

use std::collections::HashMap;
use std::fmt;

use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::infer::symbolic::{
    ArgumentMeta, Condition, Context, Guard, Inference, Meta, OutputsMeta, Size, infer,
};
use opsmith_runtime::internals::Owned;
use opsmith_runtime::op::OpDef;

use crate::ir::Site;
use crate::trace::composition::infer_composition;

/// A condition on sizes, and the call that requires it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Requirement {
    /// The condition, with the names of symbols: `rows == columns`.
    pub condition: String,
    /// The operator that requires it.
    pub op: &'static str,
    /// The reason, from the operator's spec or rule.
    pub reason: String,
    /// The call's site.
    pub site: Site,
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: `{}` at {}: {}", self.condition, self.op, self.site, self.reason)
    }
}

/// The result of checking a graph without mistakes.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Checked {
    /// The conditions on symbolic sizes, in the order of the graph's nodes.
    pub requirements: Vec<Requirement>,
    /// Number of results whose sizes come from opaque functions; they are confirmed when sizes are known.
    pub to_confirm: usize,
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.requirements.as_slice() {
            [] => f.write_str("nothing is asked of the sizes that are not known yet")?,
            requirements => {
                f.write_str("right where")?;
                requirements.iter().try_for_each(|requirement| write!(f, "\n  {requirement}"))?;
            }
        }
        match self.to_confirm {
            0 => Ok(()),
            1 => f.write_str("\n1 formula is confirmed when sizes are known"),
            many => write!(f, "\n{many} formulas are confirmed when sizes are known"),
        }
    }
}

/// The state of inference after some calls.
#[derive(Default)]
pub(crate) struct CallInference {
    pub context: Context,
    pub checked: Checked,
    /// Number of the context's guards that were processed.
    seen: usize,
    /// Cached inferences of slow calls, by the operator's name.
    known: HashMap<&'static str, Vec<Known>>,
}

/// A cached inference.
struct Known {
    args: Vec<Owned>,
    outputs: OutputsMeta,
}

/// Number of cached calls per operator.
const KEPT: usize = 16;

impl CallInference {
    /// Infers a call.
    ///
    /// # Errors
    /// Errors at all sizes, and results that cannot be inferred before sizes are known, with the operator.
    pub fn call(
        &mut self,
        op: &'static OpDef,
        args: &[ArgumentMeta<'_>],
        site: &Site,
    ) -> Result<OutputsMeta> {
        // The conditions of the cached call are already assumed.
        let same = |known: &&Known| known.args.iter().zip(args).all(|(known, arg)| same(known, arg));
        if let Some(known) = self.known.get(op.name).and_then(|known| known.iter().find(same)) {
            return Ok(known.outputs.clone());
        }
        let first = self.context.guards().len();
        let inferred = match infer(op, args, &mut self.context) {
            Ok(Inference::Tensors(outputs)) => Ok(outputs),
            Ok(Inference::Composition) => infer_composition(op, args, &mut self.context),
            Ok(Inference::Values) => {
                let error = Error::graph("the operator returns values, and a graph computes tensors");
                Err(error.in_op(op.name, Vec::new()))
            }
            Err(error) => Err(error),
        };
        let guards = &self.context.guards()[first..];
        let took_long = guards.iter().any(|guard| matches!(guard.condition, Condition::Confirmed(_)));
        // An undecidable condition is reported by each call.
        if let (Ok(outputs), true) = (&inferred, took_long)
            && !guards.iter().any(|guard| guard.condition == Condition::Unknown)
        {
            let known = self.known.entry(op.name).or_default();
            if known.len() < KEPT {
                let args = args.iter().map(|arg| Owned::of(*arg)).collect();
                known.push(Known { args, outputs: outputs.clone() });
            }
        }
        self.note_guards(site);
        inferred
    }

    /// Assumes a condition that a call requires.
    pub fn assume(&mut self, condition: Condition, op: &'static str, reason: &str, site: &Site) {
        self.context.assume(Guard { condition, op, reason: reason.to_owned() });
        self.note_guards(site);
    }

    /// Inference in a context whose guards no call requires.
    pub fn of(context: Context) -> CallInference {
        let mut inference = CallInference { context, ..CallInference::default() };
        inference.skip_guards();
        inference
    }

    /// Treats the guards so far as declared conditions on sizes, which no call requires.
    pub fn skip_guards(&mut self) {
        self.seen = self.context.guards().len();
    }

    /// Records an error that depends on unknown sizes.
    pub fn leave_open(&mut self, error: &Error, op: &'static str, site: &Site) {
        self.checked.requirements.push(Requirement {
            condition: "what cannot be told before sizes are known".to_owned(),
            op,
            reason: error.message().to_owned(),
            site: site.clone(),
        });
    }

    fn note_guards(&mut self, site: &Site) {
        let CallInference { context, checked, seen, .. } = self;
        for guard in &context.guards()[*seen..] {
            if matches!(guard.condition, Condition::Confirmed(_)) {
                checked.to_confirm += 1;
                continue;
            }
            let requirement = Requirement {
                condition: guard.condition.named(&context.symbols).to_string(),
                op: guard.op,
                reason: guard.reason.clone(),
                site: site.clone(),
            };
            // A call may produce the same undecidable condition several times.
            if checked.requirements.last() != Some(&requirement) {
                checked.requirements.push(requirement);
            }
        }
        *seen = context.guards().len();
    }
}

/// Whether an argument equals a cached one for the purpose of inference.
fn same(known: &Owned, arg: &ArgumentMeta<'_>) -> bool {
    match (known, arg) {
        (Owned::Tensor(a), ArgumentMeta::Tensor(b)) => same_meta(a, b),
        (Owned::Tensors(a), ArgumentMeta::Tensors(b)) => {
            a.len() == b.len() && a.iter().zip(*b).all(|(a, b)| same_meta(a, b))
        }
        (Owned::Int(a), ArgumentMeta::Int(b)) => a == *b && !a.is_unknown(),
        (Owned::Ints(a), ArgumentMeta::Ints(b)) => a == b && !a.iter().any(Size::is_unknown),
        (Owned::Plain(a), ArgumentMeta::Plain(b)) => a.same_bits(&b.to_value()),
        _ => false,
    }
}

fn same_meta(a: &Meta, b: &Meta) -> bool {
    // Two unknown sizes need not be equal, and elements may influence the result.
    let is_known = |meta: &Meta| meta.shape.sizes().is_some_and(|sizes| !sizes.iter().any(Size::is_unknown));
    a.dtype == b.dtype
        && a.device == b.device
        && a.value.is_none()
        && b.value.is_none()
        && a.shape == b.shape
        && a.strides == b.strides
        && is_known(a)
}
