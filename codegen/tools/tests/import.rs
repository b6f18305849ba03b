//! PyTorch's two files become one spec, without loss.
//!
//! The counts were found by a separate program; see `data/pytorch`.

use std::sync::OnceLock;

use opsmith_codegen::config::Config;
use opsmith_codegen::diagnostics::{Diagnostics, SourceMap, render};
use opsmith_codegen::model::{Model, Note, Op};
use opsmith_codegen::pipeline::{self, Checked};
use opsmith_codegen::spec::yaml::{self, Node, NodeKind};
use opsmith_tools::import::{self, Import, ImportRow, Input};

const NATIVE: &str = include_str!("../../tests/data/pytorch/native_functions.yaml");
const DERIVATIVES: &str = include_str!("../../tests/data/pytorch/derivatives.yaml");

fn import(native: &str, derivatives: &str) -> Import {
    let input = |name, text| Input { name, text };
    import::import(input("native_functions.yaml", native), input("derivatives.yaml", derivatives))
        .unwrap_or_else(|refused| {
            let shown: Vec<String> =
                refused.diagnostics.sorted().map(|error| render(&refused.sources, error, false)).collect();
            panic!("{}", shown.join("\n\n"))
        })
}

/// The real files, imported once.
fn imported() -> &'static (Import, Checked) {
    static IMPORTED: OnceLock<(Import, Checked)> = OnceLock::new();
    IMPORTED.get_or_init(|| {
        let import = import(NATIVE, DERIVATIVES);
        let checked = pipeline::check_text("torch.yaml", &import.spec);
        (import, checked)
    })
}

fn row(feature: &str) -> &'static ImportRow {
    let rows = &imported().0.report.rows;
    rows.iter().find(|row| row.feature == feature).unwrap_or_else(|| panic!("no row `{feature}`"))
}

fn tree(text: &str) -> Node {
    let mut sources = SourceMap::new();
    let source = sources.add("file", text);
    yaml::parse(&sources, source, &mut Diagnostics::new()).expect("the file is YAML")
}

#[test]
fn the_spec_has_no_mistakes() {
    let diagnostics = &imported().1.diagnostics;
    assert_eq!((diagnostics.error_count(), diagnostics.warning_count()), (0, 0));
}

#[test]
fn counts_are_as_published() {
    let published = [
        ("func", 2590),
        ("dispatch", 1663),
        ("kernels of dispatch", 5630),
        ("variants", 1466),
        ("tags", 904),
        ("device_check", 878),
        ("python_module", 619),
        ("autogen", 494),
        ("structured_delegate", 390),
        ("structured", 279),
        ("structured_inherits", 155),
        ("device_guard", 118),
        ("cpp_no_default_args", 32),
        ("manual_cpp_binding", 31),
        ("category_override", 15),
        ("use_const_ref_for_mutable_tensors", 11),
        ("precomputed", 9),
        ("ufunc_inner_loop", 1),
        ("name", 688),
        ("backward formulas", 785),
        ("explicit forward formulas", 262),
        ("auto_linear", 124),
        ("auto_element_wise", 91),
        ("non_differentiable", 126),
        ("output_differentiability", 72),
        ("formulas by dispatch key", 14),
    ];
    for (feature, count) in published {
        assert_eq!(row(feature).count, count, "{feature}");
    }
    let rows = &imported().0.report.rows;
    assert_eq!(rows.len(), published.len(), "a field that nobody counted");
    assert!(rows.iter().all(|row| row.translated + row.kept == row.count));
}

#[test]
fn enough_formulas_are_translated() {
    let (backward, forward) = (row("backward formulas"), row("explicit forward formulas"));
    assert!(backward.translated >= 600, "{backward:?}");
    assert!(forward.translated >= 180, "{forward:?}");
    let report = &imported().0.report;
    let listed = |forward: bool| {
        let of_direction = report.opaque.iter().filter(move |formula| formula.forward == forward);
        of_direction
            .filter(|formula| !formula.text.starts_with("auto_") && formula.text != "non_differentiable")
    };
    assert_eq!(listed(false).count(), backward.kept);
    assert_eq!(listed(true).count(), forward.kept);
    assert!(report.opaque.iter().all(|formula| !formula.reason.is_empty()));
}

