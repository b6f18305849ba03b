//! Symbolic inference by sampling: runs opaque inference at several points and fits formulas to its results.
//!
//! In: an operator whose rules call compiled functions, and arguments with symbols. Out: results whose sizes are
//! formulas where one fits all points, else unknown. Trial runs also find the symbols that have to be equal. A guard
//! confirms the results: it runs the functions once more when the sizes are known, so a formula that fits by
//! coincidence is an error then, never a wrong shape.

use opsmith_core::DType;

use super::samples::Samples;
use super::search::{Groups, Point, Search};
use crate::error::{Error, Result};
use crate::infer::symbolic::call::{Call, Owned, Run};
use crate::infer::symbolic::condition::{Condition, Context, Guard};
use crate::infer::symbolic::shape::{Shape, Sizes};
use crate::infer::symbolic::size::Size;
use crate::infer::symbolic::symbols::{Symbol, Symbols};
use crate::infer::symbolic::tensor_meta::{ArgumentMeta, Meta, Strides};
use crate::op::OpDef;

/// First number of the symbols for unknown sizes.
const NAMELESS: u32 = u32::MAX - 4096;

/// The result of sampling.
pub struct Sampled {
    /// The results.
    pub outs: Vec<Meta>,
    /// The dtype that selects the kernel; `None` for a composition.
    pub compute: Option<DType>,
    /// The results that are present, a bit each.
    pub present: u64,
}

/// Infers a call by running its inference at several points. `None` if it accepts none of them.
///
/// # Errors
/// If it rejects the point of the symbols' example values.
pub fn infer(
    op: &'static OpDef,
    args: &[ArgumentMeta<'_>],
    context: &mut Context,
    run: Run,
) -> Result<Option<Sampled>> {
    let mut owned: Vec<Owned> = args.iter().map(|arg| Owned::of(*arg)).collect();
    let mut nameless = NAMELESS;
    let mut atoms: Vec<Symbol> = Vec::new();
    let mut leaves: Vec<Symbol> = Vec::new();
    for arg in &mut owned {
        arg.for_each_size(&mut |size| {
            match size.is_unknown() {
                true => {
                    *size = Size::from(Symbol(nameless));
                    nameless += 1;
                }
                false => *size = context.simplified(size),
            }
            atoms.extend(size.symbols());
            context.symbols.leaves(size, &mut leaves);
        });
    }
    atoms.sort_unstable();
    atoms.dedup();
    let Some(mut search) = Search::start(op, run, &owned, &leaves, &context.symbols)? else {
        return Ok(None);
    };
    search.vary();
    let mut groups = search.group();
    search.mix(&groups);
    let least = search.least(&groups);
    let Search { first, points: accepted, several_kinds, has_examples, vanishing, of_any_rank, .. } = search;
    // A size without a symbol cannot be guarded, so ranks that depend on it stay unknown.
    let is_open = vanishing.iter().any(|(leaf, _)| leaves[*leaf].0 >= NAMELESS);
    let (compute, present) = (first.compute, first.present);
    if let (true, false) = (several_kinds, has_examples) {
        let names = leaves.iter().filter(|leaf| leaf.0 < NAMELESS).map(|leaf| Size::from(*leaf));
        let names: Vec<String> = names.map(|size| size.named(&context.symbols).to_string()).collect();
        return Err(Error::shape(format!(
            "how many results or dimensions there are depends on {}",
            if names.is_empty() { "sizes that are not known".to_owned() } else { names.join(", ") }
        ))
        .with_help("give these sizes as numbers, or an example of each"));
    }
    let mut sizes = formulas(&leaves, &atoms, &accepted, &groups, &mut context.symbols);
    // Sizes 0 and 1 may differ in strides, for instance; such a size stays a constant.
    let special = |leaf: &usize| accepted[0].values[*leaf] < 2 && !groups.constants.contains(leaf);
    let special: Vec<usize> = (0..leaves.len()).filter(special).collect();
    if !special.is_empty() && sizes.iter().any(Size::is_unknown) {
        groups.constants.extend(special);
        sizes = formulas(&leaves, &atoms, &accepted, &groups, &mut context.symbols);
    }
    for &(first, second) in &groups.equal {
        guard(op, context, leaves[first].into(), leaves[second].into());
    }
    for &leaf in groups.constants.iter().filter(|leaf| leaves[**leaf].0 < NAMELESS) {
        guard(op, context, leaves[leaf].into(), Size::Const(accepted[0].values[leaf]));
    }
    for (leaf, value) in vanishing.into_iter().filter(|(leaf, _)| leaves[*leaf].0 < NAMELESS) {
        let condition = context.equal(&Size::from(leaves[leaf]), &Size::Const(value)).negated();
        let reason = format!("where that is {value}, the result has another number of dimensions");
        context.assume(Guard { condition, op: op.name, reason });
    }
    for (leaf, least) in leaves.iter().zip(least).filter(|(leaf, _)| leaf.0 < NAMELESS) {
        if let Some(least) = least {
            let condition = context.less(&Size::from(*leaf), &Size::Const(least)).negated();
            let reason = format!("it refuses sizes below {least} there");
            context.assume(Guard { condition, op: op.name, reason });
        }
    }
    let mut sizes = sizes.into_iter();
    let mut number = || sizes.next().unwrap_or(Size::Unknown);
    let mut outs = Vec::new();
    for (index, ((layout, dtype), rank)) in first.outs.iter().zip(&accepted[0].ranks).enumerate() {
        let shape: Sizes = (0..*rank).map(|_| number()).collect();
        let strides: Sizes = (0..*rank).map(|_| number()).collect();
        let offset = number();
        let shape = Shape::Known(shape);
        let strides = match shape.contiguous_strides() {
            // The kernel chooses the strides, and kernels write row-major results.
            _ if compute.is_some() => Strides::Contiguous,
            Some(row_major) if row_major == strides && offset == 0 => Strides::Contiguous,
            _ if strides.iter().chain([&offset]).any(Size::is_unknown) => Strides::Unknown,
            _ => Strides::Given { strides, offset },
        };
        debug_assert_eq!(layout.dim(), *rank);
        let (shape, strides) = match is_open && of_any_rank.contains(&index) {
            true => (Shape::UnknownRank, Strides::Unknown),
            false => (shape, strides),
        };
        outs.push(Meta { dtype: *dtype, shape, strides, device: first.device, value: None });
    }
    let original = args.iter().map(|arg| Owned::of(*arg)).collect();
    let call = Call::new(op, original, outs.clone(), run);
    context.assume(Guard {
        condition: Condition::Confirmed(call),
        op: op.name,
        reason: "its sizes come from a function that runs on numbers only".to_owned(),
    });
    Ok(Some(Sampled { outs, compute, present }))
}

/// Formulas for all numbers of the results.
fn formulas(
    leaves: &[Symbol],
    atoms: &[Symbol],
    accepted: &[Point],
    groups: &Groups,
    symbols: &mut Symbols,
) -> Vec<Size> {
    // The guards exclude the other points.
    let points: Vec<&Point> = accepted.iter().filter(|point| groups.admit(point, &accepted[0])).collect();
    // In dimensions of at most one element, strides are arbitrary.
    let is_free = |leaf: &usize| !groups.constants.contains(leaf);
    let usual = |point: &&&Point| (0..leaves.len()).filter(is_free).all(|leaf| point.values[leaf] > 1);
    let starts_usual = points.first().is_some_and(|first| usual(&first));
    let large: Vec<&Point> = points.iter().filter(usual).copied().collect();
    let all = Fitting { leaves, atoms, points };
    let large = Fitting { leaves, atoms, points: if starts_usual { large } else { Vec::new() } };
    (0..accepted[0].numbers.len())
        .map(|index| all.size(index, symbols).or_else(|| large.size(index, symbols)).unwrap_or(Size::Unknown))
        .collect()
}

fn guard(op: &'static OpDef, context: &mut Context, a: Size, b: Size) {
    let condition = context.equal(&a, &b);
    context.assume(Guard { condition, op: op.name, reason: "it accepts these sizes only if so".to_owned() });
}

/// Fits formulas to the numbers of accepted points.
struct Fitting<'a> {
    leaves: &'a [Symbol],
    atoms: &'a [Symbol],
    points: Vec<&'a Point>,
}

