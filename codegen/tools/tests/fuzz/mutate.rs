//! Random mutations of specs: of bytes, tokens, lines, and of syntactic parts.

/// Random numbers from a seed (SplitMix64).
pub struct Random(u64);

impl Random {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`; 0 if that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        if limit == 0 { 0 } else { (self.next() % limit as u64) as usize }
    }

    fn one_of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// Changes texts with pieces of others.
pub struct Mutator<'c> {
    /// The source of pieces.
    pub corpus: &'c [String],
}

/// Inputs stay small, so that many are tried.
const MAX_BYTES: usize = 24 << 10;

/// Words and signs of specs, YAML, signatures and expressions.
const TOKENS: &[&str] = &[
    "edition: 1\n",
    "ops:\n",
    "functions:\n",
    "declarations:\n",
    "include: ",
    "- func: ",
    "  doc: ",
    "  shape: ",
    "  dtype: ",
    "  check: ",
    "  derivatives: ",
    "  forward: ",
    "  dispatch: ",
    "  decompose: ",
    "  pointwise: ",
    "  variants: [functional, inplace, out]\n",
    "  supplied: {}\n",
    "  samples: ",
    "  attributes: ",
    "  alias_of: ",
    "  types: {self: int64}\n",
    "  names: {out: a.out}\n",
    "f(Tensor self) -> Tensor",
    "Tensor",
    "Tensor?",
    "Tensor[]",
    "Tensor(a!)",
    "int[2]",
    "int",
    "Scalar",
    "float",
    "str",
    "ScalarType",
    "-> ",
    "*, ",
    "=None",
    "=[1, 2]",
    "='x'",
    "grad",
    "grads[0]",
    "grad_input_mask",
    "result",
    "self",
    "other",
    "self_t",
    "if ",
    "else ",
    "{ ",
    " }",
    "(",
    ")",
    "[",
    "]",
    ", ",
    ": ",
    " + ",
    " * ",
    " == ",
    " && ",
    "!",
    "-",
    "1",
    "0.5",
    "1e308",
    "-1",
    "9223372036854775807",
    "99999999999999999999",
    "\"",
    "'",
    "\\",
    "\\u{0}",
    "\n",
    "\r\n",
    "\t",
    "  ",
    "#",
    " # ",
    "&a ",
    "*a",
    "<<: ",
    "!!str ",
    "---\n",
    "...\n",
    "? ",
    "|\n",
    ">-\n",
    "~",
    "null",
    "true",
    "é",
    "\u{1F600}",
    "\u{200B}",
    "\u{FEFF}",
    "\0",
    "::",
    ".",
    "..",
    "not_implemented(\"x\")",
    "opaque(\"x\")",
    "let x = ",
    ";",
    "auto_linear",
    "r#x",
    "unsafe ",
    "as ",
    "self.size(0)",
    "promote(self)",
    "broadcast(self)",
    "follow(self)",
    "full(size)",
    "%",
    "@",
    "`",
    "|x| x",
];

impl Mutator<'_> {
    /// The text with one to eight changes.
    pub fn mutate(&self, text: &str, random: &mut Random) -> String {
        let mut text = text.to_owned();
        // Most mutations break so much that a second one has no effect.
        let changes = 1 + random.below(8) / (1 + random.below(4));
        for _ in 0..changes {
            text = self.change(&text, random);
            if text.len() > MAX_BYTES {
                text.truncate(boundary(&text, MAX_BYTES));
            }
        }
        text
    }

    fn change(&self, text: &str, random: &mut Random) -> String {
        match random.below(13) {
            0 => insert(text, random.one_of::<&str>(TOKENS), random),
            1 => replace(text, word(text, random), random.one_of::<&str>(TOKENS)),
            2 => replace(text, word(text, random), ""),
            3 => {
                let (a, b) = (word(text, random), word(text, random));
                replace(text, a, &text[b.0..b.1])
            }
            4 => without_a_character(text, random),
            5 => with_a_line_moved(text, random),
            6 => with_a_line_from(text, random.one_of::<String>(self.corpus), random),
            7 => with_indentation(text, random),
            8 => {
                let token = random.one_of::<&str>(TOKENS).repeat(1 + random.below(300));
                insert(text, &token, random)
            }
            9 => text[..boundary(text, random.below(text.len() + 1))].to_owned(),
            10 => spliced(text, random.one_of::<String>(self.corpus), random),
            11 => nested(text, random),
            _ => with_a_line_twice(text, random),
        }
    }
}

