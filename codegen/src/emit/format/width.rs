//! Lines as wide as those of this project: groups that were broken for a narrower page are joined again.
//!
//! In: formatted source, whose width cannot be chosen. Out: the same tokens in fewer lines, in the style of rustfmt's
//! wide heuristics: arguments, elements and fields stand in one line if they fit, and a call that is the only argument
//! opens in the line of the outer one. Blocks of statements stay as they are. Must not know the meaning of the code.

/// As in `rustfmt.toml`.
const WIDTH: usize = 110;

/// A step of indentation.
pub(super) const STEP: usize = 4;

/// The same source with broken groups joined where they fit.
pub(super) fn joined(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    // Numbers of the lines that open a group that is not closed yet.
    let mut open: Vec<usize> = Vec::new();
    for line in text.lines() {
        let content = line.trim_start();
        lines.push(plain_macro(line));
        if content.starts_with([')', ']', '}'])
            && let Some(start) = open.pop()
        {
            join(&mut lines, start);
        }
        // Lines left by a join decide nothing about opening: only the last written line does.
        let last = lines.last().map_or("", String::as_str);
        if last.ends_with(['(', '[', '{']) && !is_comment(last.trim_start()) {
            open.push(lines.len() - 1);
        }
    }
    chained(&mut lines);
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

/// A line in which a macro call has its colons as people write them.
fn plain_macro(line: &str) -> String {
    match line.contains("!(") && !line.contains('"') {
        true => line.replace(" : ", ": "),
        false => line.to_owned(),
    }
}

/// Joins the group from line `start` to the last line, if it is one of values and fits.
fn join(lines: &mut Vec<String>, start: usize) {
    let end = lines.len() - 1;
    if end <= start + 1 || indent_of(&lines[end]) < indent_of(&lines[start]) {
        return;
    }
    let alternatives = lines[start].trim() == "} else {" && start >= 2;
    let (start, joined) = match alternatives {
        true => (start - 2, if_else(&lines[start - 2..])),
        false => (
            start,
            in_one_line(&lines[start..])
                .or_else(|| opened_together(&lines[start..]))
                .or_else(|| let_else(&lines[start..]))
                .or_else(|| closure(&lines[start..])),
        ),
    };
    let Some(joined) = joined else { return };
    lines.truncate(start);
    lines.extend(joined);
}

/// Every item in the line that opens the group.
fn in_one_line(group: &[String]) -> Option<Vec<String>> {
    let (first, items, last) = parts(group)?;
    let indent = indent_of(last) + STEP;
    let all_items = items.iter().all(|item| indent_of(item) == indent && is_item(first, item.trim_start()));
    // Only the last item may lack its comma: operators and chains break without one.
    let separated = items[..items.len() - 1].iter().all(|item| item.ends_with(','));
    // Tokens of a macro have no items.
    let is_macro = first.ends_with("!(") && items.iter().all(|item| !item.contains([',', '"']));
    if !all_items || !separated && !is_macro {
        return None;
    }
    let mut line = first.clone();
    if first.ends_with('{') {
        line.push(' ');
    }
    let words: Vec<&str> = items.iter().map(|item| item.trim()).collect();
    let text = words.join(" ");
    let text = if is_macro { text.replace(" : ", ": ") } else { text };
    // A tuple of one element keeps its comma.
    let is_tuple = items.len() == 1 && !is_call(first) && first.ends_with('(');
    line.push_str(if is_tuple { &text } else { text.trim_end_matches(',') });
    if first.ends_with('{') {
        line.push(' ');
    }
    line.push_str(last.trim_start());
    fits(&line).then(|| vec![line])
}

/// The only item opens in the line of the group, as does a closure behind short items: `Ok(f(` … `))`, `f(a, |b| {` … `})`.
fn opened_together(group: &[String]) -> Option<Vec<String>> {
    let (first, items, last) = parts(group)?;
    let indent = indent_of(first);
    let opens = items.iter().position(|item| item.ends_with(['(', '[', '{']))?;
    let (before, rest) = items.split_at(opens);
    let (head, [middle @ .., tail]) = rest.split_first()? else { return None };
    let is_closure = head.trim_start().starts_with('|') && head.ends_with("| {");
    let one_item = indent_of(last) == indent
        && [head, tail].iter().all(|line| indent_of(line) == indent + STEP)
        && tail.trim_start().starts_with([')', ']', '}'])
        && middle.iter().all(|line| line.is_empty() || indent_of(line) > indent + STEP)
        && before.iter().all(|line| is_value(line.trim()) && line.ends_with(','));
    if !is_call(first) || !one_item || !is_value(head.trim_start()) || !(before.is_empty() || is_closure) {
        return None;
    }
    let before: String = before.iter().map(|line| format!("{} ", line.trim())).collect();
    let line = format!("{first}{before}{}", head.trim_start());
    if !fits(&line) {
        return None;
    }
    let mut lines = vec![line];
    lines.extend(middle.iter().map(|line| line.get(STEP..).unwrap_or_default().to_owned()));
    let tail = tail.get(STEP..)?.trim_end_matches(',');
    lines.push(format!("{tail}{}", last.trim_start()));
    Some(lines)
}

/// `let Some(x) = y else { return z };`
fn let_else(group: &[String]) -> Option<Vec<String>> {
    let [first, body, last] = group else { return None };
    let is_let = first.trim_start().starts_with("let ") && first.ends_with(" else {") && last.trim() == "};";
    let line = format!("{first} {} }};", body.trim().trim_end_matches(';'));
    (is_let && !is_comment(body.trim()) && fits(&line)).then(|| vec![line])
}

/// `|a| b`.
fn closure(group: &[String]) -> Option<Vec<String>> {
    let [first, body, last] = group else { return None };
    let head = first.strip_suffix("| {")?;
    let line = format!("{head}| {}{}", body.trim(), last.trim().strip_prefix('}')?);
    let is_closure = head.contains('|') && is_value(body.trim()) && !body.ends_with([',', '{']);
    (is_closure && fits(&line)).then(|| vec![line])
}

/// `a.b().c()` in the line of `a`, if all of its calls fit there.
fn chained(lines: &mut Vec<String>) {
    let mut at = 0;
    while at + 1 < lines.len() {
        let indent = indent_of(&lines[at]) + STEP;
        let follows = |line: &&String| indent_of(line) == indent && line.trim_start().starts_with('.');
        let calls = lines[at + 1..].iter().take_while(follows).count();
        let joined =
            lines[at + 1..=at + calls].iter().fold(lines[at].clone(), |line, call| line + call.trim());
        let is_open = lines[at].trim_start().starts_with('.')
            || lines[at + 1..=at + calls].iter().any(|call| call.ends_with(['(', '[', '{']));
        if calls > 0 && !is_open && !is_comment(lines[at].trim()) && fits(&joined) {
            lines[at] = joined;
            lines.drain(at + 1..=at + calls);
        }
        at += 1;
    }
}

/// `if a { b } else { c }`, of one value each.
fn if_else(group: &[String]) -> Option<Vec<String>> {
    let [first, yes, between, no, last] = group else { return None };
    let indent = indent_of(first);
    let head = first.trim_start();
    let is_choice = (head.starts_with("if ") || head.contains(" if ") || head.contains("(if "))
        && head.ends_with(" {")
        && [between, last].iter().all(|line| indent_of(line) == indent)
        && [yes, no].iter().all(|line| indent_of(line) == indent + STEP && is_value(line.trim()));
    let line = format!("{first} {} }} else {{ {} {}", yes.trim(), no.trim(), last.trim());
    (is_choice && fits(&line)).then(|| vec![line])
}

/// Whether a line is not too long.
pub(super) fn fits(line: &str) -> bool {
    line.chars().count() <= WIDTH
}

/// Whether a line ends with a name and the parenthesis behind it.
fn is_call(line: &str) -> bool {
    let name = line.strip_suffix('(');
    name.is_some_and(|name| name.ends_with(|last: char| last.is_alphanumeric() || last == '_'))
}

fn parts(group: &[String]) -> Option<(&String, &[String], &String)> {
    let (first, rest) = group.split_first()?;
    let (last, items) = rest.split_last()?;
    (!items.is_empty()).then_some((first, items, last))
}

/// Whether a line is an item of the group that `first` opens, and no statement, arm or comment.
fn is_item(first: &str, item: &str) -> bool {
    if !is_value(item) {
        return false;
    }
    match first.ends_with('{') {
        false => true,
        // Fields of a value, not of the declaration of a type.
        true => {
            let declares = ["struct ", "enum ", "trait ", "union "].iter().any(|word| first.contains(word));
            !declares && (is_field(item) || item.starts_with(".."))
        }
    }
}

/// `name: value,` or `..base`.
fn is_field(item: &str) -> bool {
    let name = item.split(':').next().unwrap_or_default();
    item.ends_with(',')
        && item.contains(": ")
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

fn is_value(item: &str) -> bool {
    !is_comment(item) && !item.starts_with("#[") && !item.ends_with(';') && !item.contains(" => ")
}

fn is_comment(content: &str) -> bool {
    content.starts_with("//")
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[track_caller]
    fn check(narrow: &str, expected: &str) {
        assert_eq!(joined(narrow), expected);
    }

    #[test]
    fn values_stand_in_one_line() {
        check("f(\n    a,\n    B { c: 1, ..d },\n);\n", "f(a, B { c: 1, ..d });\n");
        check("let a = B {\n    c: 1,\n    ..d\n};\n", "let a = B { c: 1, ..d };\n");
        check("let a = (\n    b,\n);\n", "let a = (b,);\n");
        check("m!(\n    a : B C\n    D\n)\n", "m!(a: B C D)\n");
    }

    #[test]
    fn what_does_not_fit_stays() {
        let long = format!("f(\n    {},\n    {},\n);\n", "a".repeat(60), "b".repeat(60));
        check(&long, &long);
    }

    #[test]
    fn statements_declarations_and_comments_stay() {
        for text in [
            "if a {\n    b: c;\n}\n",
            "pub struct A {\n    b: C,\n}\n",
            "match a {\n    B => c,\n}\n",
            "f(\n    // why\n    a,\n)\n",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn the_last_argument_opens_in_the_line_of_the_call() {
        let long = "c".repeat(90);
        check(
            &format!("Ok(\n    f(\n        {long},\n        {long},\n    ),\n)\n"),
            &format!("Ok(f(\n    {long},\n    {long},\n))\n"),
        );
        check(
            "f(\n    a,\n    |b| {\n        let c = b;\n        c\n    },\n)\n",
            "f(a, |b| {\n    let c = b;\n    c\n})\n",
        );
    }

    #[test]
    fn short_choices_and_calls_stand_in_one_line() {
        check("let Some(a) = b else {\n    return c;\n};\n", "let Some(a) = b else { return c };\n");
        check("let a = if b {\n    c\n} else {\n    d\n};\n", "let a = if b { c } else { d };\n");
        check("a(b)\n    .c()\n", "a(b).c()\n");
        check("a(b)\n    .c()\n    .d(),\n", "a(b).c().d(),\n");
    }
}
