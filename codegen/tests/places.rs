//! Places of the functions that kernels name, in folders made for it.

use std::fs;
use std::path::{Path, PathBuf};

use opsmith_codegen::code_places::CodePlaces;
use opsmith_codegen::{Config, pipeline};

/// A crate with a spec whose operators have these kernels.
struct Crate(PathBuf);

impl Crate {
    fn new(name: &str, kernels: &[&str]) -> Crate {
        let folder = std::env::temp_dir().join(format!("opsmith-places-{name}-{}", std::process::id()));
        // A folder of an earlier process with this number may be left.
        _ = fs::remove_dir_all(&folder);
        let own = Crate(folder);
        let entry = |(number, kernel): (usize, &&str)| {
            format!(
                "- func: op{number}(Tensor self) -> Tensor\n  doc: D.\n  shape: follow(self)\n  dtype: follow(self)\n  dispatch: {{CPU: \"{kernel}\"}}\n"
            )
        };
        let entries: String = kernels.iter().enumerate().map(entry).collect();
        own.write("ops.yaml", &format!("edition: 1\nops:\n{entries}"));
        own.write("src/lib.rs", "pub mod kernels;");
        own
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("the folder can be made");
        fs::write(path, text).expect("the file can be written");
    }

    fn config(&self) -> Config {
        Config::new(self.0.join("ops.yaml"))
    }

    /// The place of each kernel, and the paths that a build script watches.
    fn find(&self) -> (Vec<Option<String>>, Vec<String>) {
        let config = self.config();
        let mut checked = pipeline::check(&config).expect("the spec is there");
        let watched = pipeline::find_kernels(&mut checked, &config);
        let kernels = checked.model.ops.into_iter().flat_map(|op| op.body.kernels);
        let relative = |path: PathBuf| {
            path.strip_prefix(&self.0).unwrap_or(Path::new("elsewhere")).display().to_string()
        };
        (kernels.map(|kernel| kernel.place).collect(), watched.into_iter().map(relative).collect())
    }
}

