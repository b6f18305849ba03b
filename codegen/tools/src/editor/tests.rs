//! Each key that names arguments: completion, hover, definition, references and renaming at every name in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use opsmith_codegen::config::Config;
use opsmith_codegen::pipeline::{self, Checked, Kept};
use opsmith_codegen::spec::document::KeyName;

use super::naming::{TextForm, naming};
use super::rename::{edit, edited_text};
use super::{
    Cursor, EditedSpec, FilePart, FileRange, Referent, ReplacedText, argument, complete, definitions, hover,
    references, referent, rename,
};

/// A value of each key that names arguments, for an entry with a signature. The argument is `at`, and `‹at›` marks its names.
const CASES: &[(KeyName, &str, &str)] = &[
    (KeyName::Ignored, "f(Tensor self, int at) -> Tensor", "[‹at›]"),
    (KeyName::Ignored, "f(Tensor self, int at) -> Tensor", "‹at›"),
    (KeyName::Descriptions, "f(Tensor self, int at) -> Tensor", "{‹at›: The place to look at.}"),
    (KeyName::ArgumentAliases, "f(Tensor self, int at) -> Tensor", "\n    \"‹at›\": [dim, axis]"),
    (KeyName::Notation, "f(Tensor self, int at) -> Tensor", "Σ_{‹at›} {self}"),
    (KeyName::Notation, "f(Tensor self, int at) -> Tensor", "\"{self}^{‹at›} at\""),
    (KeyName::Formula, "f(Tensor self, int at) -> Tensor", "y_i = {self}_{i, {‹at›}}^{‹at›}"),
    (
        KeyName::Formula,
        "f(Tensor self, int at) -> Tensor",
        "|-\n    y_i = \"all {at}\" λ\n\n    λ = Σ_{‹at›} {self}_{ ‹at› }",
    ),
    (
        KeyName::Formula,
        "f(Tensor self, int at) -> Tensor",
        "\"y_\\u0069 = \\\"all {at}\\\" {self} \\\n      {‹at›}\"",
    ),
    (KeyName::Formula, "f(Tensor self, int at) -> Tensor", "'{‹at›} ≤ y = \"it''s {at}\" {‹at›}'"),
    (KeyName::Formula, "f(Tensor self, int at) -> Tensor", ">\n    y = {self}\n    + {‹at›}\n"),
    (
        KeyName::Formula,
        "f(Tensor self, int at) -> (Tensor values, Tensor places)",
        "\"{values} = {‹at›}, {places} = {self}\"",
    ),
    (KeyName::Inplace, "f(Tensor at) -> (Tensor values, Tensor places)", "{‹at›: values}"),
    (KeyName::Method, "f(Tensor self, Tensor at) -> Tensor", "‹at›"),
    (KeyName::Attributes, "f(Tensor self, int at) -> Tensor", "{‹at›: {min: 0}}"),
    (KeyName::Attributes, "f(Tensor self, int at) -> Tensor", "\n    ‹at›:\n      enum: {at: 0, near: 1}"),
    (KeyName::Check, "f(Tensor self, int at) -> Tensor", "[‹at› >= 0, self.dim() > ‹at›]"),
    (KeyName::Check, "f(Tensor self, int at) -> Tensor", "\n  - ‹at› >= 0"),
    (KeyName::Contiguous, "f(Tensor self, Tensor at) -> Tensor", "[self, ‹at›]"),
    (KeyName::Contiguous, "f(Tensor self, Tensor at) -> Tensor", "\n  - self\n  - ‹at›"),
    (KeyName::Lines, "f(Tensor self, int at) -> Tensor", "‹at›"),
    (KeyName::Lines, "f(Tensor self, int[] at) -> Tensor", "last(‹at›)"),
    (KeyName::Rounded, "f(Tensor self, float at) -> Tensor", "[‹at›]"),
    (KeyName::Numbers, "f(Tensor self, Scalar at) -> Tensor", "{‹at›: held}"),
    (KeyName::ValueDepends, "f(Tensor self, Tensor at) -> Tensor", "{‹at›: required}"),
    (KeyName::Types, "f(Tensor self, Tensor at) -> Tensor", "{‹at›: int64}"),
    (KeyName::Present, "f(Tensor self, bool at) -> (Tensor values, Tensor? places)", "{places: ‹at›}"),
    (KeyName::Length, "f(Tensor self, int at) -> Tensor[]", "‹at›"),
    (KeyName::Shape, "f(Tensor self, int at) -> Tensor", "\"[‹at›, self.size(‹at›)]\""),
    (KeyName::RunSizes, "f(Tensor self, int at) -> Tensor", "{found: ‹at›}"),
    (KeyName::RunShape, "f(Tensor self, int at) -> Tensor", "'[‹at›]'"),
    (KeyName::Dtype, "f(Tensor self, Tensor at) -> Tensor", "promote(self, ‹at›)"),
    (KeyName::Compute, "f(Tensor self, Tensor at) -> Tensor", "promote(self, ‹at›)"),
    (
        KeyName::Combinations,
        "f(Tensor self, Tensor at) -> Tensor",
        "[{self: float32, ‹at›: int8, out: int8}]",
    ),
    (KeyName::Pointwise, "f(Tensor self, Tensor at) -> Tensor", "self + ‹at›"),
    (KeyName::Dispatch, "f(Tensor self, int at) -> Tensor", "{CPU: \"at::at(self, ‹at›)\"}"),
    (KeyName::Decompose, "f(Tensor self, int at) -> Tensor", "g(self.at(), ‹at›)"),
    (KeyName::Flops, "f(Tensor self, int at) -> Tensor", "‹at› * self.numel()"),
    (
        KeyName::Derivatives,
        "f(Tensor self, Tensor at) -> Tensor",
        "\n    self, ‹at›: (grad * ‹at›, |\n      grad)\n    self: {default: ‹at›, CPU: grad}",
    ),
    (KeyName::Forward, "f(Tensor self, Tensor at) -> Tensor", "{result: self_t * ‹at› + ‹at›_t}"),
    (KeyName::NoBuffer, "f(Tensor self, Tensor at) -> Tensor", "[‹at›]"),
    (KeyName::Samples, "f(Tensor self, int at) -> Tensor", "[{self: \"spread(2)\", ‹at›: 1}]"),
    (KeyName::Samples, "f(Tensor self, int at) -> Tensor", "\n  - self: spread(2)\n    ‹at›: 1"),
    (KeyName::Derivative, "f(at)", "{‹at›: result / ‹at›}"),
    (KeyName::Wirtinger, "f(at)", "{‹at›: [result, 2 * ‹at›]}"),
];

