//! Random specs: every style of YAML, with comments wherever they are allowed.

/// Random choices, so that a failing case can be made smaller.
pub struct Choices {
    bytes: Vec<u8>,
    next: usize,
    comments: Vec<String>,
}

impl Choices {
    /// The bytes determine the choices; once they are used up, every choice is the first.
    pub fn new(bytes: Vec<u8>) -> Choices {
        Choices { bytes, next: 0, comments: Vec::new() }
    }

    fn below(&mut self, count: usize) -> usize {
        let byte = self.bytes.get(self.next).copied().unwrap_or(0);
        self.next += 1;
        byte as usize % count
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == count - 1
    }

    fn comment(&mut self) -> String {
        let text = format!("# comment {}", self.comments.len());
        self.comments.push(text.clone());
        format!("{text}.{}", ["", " with: a colon", " # and more", " [", "  "][self.below(5)])
    }

    /// Nothing, or a comment at the end of a line.
    fn behind(&mut self) -> String {
        if self.one_in(6) { format!(" {}", self.comment()) } else { String::new() }
    }

    /// Blank lines and comments on lines of their own, indented anyhow.
    fn between(&mut self, indent: usize) -> String {
        let mut out = String::new();
        while self.one_in(5) {
            if self.one_in(3) {
                out.push('\n');
            } else {
                let indent = [indent, 0, indent + 2, indent.saturating_sub(2)][self.below(4)];
                out.push_str(&format!("{:indent$}{}\n", "", self.comment()));
            }
        }
        out
    }
}

const TEXTS: &[&str] = &[
    "plain",
    "two words",
    "f(a, b)",
    "a: b",
    "it's",
    "say \"it\"",
    "# no comment",
    "a # b",
    "- dash",
    "1.5",
    "true",
    "null",
    "",
    "é √",
    "a\\b",
    "[list]",
    "{map}",
    "*star",
    "&and",
    "!tag",
    "%x",
    "@at",
    "`tick`",
    "x:",
    ":x",
    "? q",
    "if a { b } else { c }",
    "trailing ",
    " leading",
    "a  b",
    "a, b",
    "x::y",
    "|",
    ">",
    "~",
    "---",
    "<<",
];

/// The text of a spec, and its comments.
pub fn spec(choices: &mut Choices) -> (String, Vec<String>) {
    let mut out = choices.between(0);
    out.push_str(&format!("edition: 1{}\n", choices.behind()));
    out.push_str(&choices.between(0));
    out.push_str(&format!("ops:{}\n", choices.behind()));
    let indent = choices.below(2) * 2;
    for index in 0..1 + choices.below(4) {
        out.push_str(&choices.between(indent));
        entry(choices, &mut out, indent, index);
    }
    out.push_str(&choices.between(0));
    (out, std::mem::take(&mut choices.comments))
}

fn entry(choices: &mut Choices, out: &mut String, indent: usize, index: usize) {
    let inner = indent + 2 + choices.below(2);
    let mut keys = vec!["func"];
    for key in ["doc", "check", "types", "names", "derivatives", "tags", "tolerance", "samples"] {
        if choices.one_in(2) {
            keys.insert(choices.below(keys.len() + 1), key);
        }
    }
    if choices.one_in(8) {
        let pairs: Vec<String> = keys.iter().map(|key| flow_pair(choices, key, index)).collect();
        out.push_str(&format!("{:indent$}- {{{}}}{}\n", "", pairs.join(", "), choices.behind()));
        return;
    }
    for (position, key) in keys.iter().enumerate() {
        match position {
            0 => out.push_str(&format!("{:indent$}-{:width$}", "", "", width = inner - indent - 1)),
            _ => {
                out.push_str(&choices.between(inner));
                out.push_str(&" ".repeat(inner));
            }
        }
        let quote = ["", "", "\"", "'"][choices.below(4)];
        out.push_str(&format!("{quote}{key}{quote}:"));
        value(choices, out, key, inner, index);
    }
}

/// The text after a key in brackets, within one line.
fn flow_pair(choices: &mut Choices, key: &str, index: usize) -> String {
    match key {
        "func" => format!("func: \"f{index}(Tensor a, Tensor b) -> Tensor\""),
        "check" | "tags" => format!("{key}: [{}, {}]", in_quotes(choices), in_quotes(choices)),
        "doc" => "doc: \"words, and more\"".to_owned(),
        _ => format!("{key}: {{a: {}, \"b, c\": [x, {{y: z}}]}}", in_quotes(choices)),
    }
}

