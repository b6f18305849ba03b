//! The contents of the page of an operator: all that the spec, its sources and results of a test run say of it.
//!
//! In: the map of a site. Out: [`OperatorPage`], plain data whose texts in HTML are named so in its documentation.

use opsmith_core::{Backend, DType};
use serde::Serialize;

use opsmith_codegen::analysis::flops;
use opsmith_codegen::analysis::naming::Form;
use opsmith_codegen::emit;
use opsmith_codegen::expr::print::print;
use opsmith_codegen::model::{Model, Op};

use super::fields::{self, ArgumentRow, ResultRow};
use super::gradients::{self, DerivativeRow};
use super::highlight::highlight;
use super::map::{PageLink, SiteMap};
use super::markdown::{self, Heading};
use super::places::{Place, place};
use super::python;
use super::sizes::{self, SizesInSymbols};
use super::tests::{self, TestTable, TimingRow};
use crate::coverage::{self, CoverageRow};
use crate::describe::{self, DescribedKernel, Shared};
use crate::plot::{Plot, plot};
use crate::results::Results;
use crate::typeset;

/// The contents of a page.
#[derive(Clone, Debug, Serialize)]
pub struct OperatorPage {
    /// The number of the operator in the model.
    #[serde(skip)]
    pub index: usize,
    /// Its full name.
    pub name: String,
    /// Its properties, a word or two each.
    pub badges: Vec<Badge>,
    /// Its documentation, HTML.
    pub doc: String,
    /// The reason not to use it any more, HTML.
    pub deprecated: Option<String>,
    /// The operator that it is another name of.
    pub alias_of: Option<PageLink>,
    /// The signature, HTML.
    pub schema: String,
    /// The ways to call it.
    pub forms: Vec<FormRow>,
    /// The formula of the result, MathML.
    pub definition: Option<String>,
    /// The expression of the result as the spec has it.
    pub expression: Option<String>,
    /// The thing that the expression gives: each element, or a composition.
    pub expression_of: &'static str,
    /// The operators that the composition calls.
    pub calls: Vec<PageLink>,
    /// The picture of the function, SVG.
    pub plot: Option<String>,
    /// Arithmetic operations of a call.
    pub flops: Option<String>,
    /// The arguments.
    pub arguments: Vec<ArgumentRow>,
    /// The results.
    pub results: Vec<ResultRow>,
    /// The sizes of the results at samples.
    pub sizes: SizesInSymbols,
    /// A call with its printed result.
    pub example: Option<ExampleText>,
    /// The source of gradients, a sentence.
    pub gradients: String,
    /// The gradient formulas.
    pub derivatives: Vec<DerivativeRow>,
    /// Forward mode, a sentence.
    pub forward: String,
    /// Gradients of gradients, a sentence.
    pub second_order: String,
    /// Whether equal inputs give equal results, a sentence.
    pub determinism: &'static str,
    /// The dtypes by backend.
    pub backends: Vec<BackendRow>,
    /// Outcomes of checks.
    pub tests: Option<TestTable>,
    /// The bodies that compute it.
    pub kernels: Vec<KernelRow>,
    /// Measured times.
    pub timings: Vec<TimingRow>,
    /// Refused calls, the rest of a sentence each, HTML.
    pub errors: Vec<String>,
    /// Names, here and in other libraries.
    pub names: Vec<NameRow>,
    /// The callers.
    pub used_by: Vec<Caller>,
    /// The place of the entry.
    pub declared: Place,
    /// The entry, HTML.
    pub entry: String,
}

/// A property in a word or two.
#[derive(Clone, Debug, Serialize)]
pub struct Badge {
    /// The words.
    pub text: String,
    /// The class of the element.
    pub class: &'static str,
}

/// A way to call an operator.
#[derive(Clone, Debug, Serialize)]
pub struct FormRow {
    /// The way.
    pub title: String,
    /// The call or declaration, HTML.
    pub code: String,
    /// A remark, HTML.
    pub note: Option<String>,
}

/// A call with its printed result.
#[derive(Clone, Debug, Serialize)]
pub struct ExampleText {
    /// The call, HTML.
    pub code: String,
    /// Its printed result; `None` if nothing ran it.
    pub output: Option<String>,
    /// The reason why there is none, a sentence.
    pub unexecuted: &'static str,
}

/// The dtypes of a backend.
#[derive(Clone, Debug, Serialize)]
pub struct BackendRow {
    /// The backend.
    pub name: &'static str,
    /// A mark for each dtype.
    pub cells: Vec<&'static str>,
}