/// The operator of a full name, its own or that of a form.
fn owner<'m>(model: &'m Model, name: &str) -> Option<&'m Op> {
    model.ops.iter().find(|op| {
        let forms = [op.forms.inplace.as_deref(), op.forms.out.as_deref()];
        op.name == name || forms.contains(&Some(name))
    })
}

/// Independent of the importer's version, which is under test.
fn note(node: &Node) -> Note {
    match &node.kind {
        NodeKind::Null | NodeKind::Broken => Note::Null,
        NodeKind::Scalar(scalar) => Note::Text(scalar.text.clone()),
        NodeKind::Seq(items) => Note::List(items.iter().map(note).collect()),
        NodeKind::Map(entries) => {
            Note::Map(entries.iter().map(|(key, value)| (key.text.clone(), note(value))).collect())
        }
    }
}

fn inside<'n>(note: &'n Note, key: &str) -> Option<&'n Note> {
    match note {
        Note::Map(entries) => entries.iter().find(|(known, _)| known == key).map(|(_, value)| value),
        _ => None,
    }
}

fn words(note: &Note) -> Vec<String> {
    match note {
        Note::Text(text) => text.split(',').map(|word| word.trim().to_owned()).collect(),
        Note::List(items) => items.iter().flat_map(words).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn every_field_of_every_entry_is_somewhere() {
    let model = &imported().1.model;
    let root = tree(NATIVE);
    let mut lost = Vec::new();
    for entry in root.as_seq().unwrap_or_default() {
        let fields = entry.as_map().unwrap_or_default();
        let func = fields.iter().find(|(key, _)| key.text == "func").and_then(|(_, value)| value.as_text());
        let name = func.unwrap_or_default().split('(').next().unwrap_or_default();
        let Some(op) = owner(model, name) else {
            lost.push(name.to_owned());
            continue;
        };
        let origin = op.origin.as_ref().and_then(|origin| inside(origin, name));
        let supplied = op.supplied.as_ref().expect("an imported operator is supplied");
        for (key, value) in fields.iter().filter(|(key, _)| key.text != "func") {
            let value = note(value);
            let kept = origin.and_then(|origin| inside(origin, &key.text)) == Some(&value);
            let there = match (key.text.as_str(), &value) {
                ("dispatch", Note::Map(table)) => table.iter().all(|(backends, function)| {
                    backends.split(',').all(|backend| {
                        supplied.kernels.iter().any(|kernel| {
                            kernel.form == name
                                && kernel.backend == backend.trim()
                                && Note::Text(kernel.function.clone()) == *function
                        })
                    })
                }),
                ("tags", value) => op.facts.tags == words(value) || kept,
                _ => kept,
            };
            if !there {
                lost.push(format!("{name}: {}", key.text));
            }
        }
    }
    assert!(lost.is_empty(), "{} are lost: {}", lost.len(), lost.join(", "));
}

#[test]
fn every_formula_is_somewhere() {
    let (Import { spec, .. }, Checked { model, .. }) = imported();
    let root = tree(DERIVATIVES);
    let (mut lost, mut seen) = (Vec::new(), 0);
    let mut look = |name: &str, key: &str, value: &Node| {
        seen += 1;
        let op = owner(model, name);
        let arguments: Vec<&str> = key.split(',').map(str::trim).collect();
        let text = value.as_text().unwrap_or_default().trim();
        let there = op.is_some_and(|op| {
            let names = |indices: &[usize]| -> Vec<&str> {
                indices.iter().map(|index| op.args[*index].name.as_str()).collect()
            };
            let backward = op.derivatives.iter().any(|derivative| names(&derivative.arguments) == arguments);
            let silent = arguments.iter().all(|name| names(&op.non_differentiable).contains(name));
            let derivatives = op.origin.as_ref().and_then(|origin| inside(origin, "derivatives"));
            let kept = derivatives.is_some_and(|kept| match kept {
                Note::Map(kept) => kept.iter().any(|(_, value)| *value == Note::Text(text.to_owned())),
                _ => false,
            });
            let forward = op.arg_index(arguments[0]).is_none()
                && !matches!(op.forward, opsmith_codegen::model::Forward::None);
            backward || silent || kept || forward
        });
        if !there {
            lost.push(format!("{name}: {key}"));
        }
    };
    for entry in root.as_seq().unwrap_or_default() {
        let fields = entry.as_map().unwrap_or_default();
        let func = fields.iter().find(|(key, _)| key.text == "name").and_then(|(_, value)| value.as_text());
        let name = func.unwrap_or_default().split('(').next().unwrap_or_default();
        for (key, value) in fields {
            match key.text.as_str() {
                "name" | "output_differentiability" => {}
                "dispatch" => {
                    for (_, group) in value.as_map().unwrap_or_default() {
                        let formulas = group.as_map().unwrap_or_default();
                        formulas.iter().for_each(|(key, value)| look(name, &key.text, value));
                    }
                }
                key => look(name, key, value),
            }
        }
    }
    assert!(lost.is_empty(), "{} are lost: {}", lost.len(), lost.join(", "));
    assert_eq!(seen, 785 + 477 + 126);
    assert!(spec.contains("opaque("));
}

#[test]
fn code_is_generated_for_all_of_it() {
    let checked = &imported().1;
    let config = Config::stock("torch.yaml");
    let files = pipeline::generate(checked, &config).unwrap_or_else(|failure| panic!("{failure}"));
    let text = |name: &str| &files.iter().find(|file| file.name == name).expect("a generated file").text;
    let definitions = text("defs.rs").matches("\npub static ").count();
    let callable = checked.model.ops.iter().filter(|op| op.is_callable()).count();
    assert_eq!(definitions, callable);
    // Types that this project lacks: a storage, a stream, a quantisation scheme.
    assert_eq!(checked.model.ops.len() - callable, 4);
    assert!(text("functions.rs").contains("call::supplied("));
}

/// Formulas of a small file, translated.
#[track_caller]
fn check(native: &str, derivative: &str, expected: &[(&str, &str)]) {
    let natives = format!(
        "{native}- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\n\
         - func: mul.Tensor(Tensor self, Tensor other) -> Tensor\n- func: mul.Scalar(Tensor self, Scalar other) -> Tensor\n\
         - func: neg(Tensor self) -> Tensor\n- func: sgn(Tensor self) -> Tensor\n\
         - func: zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor\n"
    );
    let import = import(&natives, derivative);
    for (key, formula) in expected {
        let line = format!("    {key}: {formula}\n");
        assert!(import.spec.contains(&line), "no `{line}` in\n{}", import.spec);
    }
}

#[test]
fn formulas_are_translated() {
    check(
        "- func: f(Tensor self, Tensor? weight, int[] dims, Scalar alpha) -> Tensor\n",
        "- name: f(Tensor self, Tensor? weight, int[] dims, Scalar alpha) -> Tensor\n  \
         self: \"weight.defined() ? grad * -self.sgn() : helper_symint(grad, self.sym_sizes(), {1, 2}, alpha.conj())\"\n  \
         weight: at::zeros_symint(self.sym_sizes(), grad.options()) * grad\n",
        &[
            (
                "self",
                "if weight.is_some() { grad * -self.sgn() } else { helper(grad, self.sizes(), [1, 2], alpha.conj()) }",
            ),
            (
                "weight",
                "zeros(self.sizes(), dtype = grad.dtype(), layout = grad.layout(), device = grad.device()) * grad",
            ),
        ],
    );
}

#[test]
fn what_is_not_translated_is_kept_with_its_reason() {
    let native = "- func: f(Tensor self) -> Tensor\n";
    let derivative =
        "- name: f(Tensor self) -> Tensor\n  self: \"retain_variables ? grad : grad.odd<int>()\"\n";
    check(native, derivative, &[("self", "'opaque(\"retain_variables ? grad : grad.odd<int>()\")'")]);
    let report = import(native, derivative).report;
    assert_eq!(report.opaque.len(), 1);
    assert_eq!(report.opaque[0].reason, "`retain_variables` is known to PyTorch's generated code only");
}

#[test]
fn mistakes_in_the_files_have_places() {
    let input = |name, text| Input { name, text };
    let refused = import::import(
        input("native.yaml", "- func: f(Tensr self) -> Tensor\n- variants: function\n"),
        input("derivatives.yaml", "- name: f(Tensor self)\n"),
    );
    let Err(refused) = refused else { panic!("the files were accepted") };
    let places: Vec<String> =
        refused.diagnostics.sorted().map(|error| refused.sources.location(error.primary.span)).collect();
    assert_eq!(places, ["native.yaml:1:11", "native.yaml:2:3", "derivatives.yaml:1:23"]);
}
