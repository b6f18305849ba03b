//! `opsmith fmt`: its output, and that it preserves every input's meaning.

mod support;

use std::path::Path;

use opsmith_codegen::spec::yaml::{self, Node, NodeKind};
use opsmith_codegen::{Config, diagnostics, pipeline};
use opsmith_tools::fmt::{NotFormatted, WIDTH, format};
use proptest::prelude::*;
use support::specs::{Choices, spec};

/// The canonical form, which must be its own canonical form.
fn formatted(text: &str) -> String {
    let once = match format("spec.yaml", text) {
        Ok(once) => once,
        Err(NotFormatted::Defect(reason)) => panic!("{reason}:\n{text}"),
        Err(NotFormatted::Mistakes(sources, mistakes)) => {
            let first = mistakes.sorted().next().expect("there are mistakes");
            panic!("{}\n{text}", diagnostics::render(&sources, first, false))
        }
    };
    match format("spec.yaml", &once) {
        Ok(twice) => assert_eq!(twice, once, "formatted twice"),
        Err(_) => panic!("the result is not accepted:\n{once}"),
    }
    once
}

#[track_caller]
fn check(input: &str, expected: &str) {
    assert_eq!(formatted(input), expected);
}

#[test]
fn keys_get_their_order_and_comments_go_with_them() {
    check(
        "\
# The file.

ops:
  -   derivatives: {self: grad}   # its gradient
      # What it is.
      doc: 'A thing.'

      func: 'thing(Tensor self) -> Tensor'
      # at the end

  # Another.
  - func: \"other(Tensor a, Tensor b) -> Tensor\"
edition: \"1\"
# The end.
",
        "\
# The file.

edition: \"1\"

ops:
- func: thing(Tensor self) -> Tensor
  # What it is.
  doc: A thing.
  derivatives: {self: grad}  # its gradient
  # at the end

# Another.
- func: other(Tensor a, Tensor b) -> Tensor

# The end.
",
    );
}

#[test]
fn comments_in_brackets_open_the_brackets() {
    check(
        "\
edition: 1
ops:
- func: f(Tensor a) -> Tensor
  check: [a.dim() == 1, # one
    # two
    \"a.size(0) == f(1, 2)\" # three
    # four
  ] # five
",
        "\
edition: 1

ops:
- func: f(Tensor a) -> Tensor
  check:  # five
  - a.dim() == 1  # one
  # two
  - a.size(0) == f(1, 2)  # three
    # four
",
    );
}

#[test]
fn blocks_of_text_keep_their_lines() {
    check(
        "\
edition: 1
ops:
- func: f(Tensor a) -> Tensor
  doc: |  # a head

      First.

        Deeper.
  decompose: >-
     a +
     a

     + a
  # Behind it.
  shape: |-
    follow(a)
",
        "\
edition: 1

ops:
- func: f(Tensor a) -> Tensor
  doc: |2  # a head

    First.

      Deeper.
  # Behind it.
  shape: |-
    follow(a)
  decompose: >-
    a + a

    + a
",
    );
}

#[test]
fn long_lines_are_broken_where_text_can_be() {
    let arguments: Vec<String> = (0..12).map(|index| format!("Tensor argument_{index}")).collect();
    let words = "word ".repeat(40);
    let text = format!(
        "edition: 1\nops:\n- func: f({}) -> Tensor\n  doc: {}\n  tags: [{}]\n",
        arguments.join(", "),
        words.trim(),
        words.trim().replace(' ', ", "),
    );
    let formatted = formatted(&text);
    assert!(formatted.lines().all(|line| line.len() <= WIDTH), "{formatted}");
    assert!(formatted.contains(",\n      Tensor argument_"), "{formatted}");
    assert!(formatted.contains("  tags:\n  - word\n"), "{formatted}");
}

#[test]
fn quotes_stand_where_they_say_something() {
    check(
        "edition: 1\nops:\n- {func: 'f(Tensor a) -> Tensor', since: '0.1', operator: \"+\", tags: ['a', 'b, c', 'd: e', '', \"say \\\"it\\\"\", 'f::g']}\n",
        "edition: 1\n\nops:\n- {func: f(Tensor a) -> Tensor, since: \"0.1\", tags: [a, \"b, c\", \"d: e\", \"\", say \"it\", f::g], operator: \"+\"}\n",
    );
}

#[test]
fn every_list_of_entries_has_its_order() {
    check(
        "declarations:\n- {doc: D, func: d(Tensor a) -> Tensor}\nfunctions:\n- {rust: m::f, func: f(x)}\nedition: 1\n",
        "edition: 1\n\nfunctions:\n- {func: f(x), rust: m::f}\n\ndeclarations:\n- {func: d(Tensor a) -> Tensor, doc: D}\n",
    );
}

#[test]
fn anchors_and_aliases_stay() {
    check(
        "edition: 1\nops:\n- func: f(Tensor a) -> Tensor\n  variants: &forms [functional,out]\n- variants: *forms\n  func: g(Tensor a) -> Tensor\n  tags: [*t]\n- func: h(Tensor a) -> Tensor\n  tags: &t\n  - x\n"
            .replace("  tags: [*t]\n", "")
            .as_str(),
        "edition: 1\n\nops:\n- func: f(Tensor a) -> Tensor\n  variants: &forms [functional, out]\n\n- func: g(Tensor a) -> Tensor\n  variants: *forms\n\n- func: h(Tensor a) -> Tensor\n  tags: &t\n  - x\n",
    );
}