/// A body that computes the operator.
#[derive(Clone, Debug, Serialize)]
pub struct KernelRow {
    /// The backend.
    pub backend: String,
    /// Its kind.
    pub kind: &'static str,
    /// The text in the spec.
    pub text: String,
    /// The place of its source.
    pub place: Option<Place>,
    /// Its dtypes.
    pub dtypes: String,
    /// The declaration that it must have, HTML.
    pub signature: Option<String>,
}

/// Names in one library.
#[derive(Clone, Debug, Serialize)]
pub struct NameRow {
    /// The library.
    pub library: String,
    /// The names.
    pub names: Vec<PageLink>,
}

/// An operator that calls another.
#[derive(Clone, Debug, Serialize)]
pub struct Caller {
    /// Its name.
    pub title: String,
    /// Its page.
    pub page: Option<String>,
    /// The key of its entry.
    pub place: String,
}

impl OperatorPage {
    /// The headings of the page.
    pub fn contents(&self) -> Vec<Heading> {
        let has_definition = self.definition.is_some()
            || self.expression.is_some()
            || self.plot.is_some()
            || self.flops.is_some();
        let sections = [
            (true, "Signature", "signature"),
            (has_definition, "Definition", "definition"),
            (!self.arguments.is_empty(), "Arguments", "arguments"),
            (!self.results.is_empty(), "Results", "results"),
            (self.example.is_some(), "Example", "example"),
            (true, "Gradients", "gradients"),
            (!self.backends.is_empty(), "Dtypes by backend", "dtypes"),
            (self.tests.is_some(), "Tests", "tests"),
            (!self.kernels.is_empty(), "Kernels", "kernels"),
            (!self.timings.is_empty(), "Measured speed", "speed"),
            (true, "Errors", "errors"),
            (true, "Names", "names"),
            (!self.used_by.is_empty(), "Used by", "uses"),
            (true, "Entry", "entry"),
        ];
        let shown = sections.into_iter().filter(|(is_shown, ..)| *is_shown);
        shown
            .map(|(_, text, anchor)| Heading { level: 2, text: text.to_owned(), anchor: anchor.to_owned() })
            .collect()
    }
}

/// The pages of all operators of the spec itself, in its order.
pub fn pages(map: &SiteMap<'_>) -> Vec<OperatorPage> {
    let coverage = coverage::coverage(&map.input.checked.model, &|_| false);
    let mut shared = Shared::new(map.input.checked, map.input.config);
    map.pages.keys().map(|index| page(map, *index, &coverage.rows, &mut shared)).collect()
}

fn page(map: &SiteMap<'_>, index: usize, coverage: &[CoverageRow], shared: &mut Shared<'_>) -> OperatorPage {
    let (op, input) = (map.op(index), map.input);
    let model = &input.checked.model;
    // An alias has the body, rules and gradients of the operator that it names.
    let meant = op.alias_of.and_then(|id| model.ops.get(id.0)).unwrap_or(op);
    let described = describe::describe_with(input.checked, op, shared);
    let shared_part = op.alias_of.map(|_| describe::describe_with(input.checked, meant, shared));
    let differentiated = shared_part.as_ref().unwrap_or(&described);
    let links = map.links_of(index);
    let place = |text: &str| place(text, &input.config.spec, input.source_url.as_ref());
    let results = input.results.and_then(|results| results.operator(&op.name));
    let body = &meant.body;
    let expression = body.pointwise.as_ref().or(body.composite.as_ref());
    let calls = described.decomposes_to.iter().flat_map(|composition| &composition.calls);
    let kernel = |kernel: &DescribedKernel| KernelRow {
        backend: if kernel.backend == "any" { "Every backend".to_owned() } else { kernel.backend.clone() },
        kind: kernel.kind,
        text: kernel.text.clone(),
        place: kernel.source.as_deref().map(&place),
        dtypes: kernel.dtypes.join(", "),
        signature: kernel.signature.as_ref().map(|text| highlight(text, "rust")),
    };
    let errors = emit::errors_in_words(meant, model);
    let errors = errors.iter().map(|line| markdown::inline(line, &links));
    let rows = fields::results(op, meant, model, &links);
    OperatorPage {
        index,
        name: op.name.clone(),
        badges: badges(op, meant),
        doc: markdown::render(&op.doc, 1, &links).html,
        deprecated: deprecated(map, op),
        alias_of: op.alias_of.and_then(|id| model.ops.get(id.0)).map(|op| map.operator(&op.name)),
        schema: highlight(&op.signature, "c"),
        forms: forms(map, op, meant, &described),
        definition: typeset::definition(model, op),
        expression: expression.map(|expr| print(expr, meant, model)),
        expression_of: if body.pointwise.is_some() { "Each element" } else { "In terms of other operators" },
        calls: calls.map(|name| map.operator(name)).collect(),
        plot: picture(model, op),
        flops: operations(map, meant),
        arguments: fields::arguments(op, &links),
        sizes: sizes::in_symbols(op, meant, model, &rows, input.results),
        results: rows,
        example: example(op, meant, input.results),
        gradients: gradients::sentence(meant),
        derivatives: gradients::rows(model, meant),
        forward: gradients::forward(differentiated),
        second_order: gradients::second_order(differentiated, meant),
        determinism: match op.facts.deterministic {
            true => "Equal inputs give equal results, whatever the number of threads.",
            false => "Equal inputs may give other results.",
        },
        backends: backends(op, coverage),
        tests: results.and_then(|results| tests::table(&results.cells)),
        kernels: described.kernels.iter().map(kernel).collect(),
        timings: results.map(|results| tests::timings(&results.timings)).unwrap_or_default(),
        errors: errors.collect(),
        names: names(map, op, &described.names),
        used_by: callers(map, &described),
        declared: place(&op.location),
        entry: highlight(input.checked.sources.slice(op.entry).trim_end(), "yaml"),
    }
}