impl Drop for Crate {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_function_in_cpp_is_found_by_its_definition() {
    let own = Crate::new("cpp", &["k.cc:first", "k.cc:second", "aot:k.cc:third", "aot:k.so:first"]);
    let text = "int first(int);\nint user() {\n  return first(1);\n}\n#define KERNEL(name) int name()\nint first(int x) {\n}\n";
    own.write("k.cc", &format!("{text}// second()\nint second(\n);\nKERNEL(third) {{\n}}\n"));
    own.write("k.so", text);
    let mut places = CodePlaces::new(&own.config());
    let mut of = |file: &str, symbol: &str| {
        let place = places.foreign(Path::new(file), symbol);
        place.map(|place| place.rsplit_once(':').map_or(0, |(_, line)| line.parse().expect("a number")))
    };
    assert_eq!(of("k.cc", "first"), Some(6));
    assert_eq!(of("k.cc", "second"), None);
    assert_eq!(of("k.cc", "third"), Some(11));
    assert_eq!(of("k.so", "first"), None);
    assert_eq!(of("missing.cc", "first"), None);
    let found = ["k.cc:6", "", "k.cc:11", ""].map(|place| (!place.is_empty()).then(|| place.to_owned()));
    assert_eq!(own.find().0, found);
}

#[test]
fn a_file_in_another_encoding_has_places() {
    let own = Crate::new("encoding", &["k.cc:first"]);
    fs::write(own.0.join("k.cc"), b"// \xe4\xf6\xfc\nint first(int x) {}\n")
        .expect("the file can be written");
    assert_eq!(own.find().0, [Some("k.cc:2".to_owned())]);
}

#[test]
fn the_folder_of_a_missing_module_is_watched_until_the_file_is_there() {
    let watched = |paths: &[&str]| -> Vec<String> { paths.iter().map(|path| (*path).to_owned()).collect() };
    let own = Crate::new("missing", &["deep::er::first", "second"]);
    assert_eq!(own.find(), (vec![None, None], watched(&["src", "src/lib.rs"])));
    own.write("src/kernels/mod.rs", "pub mod deep;\npub fn second() {}");
    let second = Some("src/kernels/mod.rs:2".to_owned());
    assert_eq!(own.find(), (vec![None, second.clone()], watched(&["src/kernels", "src/kernels/mod.rs"])));
    own.write("src/kernels/deep/mod.rs", "pub mod er;");
    let files = ["src/kernels/deep", "src/kernels/deep/mod.rs", "src/kernels/mod.rs"];
    assert_eq!(own.find(), (vec![None, second.clone()], watched(&files)));
    own.write("src/kernels/deep/er.rs", "\npub fn first() {}");
    let first = Some("src/kernels/deep/er.rs:2".to_owned());
    let files = ["src/kernels/deep/er.rs", "src/kernels/mod.rs"];
    assert_eq!(own.find(), (vec![first, second.clone()], watched(&files)));
    // A file that is there is watched alone, whatever it has.
    own.write("src/kernels/deep/er.rs", "\nmade!(fir, st);");
    let files = ["src/kernels/deep/er.rs", "src/kernels/deep/mod.rs", "src/kernels/mod.rs"];
    assert_eq!(own.find(), (vec![None, second], watched(&files)));
}

#[test]
fn a_crate_without_sources_watches_no_folder() {
    let own = Crate::new("empty", &["first"]);
    fs::remove_dir_all(own.0.join("src")).expect("it was made");
    assert_eq!(own.find(), (vec![None], Vec::new()));
}

#[test]
fn every_kernel_of_the_stock_library_has_a_place() {
    let config = Config::stock(Path::new(env!("CARGO_MANIFEST_DIR")).join("../ops.yaml"));
    let mut checked = pipeline::check(&config).expect("the stock spec is there");
    let watched = pipeline::find_kernels(&mut checked, &config);
    let kernels =
        checked.model.ops.iter().flat_map(|op| op.body.kernels.iter().map(move |kernel| (op, kernel)));
    let without: Vec<&str> =
        kernels.filter(|(_, kernel)| kernel.place.is_none()).map(|(op, _)| op.name.as_str()).collect();
    assert_eq!(without, [""; 0]);
    // Cargo reads every file of a folder that it watches.
    assert!(watched.iter().all(|path| path.is_file()), "{watched:?}");
}

#[test]
fn functions_of_rules_have_the_words_of_their_documentation() {
    let own = Crate::new("documented", &[]);
    let entry = |name: &str, shape: &str| {
        format!(
            "- func: {name}(Tensor x, int n) -> Tensor\n  doc: D.\n  shape: {shape}\n  dtype: follow(x)\n  dispatch: {{CPU: k}}\n"
        )
    };
    let rules = [
        entry("first", "\"infer::first(x, n)\""),
        entry("other", "\"infer::other(x.sizes())\""),
        entry("twice", "\"infer::twice(x, n)\""),
        entry("silent", "\"infer::silent(x)\""),
        "- {func: \"called(Tensor y) -> Tensor\", doc: D., decompose: \"first(y, 3)\"}\n".to_owned(),
    ];
    own.write("ops.yaml", &format!("edition: 1\nops:\n{}", rules.concat()));
    own.write(
        "src/kernels/infer.rs",
        "/// The shape of `x` with `count` more\n/// dimensions. The rest is known.\n///\n/// # Errors\n/// If `count` is negative.\n\
         #[inline]\npub fn first(x_: &Tensor, count: i64) -> Result<Dims> {}\n\n\
         /// As [`first`], twice.\n///\n/// # Errors\n/// None.\npub fn other(\n    sizes: &[(i64, i64)],\n) -> Result<Dims> {}\n\
         /// As [`first`], twice.\npub fn twice(x: &Tensor, count: i64) -> Result<Dims> {}\n\
         pub fn silent(x: &Tensor) -> Result<Dims> {}\n",
    );
    let config = own.config();
    let mut checked = pipeline::check(&config).expect("the spec is there");
    assert!(!checked.diagnostics.has_errors(), "{:?}", checked.diagnostics);
    let watched = pipeline::find_kernels(&mut checked, &config);
    assert!(watched.iter().any(|path| path.ends_with("kernels/infer.rs")), "{watched:?}");
    let model = &checked.model;
    let of = |path: &str| {
        let function = &model.documented[path];
        (function.parameters.join(" "), function.gives.clone(), function.refuses.clone())
    };
    let words = |text: &str| Some(text.to_owned());
    let gives = "the shape of `x` with `count` more dimensions";
    assert_eq!(of("infer::first"), ("x count".to_owned(), words(gives), words("if `count` is negative")));
    assert_eq!(of("infer::other"), ("sizes".to_owned(), None, words("")));
    assert_eq!(of("infer::twice").1, words(&format!("{gives}, twice")));
    assert_eq!(of("infer::silent"), ("x".to_owned(), words(""), words("")));
    let shape = |name: &str| {
        let op = model.ops.iter().find(|op| op.name == name).expect("the operator is there");
        opsmith_codegen::emit::rules_of_results(op, model).remove(0).shape
    };
    assert_eq!(shape("first"), "`infer::first(x, n)` (the shape of `x` with `n` more dimensions)");
    assert_eq!(shape("silent"), "`infer::silent(x)` (as the Rust function `infer::silent` says)");
    assert_eq!(shape("called"), "as `infer::first` gives it: the shape of `y` with `3` more dimensions");
}
