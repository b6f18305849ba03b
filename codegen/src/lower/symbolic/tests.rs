//! Derivatives as formulas, and their simplification.

use super::*;

/// Functions by their properties; and the domain of the result.
struct Table(Domain);

impl Known for Table {
    fn derivative(&self, function: &str, _: usize) -> Option<(Sym, Vec<String>)> {
        let text = match function {
            "e" => "result",
            "ht" => "1 - result * result",
            "l" => "1 / x",
            "size" => "unit(x)",
            "re" | "bar" => "1",
            "im" | "unit" => "0",
            _ => return None,
        };
        Some((read(text), vec!["x".into()]))
    }

    fn wirtinger(&self, function: &str, _: usize) -> Option<([Sym; 2], Vec<String>)> {
        let texts = match function {
            "im" => ["-0.5 * imaginary_unit", "0.5 * imaginary_unit"],
            "bar" => ["0", "1"],
            "unit" => ["0.5 / size(x)", "-0.5 * result * result / size(x)"],
            _ => return None,
        };
        Some((texts.map(read), vec!["x".into()]))
    }

    fn signature(&self, function: &str) -> Option<Signature> {
        let returns = match function {
            "size" | "re" | "im" => Domain::Real,
            "odd" => Domain::Plain,
            _ => Domain::Complex,
        };
        Some(Signature { returns, takes_real: true })
    }

    fn operator(&self, function: &str) -> String {
        if function == "im" { "imaginary".to_owned() } else { function.to_owned() }
    }

    fn result(&self) -> Domain {
        self.0
    }

    fn domain(&self, name: &str) -> Domain {
        match name {
            "a" | "b" => Domain::Complex,
            "result" => self.0,
            "x" | "y" => Domain::Real,
            "s" => Domain::Scalar,
            _ => Domain::Plain,
        }
    }

    fn is_integer(&self, name: &str) -> bool {
        name == "n"
    }

    fn is_tensor(&self, name: &str) -> bool {
        matches!(name, "a" | "b" | "x" | "y" | "result")
    }
}

fn read(text: &str) -> Sym {
    Sym::read(&crate::expr::parse::tree(text).unwrap()).unwrap()
}

fn formula(text: &str, by: &str) -> String {
    let body = read(text);
    let known = Table(body.domain(&Table(Domain::Complex)));
    let slope = body.slope(by, &known).unwrap().replace(&body, &Sym::Name("result".into()));
    let conjugate = Some("conj".to_owned());
    Writer { known: &known, grad: "grad", select: Some("select".into()), conjugate }.gradient(&slope).unwrap()
}

#[test]
fn derivatives_of_real_numbers_are_simplified() {
    let cases = [
        ("x + k * y", "x", "grad"),
        ("x + k * y", "y", "grad * k"),
        ("x - y", "y", "-grad"),
        ("x * y", "x", "grad * y"),
        ("x / y", "x", "grad / y"),
        ("x / y", "y", "-(grad * (result / y))"),
        ("e(x)", "x", "grad * result"),
        ("ht(x)", "x", "grad * (1 - (result * result))"),
        ("l(x)", "x", "grad / x"),
        ("e(x * k)", "x", "grad * (result * k)"),
        // Elements are divided, by an integer too; a quotient of integers in the expression stays whole.
        ("(x + 1) * n / 2", "x", "grad * ((n * 1.0) / 2)"),
        ("x / n", "x", "grad / n"),
        ("e(x / n)", "x", "grad * (result * (1.0 / n))"),
        ("x * (n / 2)", "x", "grad * (n / 2)"),
        ("x / (n * 3)", "x", "grad / (n * 3)"),
        ("if x > 0 { x } else { 0 }", "x", "select(x > 0, grad, 0)"),
        ("if x > 0 { x } else { k * x }", "x", "select(x > 0, grad, grad * k)"),
        ("if m == \"x\" { e(x) } else { x }", "x", "if m == \"x\" { grad * e(x) } else { grad }"),
        ("{ let s = e(x); s * s }", "x", "grad * (2 * result)"),
    ];
    for (text, by, expected) in cases {
        assert_eq!(formula(text, by), expected, "{text} by {by}");
    }
}

#[test]
fn a_function_without_derivative_is_named() {
    let missing = read("a * step(a)").slope("a", &Table(Domain::Complex));
    assert_eq!(missing, Err(Missing { function: "step".into() }));
}

#[test]
fn complex_numbers_are_differentiated_by_themselves_and_by_their_conjugates() {
    let cases = [
        ("a * b", "a", "grad * b.conj()"),
        ("a * k", "a", "grad * k"),
        ("a * s", "a", "grad * s.conj()"),
        ("e(a)", "a", "grad * result.conj()"),
        ("bar(a)", "a", "grad.conj()"),
        ("bar(a * s)", "a", "grad.conj() * s.conj()"),
        ("e(bar(a))", "a", "grad.conj() * result"),
        ("size(a)", "a", "grad * unit(a)"),
        ("x * a + s", "a", "grad * x"),
        ("x * s", "x", "grad * s.conj()"),
        ("re(a)", "a", "grad"),
        ("im(a)", "a", "grad * imaginary_unit"),
        (
            "re(a) * re(a) + im(a) * im(a)",
            "a",
            "grad * ((2 * re(a)) + ((imaginary_unit * imaginary(a)) + (imaginary(a) * imaginary_unit)))",
        ),
        (
            "a * size(a)",
            "a",
            "grad * (size(a) + (a * (0.5 * unit(a).conj()))).conj() + grad.conj() * (a * (0.5 * unit(a)))",
        ),
        ("e(size(a))", "a", "grad * (result * unit(a))"),
        ("l(size(a))", "a", "grad * ((1 / size(a)) * unit(a))"),
        ("a * x", "x", "grad * a.conj()"),
        ("size(a * x)", "x", "grad * (((0.5 * unit(a * x).conj()) * a) + ((0.5 * unit(a * x)) * a.conj()))"),
        ("size(x)", "x", "grad * unit(x)"),
        ("if size(a) < 1 { a } else { bar(a) }", "a", "select(size(a) < 1, grad, grad.conj())"),
        ("unit(a)", "a", "grad * (0.5 / size(a)) + grad.conj() * ((((-0.5) * result) * result) / size(a))"),
    ];
    for (text, by, expected) in cases {
        assert_eq!(formula(text, by), expected, "{text} by {by}");
    }
}
