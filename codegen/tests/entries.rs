//! A valid spec gives its entries, with the span of every value.

use opsmith_codegen::diagnostics::{Diagnostics, SourceMap};
use opsmith_codegen::spec::document::Document;
use opsmith_codegen::spec::document::keys::KeyName;
use opsmith_codegen::spec::yaml;

const SPEC: &str = r#"edition: 1
include: more.yaml
functions:
- func: exp(x)
  dtypes: [float, complex]
  derivative: {x: exp(x)}
ops:
- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  doc: |
    Adds.

    With broadcasting.
  variants: [functional, inplace, out]
  view: false
  since: 1.10
  derivatives:
    self: grad
    other: grad * alpha
- {func: neg(Tensor self) -> Tensor, tags: no, dispatch: {CPU: math::neg, CUDA: neg}}
"#;

fn read(text: &str) -> (SourceMap, Document) {
    let mut sources = SourceMap::new();
    let source = sources.add("ops.yaml", text);
    let mut diagnostics = Diagnostics::new();
    let root = yaml::parse(&sources, source, &mut diagnostics);
    let document = root.and_then(|root| Document::from_node(&root, &sources, &mut diagnostics));
    assert!(diagnostics.is_empty(), "{:?}", diagnostics.sorted().next());
    (sources, document.expect("the spec has entries"))
}

#[test]
fn entries_and_values() {
    let (sources, document) = read(SPEC);
    assert_eq!(document.edition, 1);
    assert_eq!(document.include.iter().map(|path| path.as_str()).collect::<Vec<_>>(), ["more.yaml"]);

    let [exp] = document.functions.as_slice() else { panic!("one function") };
    assert_eq!(exp.func.as_str(), "exp(x)");
    assert_eq!(exp.texts(KeyName::Dtypes).len(), 2);
    assert_eq!(exp.text_map(KeyName::Derivative)[0].1.as_str(), "exp(x)");

    let [add, neg] = document.ops.as_slice() else { panic!("two operators") };
    assert_eq!(add.text(KeyName::Doc).expect("a text").as_str(), "Adds.\n\nWith broadcasting.\n");
    assert_eq!(add.flag(KeyName::View), Some(false));
    // Scalars stay as written: neither a number nor a `bool`.
    assert_eq!(add.text(KeyName::Since).expect("a text").as_str(), "1.10");
    assert_eq!(neg.texts(KeyName::Tags)[0].as_str(), "no");
    assert!(add.text(KeyName::Pointwise).is_none());

    let derivatives = add.text_map(KeyName::Derivatives);
    let (key, formula) = &derivatives[1];
    assert_eq!(key.text, "other");
    assert_eq!(sources.location(key.span), "ops.yaml:18:5");
    assert_eq!(sources.location(formula.span_within(7..12, &sources)), "ops.yaml:18:19");
    assert_eq!(sources.slice(formula.span_within(7..12, &sources)), "alpha");

    let mut diagnostics = Diagnostics::new();
    let schema = neg.parse_schema(&sources, &mut diagnostics).expect("a good signature");
    assert_eq!(schema.to_string(), neg.func.as_str());
    assert!(neg.entries.iter().map(|entry| entry.key.text.as_str()).eq(["func", "tags", "dispatch"]));
}

#[test]
fn aliases_stand_for_their_values() {
    let text = "edition: 1\nops:\n- func: f() -> ()\n  tags: &t [a, b]\n- func: g() -> ()\n  tags: *t\n";
    let (sources, document) = read(text);
    let tags = document.ops[1].texts(KeyName::Tags);
    assert_eq!(tags.iter().map(|tag| tag.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(sources.location(tags[1].span()), "ops.yaml:4:16");
    // The entry ends where the alias is written, not with its value.
    assert_eq!(sources.slice(document.ops[1].span), "func: g() -> ()\n  tags: *t");
}
