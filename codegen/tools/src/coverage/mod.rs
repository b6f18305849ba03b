//! Support of operators by feature: backends, dtypes, gradients, forms, tests.
//!
//! In: a model, the operators that tests name, and results of a test run. Out: [`Coverage`], a row for each operator and backend. A
//! composition supports the dtypes that every operator it calls supports, and is differentiable if they are; this
//! understates compositions with conversions between calls.

use std::collections::HashMap;

use opsmith_core::{Backend, DType, DTypeSet};
use serde::Serialize;

use opsmith_codegen::analysis::gradients::{gradients_flow, second_order_refusal, tangent_refusal};
use opsmith_codegen::model::expr::{Expr, ExprKind};
use opsmith_codegen::model::{Element, GradientSource, Model, Op};

use crate::results::{Outcome, Results};

/// Facts about all operators.
#[derive(Clone, Debug, Serialize)]
pub struct Coverage {
    /// A row for each operator and backend, in the order of the spec.
    pub rows: Vec<CoverageRow>,
    /// For each backend, the share of operators with each feature.
    pub totals: Vec<Totals>,
}

/// One operator on one backend.
#[derive(Clone, Debug, Serialize)]
pub struct CoverageRow {
    /// Its full name.
    pub op: String,
    /// The backend, `CPU`.
    pub backend: &'static str,
    /// The dtypes it computes in.
    pub forward: Vec<&'static str>,
    /// The dtypes among them with gradients.
    pub backward: Vec<&'static str>,
    /// Whether a gradient could exist: tensors go in and come out, and the spec does not exclude one.
    pub differentiable: bool,
    /// The source of gradients: `written`, `derived`, `composition`, `view`; empty if there are none.
    pub gradients: &'static str,
    /// Whether gradients can be differentiated again.
    pub second_order: bool,
    /// The source of tangents; empty if forward mode is not supported.
    pub forward_mode: &'static str,
    /// Whether there is an in-place form.
    pub inplace: bool,
    /// Whether there is an out form.
    pub out: bool,
    /// Whether it has samples, so that the generic checks call it.
    pub sampled: bool,
    /// Whether a test's text names it, independent of the test's assertions.
    pub named: bool,
    /// Checks that passed on this backend in a test run, of all that ran; none without results of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<Share>,
}

/// Shares for one backend.
#[derive(Clone, Debug, Serialize)]
pub struct Totals {
    /// The backend.
    pub backend: &'static str,
    /// Operators with a kernel, a view, a function or a composition, of all.
    pub forward: Share,
    /// Pairs of operator and dtype that compute, of all pairs.
    pub forward_dtypes: Share,
    /// Operators with gradients, of those on this backend that could have some.
    pub backward: Share,
    /// Operators whose gradients can be differentiated again, of the same.
    pub second_order: Share,
    /// Operators with tangents, of the same.
    pub forward_mode: Share,
    /// Operators with an in-place form, of all.
    pub inplace: Share,
    /// Operators with an out form, of all.
    pub out: Share,
    /// Operators with samples, of all.
    pub sampled: Share,
    /// Operators that a test names, of all.
    pub named: Share,
    /// Operators with samples or named by a test, of all.
    pub tested: Share,
    /// Operators whose checks all passed in a test run, of those that it ran; none without results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<Share>,
}

/// A part of a whole.
#[derive(Clone, Copy, Default, Debug, Serialize)]
pub struct Share {
    /// The number that have it.
    pub have: usize,
    /// The number that could have it.
    pub of: usize,
}

impl Share {
    /// In per cent; 100 if the total is 0.
    pub fn per_cent(self) -> f64 {
        if self.of == 0 { 100.0 } else { 100.0 * self.have as f64 / self.of as f64 }
    }
}

/// Covers every operator of a spec; `is_named` returns whether a test names one.
pub fn coverage(model: &Model, is_named: &dyn Fn(&Op) -> bool) -> Coverage {
    let mut asked = Asked { model, known: HashMap::new() };
    let flowing = gradients_flow(model);
    let mut rows = Vec::new();
    for (index, op) in model.ops.iter().enumerate().filter(|(_, op)| !op.is_external()) {
        // An alias has the operator's support.
        let meant = op.alias_of.map_or(index, |id| id.0);
        let (meant, has_gradients) = (&model.ops[meant], flowing[meant]);
        for backend in Backend::ALL {
            let row = row(meant, backend, &mut asked, is_named(op), has_gradients);
            let (inplace, out) = (op.forms.inplace.is_some(), op.forms.out.is_some());
            rows.push(CoverageRow { op: op.name.clone(), inplace, out, ..row });
        }
    }
    let totals = Backend::ALL.iter().map(|backend| totals(backend.key(), &rows)).collect();
    Coverage { rows, totals }
}

impl Coverage {
    /// Adds the outcomes of a test run. A backend's are recorded under its name, or under that with its device's: `CUDA (stand-in)`.
    pub fn add_runs(&mut self, results: &Results) {
        for row in &mut self.rows {
            let is_of_row = |name: &str| {
                let rest = name.strip_prefix(row.backend);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" ("))
            };
            let mut runs = Share::default();
            let cells = results.operator(&row.op).into_iter().flat_map(|operator| &operator.cells);
            for cell in cells.filter(|cell| is_of_row(&cell.backend)) {
                runs.have += usize::from(matches!(cell.outcome, Outcome::Passed(_)));
                runs.of += usize::from(!matches!(cell.outcome, Outcome::Skipped(_)));
            }
            row.runs = Some(runs);
        }
        for totals in &mut self.totals {
            let rows = self.rows.iter().filter(|row| row.backend == totals.backend);
            let ran: Vec<Share> = rows.filter_map(|row| row.runs).filter(|runs| runs.of > 0).collect();
            let have = ran.iter().filter(|runs| runs.have == runs.of).count();
            totals.runs = Some(Share { have, of: ran.len() });
        }
    }
}