/// Keys with values that have no argument, or only one that is another thing: nothing is renamed in them.
const OTHERS: &[(KeyName, &str)] = &[
    (KeyName::Doc, "The place to look `at`."),
    (KeyName::Tolerance, "{gradient: {skip: Nothing happens at one.}}"),
    (KeyName::Names, "{out: at.out}"),
    (KeyName::RustName, "at"),
    (KeyName::Tags, "[at]"),
    (KeyName::KnownAs, "[at]"),
    (KeyName::Supplied, "{f: {CPU: at}}"),
    (KeyName::Origin, "{at: at}"),
];

/// A checked spec of one file.
struct Spec {
    text: String,
    checked: Checked,
    config: Config,
}

impl Spec {
    fn new(text: String) -> Spec {
        let config = Config::new("ops.yaml");
        let bytes = text.clone().into_bytes();
        let checked = pipeline::check_again(&config, &|_: &Path| Ok(bytes.clone()), &mut Kept::default());
        Spec { text, checked: checked.expect("the file is there"), config }
    }

    fn edited(&self) -> EditedSpec<'_> {
        EditedSpec { checked: &self.checked, known: &self.checked, config: &self.config }
    }

    fn rename(&self, offset: usize, new: &str) -> String {
        let cursor = Cursor::at(&self.text, offset);
        let open = |_: &Path| Ok(self.text.clone().into_bytes());
        let edits = rename(&self.edited(), &cursor, new, &open);
        let edits = edits.unwrap_or_else(|refusal| panic!("{refusal}: {}", self.text));
        edited_text(&self.text, edits.iter().collect())
    }
}