/// The plot of an operator, if it has one.
fn picture(model: &Model, op: &Op) -> Option<String> {
    match plot(model, op) {
        Plot::Svg(svg) => Some(svg),
        Plot::None(_) => None,
    }
}

fn badges(op: &Op, meant: &Op) -> Vec<Badge> {
    let mut badges = Vec::new();
    let mut add = |text: &str, class: &'static str| badges.push(Badge { text: text.to_owned(), class });
    let body = &meant.body;
    if op.facts.deprecated.is_some() {
        add("deprecated", "warn");
    }
    if op.alias_of.is_some() {
        add("another name", "plain");
    }
    if body.pointwise.is_some() {
        add("pointwise", "kind");
    } else if body.composite.is_some() {
        add("composition", "kind");
    }
    if body.view.is_some() {
        add("view", "kind");
    } else if !body.kernels.is_empty() {
        add("kernel", "kind");
    } else if body.host.is_some() {
        add("function of the host", "kind");
    }
    if !op.facts.deterministic {
        add("not deterministic", "warn");
    }
    if op.facts.backward_only {
        add("for formulas only", "plain");
    }
    if let Some(version) = &op.facts.since {
        add(&format!("since {version}"), "plain");
    }
    for tag in &op.facts.tags {
        add(tag, "plain");
    }
    badges
}

fn deprecated(map: &SiteMap<'_>, op: &Op) -> Option<String> {
    let deprecated = op.facts.deprecated.as_ref()?;
    let since = deprecated.since.as_ref().map(|version| format!(" since {version}")).unwrap_or_default();
    let instead = deprecated.instead.as_ref().map(|(name, _)| format!(" Use `{name}` instead."));
    let text = format!("Deprecated{since}.{}", instead.unwrap_or_default());
    Some(markdown::inline(&text, &map.links("", "../")))
}

/// Rust functions, methods and operators, and calls by name.
fn forms(map: &SiteMap<'_>, op: &Op, meant: &Op, described: &describe::DescribedOperator) -> Vec<FormRow> {
    let links = map.links("", "../");
    let form = |word: &str| match word {
        "inplace" => (Form::Inplace, "in place"),
        "out" => (Form::Out, "out"),
        _ => (Form::Functional, "function"),
    };
    let mut rows: Vec<FormRow> = Vec::new();
    for function in &described.functions {
        let (form, title) = form(function.form);
        let code = highlight(&function.function, "rust");
        match rows.iter_mut().find(|row| row.title == title) {
            Some(row) => row.code.push_str(&format!("\n{code}")),
            None => rows.push(FormRow {
                title: title.to_owned(),
                code,
                note: emit::form_in_words(op, form).map(|text| markdown::inline(&text, &links)),
            }),
        }
    }
    let mut more = |title: &str, code: Vec<String>| {
        if !code.is_empty() {
            let code = code.join("\n");
            rows.push(FormRow { title: title.to_owned(), code: highlight(&code, "rust"), note: None });
        }
    };
    let methods: Vec<String> =
        described.functions.iter().filter_map(|function| function.method.clone()).collect();
    more("method", methods);
    more("operator", described.operators.clone());
    more("by name", described.names.iter().map(|name| format!("call({:?}, …)", name.name)).collect());
    let declared = python::declarations(op, meant).join("\n");
    if !declared.is_empty() {
        rows.push(FormRow { title: "Python".to_owned(), code: highlight(&declared, "python"), note: None });
    }
    rows
}