impl Fitting<'_> {
    /// The size that fits one of the numbers.
    fn size(&self, index: usize, symbols: &mut Symbols) -> Option<Size> {
        let first = self.points.first()?.numbers[index];
        if self.points.iter().all(|point| point.numbers[index] == first) {
            return Some(Size::Const(first));
        }
        // Symbols that are equal at all points are one.
        let mut columns: Vec<(Symbol, Vec<i64>)> = Vec::new();
        for &atom in self.atoms {
            let values: Vec<i64> = self.points.iter().map(|point| self.value(atom, point, symbols)).collect();
            let varies = values.iter().any(|value| *value != values[0]);
            if varies && !columns.iter().any(|(_, known)| *known == values) {
                columns.push((atom, values));
            }
        }
        columns.retain(|(atom, _)| self.matters(*atom, index, symbols));
        let numbers: Vec<i64> = self.points.iter().map(|point| point.numbers[index]).collect();
        let samples = Samples::new(columns);
        let found = samples
            .polynomial(&numbers)
            .or_else(|| samples.piecewise(&numbers, symbols))
            .or_else(|| samples.fraction(&numbers, symbols))
            .or_else(|| samples.extreme(&numbers, symbols));
        // A formula must not depend on a size without a symbol.
        found.filter(|size| size.symbols().iter().all(|symbol| self.is_named(*symbol, symbols)))
    }

    fn is_named(&self, symbol: Symbol, symbols: &Symbols) -> bool {
        let mut leaves = Vec::new();
        symbols.leaves(&Size::from(symbol), &mut leaves);
        leaves.iter().all(|leaf| leaf.0 < NAMELESS)
    }

    fn value(&self, atom: Symbol, point: &Point, symbols: &Symbols) -> i64 {
        let given = |symbol| self.leaves.iter().position(|leaf| *leaf == symbol).map(|at| point.values[at]);
        symbols.value(atom, &given).unwrap_or(0)
    }

    /// Whether a number changes when the atom's leaves change, alone or with others.
    fn matters(&self, atom: Symbol, index: usize, symbols: &Symbols) -> bool {
        let mut leaves = Vec::new();
        symbols.leaves(&Size::from(atom), &mut leaves);
        let changed = |point: &Point, leaf: &Symbol| {
            let at = self.leaves.iter().position(|known| known == leaf);
            at.is_some_and(|at| point.values[at] != self.points[0].values[at])
        };
        let first = self.points[0].numbers[index];
        leaves.iter().any(|leaf| {
            let at = self.leaves.iter().position(|known| known == leaf);
            let mut alone =
                self.points.iter().filter(|point| point.alone.is_some() && point.alone == at).peekable();
            match alone.peek() {
                Some(_) => alone.any(|point| point.numbers[index] != first),
                // It never changes alone.
                None => self.points.iter().any(|point| changed(point, leaf) && point.numbers[index] != first),
            }
        })
    }
}