/// The value of a key, with the end of its line.
fn value(choices: &mut Choices, out: &mut String, key: &str, indent: usize, index: usize) {
    match key {
        "func" => {
            let quote = ["", "\"", "'"][choices.below(3)];
            out.push_str(&format!(
                " {quote}f{index}(Tensor a, Tensor b) -> Tensor{quote}{}\n",
                choices.behind()
            ));
        }
        "doc" => document(choices, out, indent),
        "check" | "tags" => list(choices, out, indent),
        _ => mapping(choices, out, indent, 0),
    }
}

fn document(choices: &mut Choices, out: &mut String, indent: usize) {
    let deeper = indent + 1 + choices.below(3);
    match choices.below(4) {
        0 => out.push_str(&format!(" A document.{}\n", choices.behind())),
        1 => {
            let head = ["|", "|-", "|+", ">", ">-", ">+"][choices.below(6)];
            out.push_str(&format!(" {head}{}\n", choices.behind()));
            for line in 0..1 + choices.below(4) {
                let more = if line == 0 { 0 } else { choices.below(3) };
                let text = ["words of it", "# no comment", "", "a: b", "- c"]
                    [choices.below(if line == 0 { 2 } else { 5 })];
                if text.is_empty() {
                    out.push('\n');
                } else {
                    out.push_str(&format!("{}{text}\n", " ".repeat(deeper + more)));
                }
            }
        }
        2 => {
            let count = 1 + choices.below(60);
            out.push_str(&format!(
                " {}\n{:deeper$}and more{}\n",
                "word ".repeat(count).trim(),
                "",
                choices.behind()
            ));
        }
        _ => {
            // The value on a line of its own.
            out.push_str(&format!("{}\n{}", choices.behind(), choices.between(indent)));
            out.push_str(&format!("{:deeper$}A document.{}\n", "", choices.behind()));
        }
    }
}

fn list(choices: &mut Choices, out: &mut String, indent: usize) {
    match choices.below(3) {
        0 => {
            let texts: Vec<String> = (0..choices.below(12)).map(|_| in_quotes(choices)).collect();
            let empty = texts.is_empty();
            out.push_str(&format!(
                " [{}]{}\n",
                if empty { "x".into() } else { texts.join(", ") },
                choices.behind()
            ));
        }
        1 => {
            out.push_str(&format!(" [{}\n", choices.behind()));
            for _ in 0..1 + choices.below(3) {
                out.push_str(&choices.between(indent + 2));
                out.push_str(&format!(
                    "{:width$}{},{}\n",
                    "",
                    in_quotes(choices),
                    choices.behind(),
                    width = indent + 2
                ));
            }
            out.push_str(&choices.between(indent + 2));
            out.push_str(&format!("{:width$}]{}\n", "", choices.behind(), width = indent + 1));
        }
        _ => {
            out.push_str(&format!("{}\n", choices.behind()));
            let deeper = indent + choices.below(2) * 2;
            for _ in 0..1 + choices.below(3) {
                out.push_str(&choices.between(deeper));
                out.push_str(&format!("{:deeper$}- {}{}\n", "", in_quotes(choices), choices.behind()));
            }
        }
    }
}

fn mapping(choices: &mut Choices, out: &mut String, indent: usize, depth: usize) {
    match choices.below(3) {
        0 => {
            let (a, b) = (in_quotes(choices), in_quotes(choices));
            out.push_str(&format!(" {{a: {a}, 'b': {b}, c d: [e, f]}}{}\n", choices.behind()));
        }
        1 if depth < 3 => {
            out.push_str(&format!("{}\n", choices.behind()));
            let deeper = indent + 1 + choices.below(3);
            for key in ["inner", "\"a, b\"", "c"].iter().take(1 + choices.below(3)) {
                out.push_str(&choices.between(deeper));
                out.push_str(&format!("{:deeper$}{key}:", ""));
                match choices.below(3) {
                    0 => out.push_str(&format!(" {}{}\n", in_quotes(choices), choices.behind())),
                    1 => list(choices, out, deeper),
                    _ => mapping(choices, out, deeper, depth + 1),
                }
            }
        }
        _ => {
            out.push_str(&format!("{}\n", choices.behind()));
            let deeper = indent + 2;
            for key in ["x", "y"].iter().take(1 + choices.below(2)) {
                out.push_str(&choices.between(deeper));
                out.push_str(&format!(
                    "{:deeper$}? {key}\n{:deeper$}: {}{}\n",
                    "",
                    "",
                    in_quotes(choices),
                    choices.behind()
                ));
            }
        }
    }
}

/// A text in quotes of one kind or the other.
fn in_quotes(choices: &mut Choices) -> String {
    let text = TEXTS[choices.below(TEXTS.len())];
    match choices.below(2) {
        0 => format!("'{}'", text.replace('\'', "''")),
        _ => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}
