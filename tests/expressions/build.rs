//! Writes random pointwise expressions as a spec, beside the chosen ones, and generates their operators.
//!
//! Every scalar function that has a derivative among complex numbers, or among the real parts of such, is mixed with
//! the others. The numbers come from one seed, so every build has the same expressions.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use opsmith_codegen::diagnostics::render;
use opsmith_codegen::{Config, Parent, emit, output, pipeline};

/// Number of expressions with a result of the arguments' dtype, and number with a real one. `OPSMITH_EXPRESSIONS` gives
/// another: each costs as much to compile as an operator of a library.
const COUNT: usize = 24;

/// Functions of a complex number, with an argument `Z` of size below one in their domain.
const HOLOMORPHIC: [&str; 23] = [
    "exp(Z)",
    "expm1(Z)",
    "log(2 + Z)",
    "log1p(Z)",
    "log2(2 + Z)",
    "log10(2 + Z)",
    "sqrt(2 + Z)",
    "rsqrt(2 + Z)",
    "reciprocal(2 + Z)",
    "sin(Z)",
    "cos(Z)",
    "tan(Z)",
    "asin(0.7 * Z)",
    "acos(0.7 * Z)",
    "atan(0.7 * Z)",
    "sinh(Z)",
    "cosh(Z)",
    "tanh(Z)",
    "asinh(0.7 * Z)",
    "acosh(3 + Z)",
    "atanh(0.7 * Z)",
    "sigmoid(Z)",
    "pow(2 + Z, 1.5)",
];

/// Functions of a real number of size below one, `R`, and of another, `Q`.
const REAL: [&str; 16] = [
    "exp(R)",
    "log(2 + R)",
    "sqrt(2 + R)",
    "sin(R)",
    "tanh(R)",
    "erf(R)",
    "erfc(R)",
    "erfinv(0.6 * R)",
    "lgamma(3 + R)",
    "atan2(R, 2 + Q)",
    "hypot(R, 1 + Q)",
    "maximum(R, Q)",
    "fmin(R, Q)",
    "pow(2 + R, Q)",
    "abs(R)",
    "clamp_min(R, Q)",
];

/// The functions among them that select one of two arguments.
const CHOICES: [&str; 3] = ["maximum(R, Q)", "fmin(R, Q)", "clamp_min(R, Q)"];

/// A xorshift generator.
struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % count as u64) as usize
    }

    /// An element of the arguments' dtype.
    fn complex(&mut self, depth: usize) -> String {
        if depth == 0 {
            return ["a", "b", "a", "b", "a * s", "b * k", "conj(a)", "sgn(b)"][self.below(8)].to_owned();
        }
        let less = depth - 1;
        match self.below(11) {
            0 => format!("({} + {})", self.complex(less), self.complex(less)),
            1 => format!("({} - {})", self.complex(less), self.complex(less)),
            2 => format!("({} * {})", self.complex(less), self.complex(less)),
            3 => format!("({} / (1.5 + {}))", self.complex(less), self.small(less)),
            4 => format!("({} * {})", self.real(less), self.complex(less)),
            5 => ["conj(Z)", "sgn(Z)", "(Z * conj(Z))", "(-Z)"][self.below(4)]
                .replace('Z', &self.complex(less)),
            6 => {
                let (condition, yes, no) = (self.condition(less), self.complex(less), self.complex(less));
                format!("(if {condition} {{ {yes} }} else {{ {no} }})")
            }
            7 => format!("{{ let z = {}; z * abs(z) }}", self.complex(less)),
            _ => HOLOMORPHIC[self.below(HOLOMORPHIC.len())].replace('Z', &self.small(less)),
        }
    }

    /// An element of size below one.
    fn small(&mut self, depth: usize) -> String {
        if depth == 0 {
            return format!("0.4 * {}", ["a", "b", "conj(a)"][self.below(3)]);
        }
        format!("{{ let z = {}; z / (1.0 + abs(z)) }}", self.complex(depth))
    }

    /// A real element.
    fn real(&mut self, depth: usize) -> String {
        if depth == 0 {
            return ["r", "abs(a)", "real(a)", "imag(a)", "real(b)", "imag(b)"][self.below(6)].to_owned();
        }
        let less = depth - 1;
        match self.below(8) {
            0 => format!("({} + {})", self.real(less), self.real(less)),
            1 => format!("({} * {})", self.real(less), self.real(less)),
            2 => format!("(1.0 / (1.0 + abs({})))", self.complex(less)),
            3 => ["abs(Z)", "real(Z)", "imag(Z)"][self.below(3)].replace('Z', &self.complex(less)),
            4 => {
                let (condition, yes, no) = (self.condition(less), self.real(less), self.real(less));
                format!("(if {condition} {{ {yes} }} else {{ {no} }})")
            }
            _ => {
                let function = REAL[self.below(REAL.len())];
                // Each nested selection doubles the formula.
                let less = if CHOICES.contains(&function) { 0 } else { less };
                let function = function.replace('R', "{ let x = R; x / (1.0 + abs(x)) }");
                function.replace('R', &self.real(less)).replace('Q', &format!("sin({})", self.real(less)))
            }
        }
    }

    fn condition(&mut self, depth: usize) -> String {
        match self.below(3) {
            0 => format!("{} < {}", self.real(depth.min(1)), self.real(0)),
            1 => format!("{} > 0.4 && !is_nan({})", self.real(0), self.complex(0)),
            _ => "k > 0.5".to_owned(),
        }
    }
}