#[test]
fn files_with_mistakes_are_refused() {
    for text in
        ["edition: 1\nops:\n- fnc: x\n", "edition: [1\n", "", "edition: 1\nops:\n- func: a\n  func: b\n"]
    {
        assert!(matches!(format("spec.yaml", text), Err(NotFormatted::Mistakes(..))), "{text}");
    }
}

fn repository(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The generated code of a spec, without the lines of declarations' locations.
fn generated(config: &Config) -> Vec<String> {
    let checked = pipeline::check(config).unwrap();
    assert!(!checked.diagnostics.has_errors());
    let files = pipeline::generate(&checked, config).unwrap();
    let without_lines = |text: &str| {
        let mut out = String::new();
        let mut rest = text;
        while let Some(place) = rest.find(".yaml:") {
            let (before, after) = rest.split_at(place + ".yaml:".len());
            out.push_str(before);
            rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
        }
        out + rest
    };
    files.iter().map(|file| without_lines(&file.text)).collect()
}

#[test]
fn the_stock_spec_means_the_same_whatever_its_form() {
    let config = Config::stock(repository("ops.yaml"));
    let folder = std::env::temp_dir().join(format!("opsmith-fmt-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("ops")).unwrap();
    let text = std::fs::read_to_string(&config.spec).unwrap();
    let included = opsmith_tools::fmt::includes(&text);
    assert!(included.len() > 10);
    for file in included.iter().map(String::as_str).chain(["ops.yaml"]) {
        let text = std::fs::read_to_string(repository(file)).unwrap();
        assert_eq!(formatted(&text), text, "run `cargo opsmith fmt ops.yaml`");
        let shuffled = signatures_last(&text);
        assert_eq!(shuffled == text, !text.contains("\nops:\n"), "{file}");
        std::fs::write(folder.join(file), formatted(&shuffled)).unwrap();
    }
    let mut reordered = Config::stock(folder.join("ops.yaml"));
    reordered.library = config.library.clone();
    assert!(generated(&config) == generated(&reordered));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn every_spec_of_the_repository_can_be_formatted() {
    for path in ["examples/custom_op/ops.yaml", "tests/fixture/spec.yaml"] {
        formatted(&std::fs::read_to_string(repository(path)).unwrap());
    }
}

/// The text with the key `func` at the end of each operator's entry.
fn signatures_last(text: &str) -> String {
    let Some((head, ops)) = text.split_once("\nops:\n") else { return text.to_owned() };
    let mut out = format!("{head}\nops:\n");
    let mut lines = ops.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(signature) = line.strip_prefix("- func:") else {
            out.push_str(&format!("{line}\n"));
            continue;
        };
        let mut func = format!("  func:{signature}\n");
        while let Some(more) = lines.next_if(|line| line.starts_with("      ")) {
            func.push_str(&format!("{more}\n"));
        }
        let mut body = String::new();
        while let Some(line) = lines.next_if(|line| line.is_empty() || line.starts_with(' ')) {
            body.push_str(&format!("{line}\n"));
        }
        let kept = body.trim_end().len() + 1;
        let (keys, blanks) = body.split_at(kept.min(body.len()));
        out.push_str(&format!("- {}{func}{blanks}", keys.trim_start()));
    }
    out
}

fn tree(text: &str) -> Node {
    let mut sources = diagnostics::SourceMap::new();
    let mut found = diagnostics::Diagnostics::default();
    let source = sources.add("spec.yaml", text);
    yaml::parse(&sources, source, &mut found).expect("usable YAML")
}

/// A tree as text independent of the order of keys.
fn canonical(node: &Node) -> String {
    match &node.kind {
        NodeKind::Null => "~".into(),
        NodeKind::Broken => panic!("broken"),
        NodeKind::Scalar(scalar) => format!("{:?}", scalar.text),
        NodeKind::Seq(items) => format!("{:?}", items.iter().map(canonical).collect::<Vec<_>>()),
        NodeKind::Map(entries) => {
            let mut entries: Vec<String> =
                entries.iter().map(|(key, value)| format!("{:?}: {}", key.text, canonical(value))).collect();
            entries.sort();
            format!("{entries:?}")
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_comment_is_lost_and_nothing_changes(choices in proptest::collection::vec(any::<u8>(), 0..600)) {
        let (text, comments) = spec(&mut Choices::new(choices));
        let formatted = formatted(&text);
        for comment in &comments {
            // Each comment has a unique number.
            prop_assert_eq!(formatted.matches(&format!("{comment}.")).count(), 1, "{}\n{}\n{}", comment, text, formatted);
        }
        prop_assert_eq!(canonical(&tree(&text)), canonical(&tree(&formatted)), "{}\n{}", text, formatted);
    }
}

#[test]
fn formulas_stand_behind_notations_and_keep_their_lines() {
    check(
        "\
edition: 1
ops:
- func: f(Tensor self) -> Tensor
  shape: follow(self)
  formula: |-
    y_i = exp({self}_i) / s
    s = Σ_j exp({self}_j), \"over\" j
  dtype: follow(self)
  notation: f {self}
  doc: F.
- func: g(Tensor self) -> Tensor
  variants: [functional]
  formula: \"y = Σ_i {self}_i\"
  doc: G.
",
        "\
edition: 1

ops:
- func: f(Tensor self) -> Tensor
  doc: F.
  notation: f {self}
  formula: |-
    y_i = exp({self}_i) / s
    s = Σ_j exp({self}_j), \"over\" j
  shape: follow(self)
  dtype: follow(self)

- func: g(Tensor self) -> Tensor
  doc: G.
  formula: y = Σ_i {self}_i
  variants: [functional]
",
    );
}
