//! Overloads that are one Rust function: those that differ in one argument, a tensor of one and a number of the other.
//!
//! In: the heads of all operators with their forms. Out: pairs of them with one Rust name. The pairing follows from
//! signatures alone; calls by name, definitions and kernels stay separate.

use std::collections::{HashMap, HashSet};

use super::Head;
use crate::analysis::naming::{self, Form};
use crate::model::{Arg, Kind, Merged, Op, OpId};
use crate::spec::document::keys::KeyName;

/// Pairs overloads, in the order of the spec.
pub(super) fn pair(heads: &mut [Head<'_>]) {
    let mut overloads: HashMap<(Option<usize>, String), Vec<usize>> = HashMap::new();
    let mut functions = Functions::default();
    for (index, Head { op, .. }) in heads.iter().enumerate() {
        overloads.entry((op.parent, op.base.clone())).or_default().push(index);
        functions.add(op, index);
    }
    for tensor in 0..heads.len() {
        let base = (heads[tensor].op.parent, heads[tensor].op.base.clone());
        for &number in &overloads[&base] {
            let Some(argument) = differing_argument(&heads[tensor], &heads[number]) else { continue };
            let Some(name) = common_name(&heads[tensor], &heads[number]) else { continue };
            let merged = [(tensor, number, true), (number, tensor, false)].map(|(own, with, leads)| {
                let (one, other) = (&heads[own].op, &heads[with].op);
                let has = |form: fn(&Op) -> bool| form(one) && form(other);
                Op {
                    rust_name: name.clone(),
                    merged: Some(Merged {
                        with: OpId(with),
                        argument,
                        leads,
                        inplace: has(|op| op.forms.inplace.is_some()),
                        out: has(|op| op.forms.out.is_some()),
                    }),
                    ..one.clone()
                }
            });
            if merged.iter().any(|op| functions.clash(op, [tensor, number])) {
                continue;
            }
            let [lead, follower] = merged;
            functions.add(&lead, tensor);
            functions.add(&follower, number);
            heads[tensor].op = lead;
            heads[number].op = follower;
            break;
        }
    }
}

/// The functions and structs of each library, with the operators that they belong to.
#[derive(Default)]
struct Functions(HashMap<(Option<usize>, String), HashSet<usize>>);

impl Functions {
    fn add(&mut self, op: &Op, owner: usize) {
        for name in names(op) {
            self.0.entry((op.parent, name)).or_default().insert(owner);
        }
    }

    /// Whether an operator outside the pair has a name of this one.
    fn clash(&self, op: &Op, pair: [usize; 2]) -> bool {
        let owners = |name| self.0.get(&(op.parent, name)).into_iter().flatten();
        names(op).into_iter().flat_map(owners).any(|owner| !pair.contains(owner))
    }
}

fn names(op: &Op) -> Vec<String> {
    let own = |(form, _): &(Form, bool)| !naming::stands_elsewhere(op, *form);
    let forms = naming::forms(op).into_iter().filter(own);
    let functions = forms.map(|(form, with_options)| naming::function(op, form, with_options));
    functions.chain(naming::has_options(op).then(|| naming::options(op))).collect()
}

/// The argument that is a tensor of the first and a number of the second, if the signatures are otherwise equal for
/// callers, and neither is merged yet.
fn differing_argument(tensor: &Head<'_>, number: &Head<'_>) -> Option<usize> {
    let (one, other) = (&tensor.op, &number.op);
    let same = one.merged.is_none()
        && other.merged.is_none()
        && one.supplied.is_none()
        && other.supplied.is_none()
        && one.args.len() == other.args.len()
        && one.receiver == other.receiver
        && one.forms.pairs == other.forms.pairs
        && one.facts.backward_only == other.facts.backward_only
        && [tensor, number].iter().all(|head| head.raw.get(KeyName::Deprecated).is_none())
        && one.visible().len() == other.visible().len()
        && one.visible().iter().zip(other.visible()).all(|(a, b)| a.ty == b.ty && a.name == b.name);
    if !same {
        return None;
    }
    let mut differing = (0..one.args.len()).filter(|&at| !is_same(&one.args[at], &other.args[at]));
    let (argument, None) = (differing.next()?, differing.next()) else { return None };
    let is = |arg: &Arg, kind: Kind| arg.ty.kind == kind && !arg.ty.optional && arg.default.is_none();
    let fits = is(&one.args[argument], Kind::Tensor)
        && is(&other.args[argument], Kind::Scalar)
        && one.receiver != Some(argument);
    fits.then_some(argument)
}

fn is_same(one: &Arg, other: &Arg) -> bool {
    one.name == other.name
        && one.ty == other.ty
        && one.default == other.default
        && naming::named_values(one) == naming::named_values(other)
}

/// The common name: `rust_name` of either; else the base name with the overload's name without words for tensor and
/// number; `None` if the spec gives two names, which keeps the overloads separate.
fn common_name(tensor: &Head<'_>, number: &Head<'_>) -> Option<String> {
    let given = [tensor, number]
        .map(|head| head.raw.get(KeyName::RustName).is_some().then(|| head.op.rust_name.clone()));
    match given {
        [Some(one), Some(other)] => (one == other).then_some(one),
        [Some(only), None] | [None, Some(only)] => Some(only),
        [None, None] => {
            let [one, other] = [tensor, number].map(|head| {
                let overload = head.op.name.strip_prefix(head.op.base.as_str()).unwrap_or_default();
                remaining(overload.trim_start_matches('.'))
            });
            match one == other {
                true => Some(naming::usual_function(&tensor.op.base, &one)),
                false => Some(tensor.op.rust_name.clone()),
            }
        }
    }
}

/// An overload's name without the words for tensors and numbers.
fn remaining(overload: &str) -> String {
    let overload = overload.to_lowercase();
    let words = overload.split('_').filter(|word| !matches!(*word, "tensor" | "scalar" | "self"));
    words.collect::<Vec<_>>().join("_")
}