/// A spec with an entry, and the bytes of the names that are marked in it; the first is that of the signature.
fn marked(key: KeyName, func: &str, value: &str) -> (String, Vec<usize>) {
    let list = if func.contains("->") { "ops" } else { "functions" };
    let func = func.replace(" at", " ‹at›").replace("(at)", "(‹at›)");
    let space = if value.starts_with('\n') { "" } else { " " };
    let marked = format!("edition: 1\n{list}:\n- func: {func}\n  {}:{space}{value}\n", key.name());
    let marked = if key == KeyName::Doc { marked } else { format!("{marked}  doc: 🦀 at.\n") };
    let mut starts = Vec::new();
    let mut text = String::new();
    for part in marked.split('‹') {
        starts.push(text.len());
        text.push_str(&part.replace('›', ""));
    }
    let starts: Vec<usize> = starts.into_iter().skip(1).map(|start| start.max(1)).collect();
    (text, starts)
}

#[test]
fn every_key_that_names_arguments_has_a_case() {
    for key in KeyName::ALL {
        let naming = naming(*key);
        let in_texts = match naming.texts {
            TextForm::Other | TextForm::Prose => false,
            TextForm::Name(names) => names.have_arguments(),
            _ => true,
        };
        let has = CASES.iter().any(|(known, ..)| known == key);
        assert_eq!(has, in_texts || naming.keys.have_arguments(), "`{}`", key.name());
    }
}

#[test]
fn every_name_of_an_argument_is_found_and_renamed() {
    for (key, func, value) in CASES {
        let (text, starts) = marked(*key, func, value);
        let spec = Spec::new(text.clone());
        let edited = spec.edited();
        let place = |start: usize| FileRange {
            file: Path::new("ops.yaml").to_owned(),
            part: FilePart::Bytes { start, end: start + "at".len() },
        };
        let all: Vec<FileRange> = starts.iter().copied().map(place).collect();
        let mut renamed = text.clone();
        starts.iter().rev().for_each(|start| renamed.replace_range(*start..start + "at".len(), "height"));
        for start in &starts {
            let cursor = Cursor::at(&text, start + 1);
            let context = format!("byte {start} of\n{text}");
            let found = referent(&edited, &cursor);
            assert!(matches!(&found, Some(Referent::Argument(name)) if name == "at"), "{found:?}: {context}");
            let shown = hover(&edited, &cursor).expect("an argument has a text").markdown;
            assert!(shown.contains(" at\n"), "{shown}: {context}");
            assert_eq!(definitions(&edited, &cursor), all[..1], "{context}");
            assert_eq!(references(&edited, &cursor, true), all, "{context}");
            assert_eq!(references(&edited, &cursor, false), all[1..], "{context}");
            assert_eq!(spec.rename(start + 1, "height"), renamed, "{context}");
            if start != &starts[0] {
                let candidates = complete(&edited, &cursor, Path::new("ops.yaml"));
                assert!(candidates.iter().any(|found| found.text == "at"), "{candidates:#?}: {context}");
            }
        }
    }
}

#[test]
fn a_word_that_is_no_name_is_left_alone() {
    for (key, value) in OTHERS {
        let (text, starts) = marked(*key, "f(Tensor self, int at) -> Tensor", value);
        let renamed = Spec::new(text.clone()).rename(starts[0] + 1, "dim");
        assert_eq!(renamed, text.replacen("int at", "int dim", 1));
    }
}

#[test]
fn a_result_in_braces_is_explained() {
    let func = "f(Tensor y) -> (Tensor values, Tensor places)";
    let text =
        format!("edition: 1\nops:\n- func: {func}\n  formula: \"{{values}} = {{y}}, {{places}} = 1\"\n");
    let spec = Spec::new(text.clone());
    let cursor = Cursor::at(&text, text.find("{places").expect("it is there") + 2);
    let shown = hover(&spec.edited(), &cursor).expect("a result has a text").markdown;
    assert!(shown.contains("Tensor places") && shown.contains("a result of `f`"), "{shown}");
    let FilePart::Bytes { start, .. } = definitions(&spec.edited(), &cursor)[0].part else { panic!("bytes") };
    assert_eq!(Some(start), text.find("places"));
}