fn main() {
    let fixed = concat!(env!("CARGO_MANIFEST_DIR"), "/fixed.yaml");
    println!("cargo::rerun-if-changed={fixed}");
    let mut spec = std::fs::read_to_string(fixed).expect("the file is part of the crate");
    let mut random = Random(0x5eed_0f0b_5e55_ed01);
    println!("cargo::rerun-if-env-changed=OPSMITH_EXPRESSIONS");
    let count = match std::env::var("OPSMITH_EXPRESSIONS") {
        Ok(text) => text.parse().expect("OPSMITH_EXPRESSIONS is a number"),
        Err(_) => COUNT,
    };
    for number in 0..count {
        let depth = 1 + number % 3;
        for (kind, dtype, body) in
            [("complex", "promote(a, b, s)", random.complex(depth)), ("real", "real(a)", random.real(depth))]
        {
            // Each argument has an effect, independent of the expression's parts.
            let all =
                if kind == "real" { "0.1 * abs(a * s + b * k + r)" } else { "0.1 * (a * s + b * k + r)" };
            let _ = write!(
                spec,
                "\n- func: {kind}_{number}(Tensor a, Tensor b, Tensor r, Scalar s, float k) -> Tensor
  doc: A random expression.
  types: {{r: real}}
  shape: broadcast(a, b, r)
  dtype: {dtype}
  compute: promote(a, b, s)
  dtypes: [float64, complex128]
  pointwise: |
    {body} + {all}
"
            );
        }
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it")).join("expressions.yaml");
    std::fs::write(&out, spec).expect("cargo made the folder");
    generate(&out);
}

/// As `opsmith_codegen::build`, without its warnings: missing parts of entries are under test.
fn generate(spec: &Path) {
    let parent = std::env::var("DEP_OPSMITH_SPEC").expect("the crate depends on the stock library");
    println!("cargo::rerun-if-changed={parent}");
    let mut config = Config { library: "opsmith-expressions".to_owned(), ..Config::new(spec) };
    config.parents.push(Parent::new(parent, "opsmith"));
    let checked = pipeline::check(&config).unwrap_or_else(|failure| panic!("{failure}"));
    if checked.diagnostics.has_errors() {
        let texts =
            checked.diagnostics.sorted().map(|diagnostic| render(&checked.sources, diagnostic, false));
        panic!("{}", texts.collect::<Vec<_>>().join("\n"));
    }
    let files = pipeline::generate(&checked, &config).unwrap_or_else(|failure| panic!("{failure}"));
    let folder = spec.with_file_name(emit::FOLDER);
    output::write(&folder, &files).expect("cargo made the folder");
}
