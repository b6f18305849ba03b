//! Signatures in Python on the pages of operators, compared with the stubs of the package, and the parts of the guide.

use opsmith_tools::site::python;

use super::{root, stock, stock_site};

/// The names of parameters of a function's text, without `*` and `out`.
fn parameters(declaration: &str) -> Vec<&str> {
    let inside = declaration.split_once('(').expect("parameters").1;
    let (mut depth, mut start, mut names) = (0, 0, Vec::new());
    for (place, letter) in inside.char_indices() {
        match letter {
            '[' | '(' => depth += 1,
            ']' => depth -= 1,
            ',' | ')' if depth == 0 => {
                let name = inside[start..place].split([':', '=']).next().expect("a part").trim();
                names.push(name.trim_start_matches('*'));
                start = place + 1;
                if letter == ')' {
                    break;
                }
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty() && *name != "out");
    names
}

#[test]
fn signatures_in_python_are_those_of_the_package() {
    let (checked, _) = stock();
    let stubs = std::fs::read_to_string(root().join("python/opsmith/_operators.pyi")).unwrap();
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for op in &checked.model.ops {
        let meant = op.alias_of.map_or(op, |id| &checked.model.ops[id.0]);
        for declaration in python::declarations(op, meant) {
            let name = declaration.split_once('(').expect("parameters").0;
            let start = format!("def {name}(");
            let known: Vec<Vec<&str>> =
                stubs.lines().filter(|line| line.starts_with(&start)).map(parameters).collect();
            let names = parameters(&declaration);
            // Overloads that take the same are one in the stubs.
            if !known.iter().any(|known| names.iter().all(|name| known.contains(name))) {
                wrong.push(format!("{declaration}: {known:?}"));
            }
            compared += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared > 700, "{compared}");
    let page = stock_site().iter().find(|file| file.path == "ops/gelu.html").expect("its page");
    let text: String =
        page.text.split('<').filter_map(|part| part.split_once('>')).map(|(_, text)| text).collect();
    for line in [
        "gelu(input, *, approximate=&quot;none&quot;, out=None)",
        "gelu_(input, *, approximate=&quot;none&quot;)",
    ] {
        assert!(text.contains(line), "{line}");
    }
}

#[test]
fn the_guide_has_every_part() {
    let pages: Vec<&str> = stock_site().iter().map(|file| file.path.as_str()).collect();
    for part in [
        "install",
        "derivatives",
        "inference",
        "custom-kernels",
        "kernels",
        "graphs",
        "programs",
        "profiler",
        "devices",
        "python",
        "frameworks",
        "backend",
        "nn",
    ] {
        assert!(pages.contains(&&*format!("guide/{part}.html")), "{part}: {pages:?}");
    }
}