#[test]
fn braces_take_names_and_other_parts_words() {
    let complete_at = |func: &str, key: &str, value: &str| -> Vec<String> {
        let marked = format!("edition: 1\nops:\n- func: {func}\n  {key}: {value}\n");
        let text = marked.replacen('^', "", 1);
        let offset = marked.find('^').expect("a mark");
        // The last check read the entry before this value was typed.
        let spec = Spec::new(format!("edition: 1\nops:\n- func: {func}\n"));
        let found = complete(&spec.edited(), &Cursor::at(&text, offset), Path::new("ops.yaml"));
        found.into_iter().map(|candidate| format!("{}{}", candidate.text, candidate.suffix)).collect()
    };
    let func = "f(Tensor self, int at) -> (Tensor values, Tensor places)";
    let names = ["self", "at", "values", "places"];
    assert_eq!(complete_at(func, "formula", "y = exp({^"), names.map(|name| format!("{name}}}")));
    assert_eq!(complete_at(func, "formula", "\"y = exp({s^})\""), names);
    assert_eq!(complete_at(func, "notation", "Σ_{^}"), names[..2]);
    assert_eq!(complete_at(func, "notation", "a^"), [""; 0]);
    let words = complete_at(func, "formula", "|-\n    y = {self}\n    + N^");
    assert!(words.contains(&"NaN".to_owned()) && words.contains(&"argmax".to_owned()), "{words:?}");
    assert!(words.contains(&"otherwise".to_owned()) && !words.contains(&"self".to_owned()), "{words:?}");
    let both = complete_at(func, "formula", "y = x_{^}");
    assert!(both.contains(&"at".to_owned()) && both.contains(&"mod".to_owned()), "{both:?}");
    assert_eq!(complete_at(func, "formula", "y = \"all {^"), [""; 0]);
    assert_eq!(complete_at("f(Tensor y) -> Tensor", "formula", "'{^} = {y}'"), ["y", "result"]);
}

#[test]
fn a_name_that_an_index_has_is_refused() {
    let (text, starts) =
        marked(KeyName::Formula, "f(Tensor self, int at) -> Tensor", "y_i = {self}_{k}^{‹at›}");
    let spec = Spec::new(text);
    let cursor = Cursor::at(&spec.text, starts[0] + 1);
    let open = |_: &Path| Ok(spec.text.clone().into_bytes());
    for (new, expected) in
        [("k", "`{k}` in the formula"), ("i", "would have a mistake"), ("self", "exists already")]
    {
        let refusal = rename(&spec.edited(), &cursor, new, &open).expect_err("it means something else");
        assert!(refusal.to_string().contains(expected), "{refusal}");
    }
}

/// All arguments at once: the spec stays as correct as it is. Entries share values by anchors, so that equal names stay equal.
#[test]
fn the_stock_spec_has_no_mistakes_after_renaming() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops.yaml");
    let config = Config::stock(file);
    let checked = pipeline::check_again(&config, &|path: &Path| std::fs::read(path), &mut Kept::default());
    let checked = checked.expect("the files are there");
    let mut edits: BTreeMap<(PathBuf, usize), ReplacedText> = BTreeMap::new();
    for op in &checked.model.ops {
        // `y` in a formula is the result where no argument has that name.
        for arg in op.args.iter().filter(|arg| arg.name != "y") {
            let new = format!("{}_renamed", arg.name);
            for span in argument::argument(&checked, &op.name, &arg.name, true) {
                let edit = edit(&checked, span, &new).expect("the file was read");
                edits.insert((edit.file.clone(), edit.range.start), edit);
            }
        }
    }
    assert!(edits.len() > 5000, "{}", edits.len());
    let open = |path: &Path| {
        let text = std::fs::read_to_string(path)?;
        let own = edits.values().filter(|edit| edit.file == path).collect();
        Ok(edited_text(&text, own).into_bytes())
    };
    let renamed = pipeline::check_again(&config, &open, &mut Kept::default()).expect("the files are there");
    let mistakes: Vec<&str> = renamed.diagnostics.errors().map(|error| error.message.as_str()).collect();
    assert_eq!(mistakes, [""; 0]);
}