/// The character boundary at or before `at`.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn insert(text: &str, token: &str, random: &mut Random) -> String {
    let at = boundary(text, random.below(text.len() + 1));
    format!("{}{token}{}", &text[..at], &text[at..])
}

fn replace(text: &str, (start, end): (usize, usize), token: &str) -> String {
    format!("{}{token}{}", &text[..start], &text[end..])
}

/// The bytes of a word or sign.
fn word(text: &str, random: &mut Random) -> (usize, usize) {
    let at = boundary(text, random.below(text.len() + 1));
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let start = text[..at]
        .rfind(|c| !is_word(c))
        .map_or(0, |before| before + text[before..].chars().next().map_or(0, char::len_utf8));
    let length = text[start..].find(|c| !is_word(c)).unwrap_or(text.len() - start);
    let sign = text[start..].chars().next().map_or(0, char::len_utf8);
    (start, start + length.max(sign))
}

fn without_a_character(text: &str, random: &mut Random) -> String {
    let at = boundary(text, random.below(text.len()));
    let length = text[at..].chars().next().map_or(0, char::len_utf8);
    replace(text, (at, at + length), "")
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn with_a_line_moved(text: &str, random: &mut Random) -> String {
    let mut lines = lines(text);
    if lines.is_empty() {
        return String::new();
    }
    let line = lines.remove(random.below(lines.len()));
    lines.insert(random.below(lines.len() + 1), line);
    lines.concat()
}

fn with_a_line_twice(text: &str, random: &mut Random) -> String {
    let mut lines = lines(text);
    if lines.is_empty() {
        return String::new();
    }
    let line = lines[random.below(lines.len())];
    lines.insert(random.below(lines.len() + 1), line);
    lines.concat()
}

fn with_a_line_from(text: &str, other: &str, random: &mut Random) -> String {
    let (mut own, others) = (lines(text), lines(other));
    if others.is_empty() {
        return text.to_owned();
    }
    own.insert(random.below(own.len() + 1), others[random.below(others.len())]);
    own.concat()
}

fn with_indentation(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = lines(text).into_iter().map(str::to_owned).collect();
    if let Some(at) = lines.len().checked_sub(1).map(|last| random.below(last + 1)) {
        lines[at] = match random.below(3) {
            0 => lines[at].trim_start().to_owned(),
            1 => format!(" {}", lines[at]),
            _ => format!("  {}", lines[at]),
        };
    }
    lines.concat()
}

fn spliced(text: &str, other: &str, random: &mut Random) -> String {
    let (a, b) =
        (boundary(text, random.below(text.len() + 1)), boundary(other, random.below(other.len() + 1)));
    format!("{}{}", &text[..a], &other[b..])
}

/// A word in many brackets.
fn nested(text: &str, random: &mut Random) -> String {
    let (start, end) = word(text, random);
    let depth = 1 + random.below(200);
    let (open, close) = *random.one_of(&[
        ("(", ")"),
        ("[", "]"),
        ("{", "}"),
        ("{a: ", "}"),
        ("-", ""),
        ("!", ""),
        ("f(", ")"),
    ]);
    replace(
        text,
        (start, end),
        &format!("{}{}{}", open.repeat(depth), &text[start..end], close.repeat(depth)),
    )
}