fn row(op: &Op, backend: Backend, asked: &mut Asked<'_>, named: bool, has_gradients: bool) -> CoverageRow {
    let forward = asked.dtypes(op, backend);
    let source = op.gradient_source();
    let takes = op.args.iter().any(|arg| arg.ty.holds_tensors() && is_inexact(arg.element));
    let gives = op
        .outputs
        .iter()
        .any(|output| output.ty.holds_tensors() && output.differentiable && is_inexact(output.element));
    let names = |set: DTypeSet| set.iter().map(DType::name).collect::<Vec<_>>();
    let inexact = forward.iter().filter(|dtype| dtype.is_differentiable());
    let backward = inexact.fold(DTypeSet::EMPTY, |set, dtype| set.union(DTypeSet::of(dtype)));
    CoverageRow {
        op: op.name.clone(),
        backend: backend.key(),
        forward: names(forward),
        backward: if has_gradients { names(backward) } else { Vec::new() },
        differentiable: takes
            && gives
            && (has_gradients || source != GradientSource::Composition)
            && !op.refuses_gradients()
            && !op.facts.backward_only
            && backward != DTypeSet::EMPTY,
        gradients: if has_gradients { source.word() } else { "" },
        second_order: has_gradients && second_order_refusal(asked.model, op).is_none(),
        forward_mode: match has_gradients && tangent_refusal(asked.model, op).is_none() {
            true => op.forward.word(),
            false => "",
        },
        inplace: op.forms.inplace.is_some(),
        out: op.forms.out.is_some(),
        sampled: !op.samples.is_empty(),
        named,
        runs: None,
    }
}

/// Cached results for operators, since compositions repeat queries.
struct Asked<'a> {
    model: &'a Model,
    known: HashMap<(String, Backend), DTypeSet>,
}

impl Asked<'_> {
    /// The dtypes that an operator computes in.
    fn dtypes(&mut self, op: &Op, backend: Backend) -> DTypeSet {
        let key = (op.name.clone(), backend);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        // A composition that calls itself in a branch adds no restriction.
        self.known.insert(key.clone(), every_dtype());
        let found = self.computed(op, backend);
        self.known.insert(key, found);
        found
    }

    fn computed(&mut self, op: &Op, backend: Backend) -> DTypeSet {
        let body = &op.body;
        // Views, functions and compositions are available only on backends with a kernel.
        if self.model.ops.iter().all(|op| op.body.dtypes_of_row(backend) == DTypeSet::EMPTY)
            && backend != Backend::Cpu
        {
            return DTypeSet::EMPTY;
        }
        if body.view.is_some() || body.host.is_some() {
            return every_dtype();
        }
        let own = body.dtypes_of_row(backend);
        let Some(composite) = &body.composite else { return own };
        own.union(self.composed(composite, backend))
    }

    /// The dtypes that every operator of an expression computes in, of a condition those of either branch.
    fn composed(&mut self, expr: &Expr, backend: Backend) -> DTypeSet {
        if let ExprKind::If(condition, yes, no) = &expr.kind {
            let either = self.composed(yes, backend).union(self.composed(no, backend));
            return self.composed(condition, backend).intersection(either);
        }
        let model = self.model;
        let own = match expr.kind {
            ExprKind::Op(id, _) => self.dtypes(&model.ops[id.0], backend),
            _ => every_dtype(),
        };
        expr.children().into_iter().fold(own, |set, part| set.intersection(self.composed(part, backend)))
    }
}

fn every_dtype() -> DTypeSet {
    DType::ALL.iter().fold(DTypeSet::EMPTY, |set, dtype| set.union(DTypeSet::of(*dtype)))
}

/// Whether elements of a tensor can have a gradient: not those of a fixed exact dtype.
fn is_inexact(element: Element) -> bool {
    !matches!(element, Element::Fixed { kernel, .. } if !kernel.is_differentiable())
}

fn totals(backend: &'static str, rows: &[CoverageRow]) -> Totals {
    let rows: Vec<&CoverageRow> = rows.iter().filter(|row| row.backend == backend).collect();
    let share = |of: &dyn Fn(&CoverageRow) -> bool, has: &dyn Fn(&CoverageRow) -> bool| Share {
        have: rows.iter().filter(|row| of(row) && has(row)).count(),
        of: rows.iter().filter(|row| of(row)).count(),
    };
    let all = |_: &CoverageRow| true;
    let could = |row: &CoverageRow| row.differentiable;
    Totals {
        backend,
        forward: share(&all, &|row| !row.forward.is_empty()),
        forward_dtypes: Share {
            have: rows.iter().map(|row| row.forward.len()).sum(),
            of: rows.len() * DType::COUNT,
        },
        backward: share(&could, &|row| !row.gradients.is_empty()),
        second_order: share(&could, &|row| row.second_order),
        forward_mode: share(&could, &|row| !row.forward_mode.is_empty()),
        inplace: share(&all, &|row| row.inplace),
        out: share(&all, &|row| row.out),
        sampled: share(&all, &|row| row.sampled),
        named: share(&all, &|row| row.named),
        tested: share(&all, &|row| row.sampled || row.named),
        runs: None,
    }
}