fn operations(map: &SiteMap<'_>, op: &Op) -> Option<String> {
    match (&op.flops, &op.body.pointwise) {
        (Some(formula), _) => Some(print(formula, op, &map.input.checked.model)),
        (None, Some(element)) => Some(match flops::of_element(element) {
            0 => return None,
            count => format!("{count} * numel(result)"),
        }),
        (None, None) => None,
    }
}

/// The recorded example; another name's own program has the output of the program of the operator that is meant.
fn example(op: &Op, meant: &Op, results: Option<&Results>) -> Option<ExampleText> {
    let recorded = |op: &Op| results.and_then(|results| results.operator(&op.name)?.examples.first());
    let worked = || emit::worked(op, meant).map(|worked| worked.code);
    let (code, output) = match recorded(op) {
        Some(example) => (example.code.clone(), Some(example.output.clone())),
        None => (worked()?, recorded(meant).map(|example| example.output.clone())),
    };
    let unexecuted = match results {
        Some(_) => "Not executed: the recorded test run has no output of it.",
        None => "Not executed: this site was generated without results of a test run.",
    };
    Some(ExampleText { code: highlight(&code, "rust"), output, unexecuted })
}

/// The dtypes of the backends that compute it at all.
fn backends(op: &Op, coverage: &[CoverageRow]) -> Vec<BackendRow> {
    let rows = coverage.iter().filter(|row| row.op == op.name && !row.forward.is_empty());
    let cells = |row: &CoverageRow| {
        let mark =
            |dtype: &DType| match (row.forward.contains(&dtype.name()), row.backward.contains(&dtype.name()))
            {
                (true, true) => "●∂",
                (true, false) => "●",
                (false, _) => "–",
            };
        DType::ALL.iter().map(mark).collect()
    };
    let named = Backend::ALL.into_iter().flat_map(|backend| {
        rows.clone().filter(move |row| row.backend == backend.key()).map(move |row| (backend.key(), row))
    });
    named.map(|(name, row)| BackendRow { name, cells: cells(row) }).collect()
}

/// Names here: of its forms, of aliases, of other libraries as the spec and the table beside it have them.
fn names(map: &SiteMap<'_>, op: &Op, forms: &[describe::Name]) -> Vec<NameRow> {
    let plain = |name: &str| PageLink { title: name.to_owned(), page: None };
    let row = |library: &str, names: Vec<PageLink>| NameRow { library: library.to_owned(), names };
    let mut rows = vec![row("Here", forms.iter().map(|name| plain(&name.name)).collect())];
    let model = &map.input.checked.model;
    let is_alias = |other: &&Op| {
        other.alias_of.and_then(|id| model.ops.get(id.0)).is_some_and(|meant| meant.name == op.name)
    };
    let aliases: Vec<PageLink> =
        model.ops.iter().filter(is_alias).map(|alias| map.operator(&alias.name)).collect();
    if !aliases.is_empty() {
        rows.push(row("Aliases", aliases));
    }
    let unlike = &model.foreign_names.unlike;
    let advised = |name: &str| match unlike.iter().find(|(known, ..)| known == name) {
        Some((_, advice, _)) => plain(&format!("{name}, which differs: {}", advice.replace('`', ""))),
        None => plain(name),
    };
    for (library, name) in map.input.names.of(op) {
        rows.push(row(library, name.split_whitespace().map(advised).collect()));
    }
    if !op.facts.known_as.is_empty() {
        rows.push(row("Also found as", op.facts.known_as.iter().map(|name| plain(name)).collect()));
    }
    rows
}

fn callers(map: &SiteMap<'_>, described: &describe::DescribedOperator) -> Vec<Caller> {
    let caller = |used: &describe::Use| {
        let PageLink { title, page } = map.operator(&used.op);
        Caller { title, page, place: used.place.clone() }
    };
    described.used_by.iter().map(caller).collect()
}
