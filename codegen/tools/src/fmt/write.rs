//! Prints the tree.

use super::WIDTH;
use super::scalar::{self, Breaks, Context, columns, inline};
use super::tree::{Item, Kind, List, Trivia, Value};
use opsmith_codegen::spec::document::keys::{DECLARATION_KEYS, FILE_KEYS, FUNCTION_KEYS, KeySpec, OP_KEYS};
use opsmith_codegen::spec::yaml::ScalarStyle;

/// The canonical text of a file.
pub(super) fn write(root: Value) -> String {
    let Kind::Map(mut file) = root.kind else { return String::new() };
    let mut out = String::new();
    for trivia in file_head(&mut file) {
        push_trivia(&mut out, &trivia, 0);
    }
    file.flow = false;
    sort(&mut file, FILE_KEYS);
    let entries: [(&str, &[KeySpec]); 3] =
        [("functions", FUNCTION_KEYS), ("ops", OP_KEYS), ("declarations", DECLARATION_KEYS)];
    for (index, item) in file.items.iter_mut().enumerate() {
        let key = item.key.as_ref().and_then(Value::text).unwrap_or_default();
        let table = entries.iter().find(|(name, _)| *name == key).map(|(_, table)| *table);
        let list = match (&mut item.value.kind, table) {
            (Kind::Seq(list), Some(_)) => Some(list),
            _ => None,
        };
        let set_off = index > 0 && list.as_ref().is_some_and(|list| !list.items.is_empty());
        let is_entries = list.is_some();
        if let (Some(list), Some(table)) = (list, table) {
            list.flow &= list.items.is_empty();
            list.items.iter_mut().for_each(|entry| sort_entry(entry, table));
        }
        leading(&mut out, &item.leading, 0, set_off);
        let spacing = if is_entries { Spacing::Entries } else { Spacing::Tight };
        map_item(&mut out, item, 0, spacing);
    }
    if !file.footer.is_empty() && !out.is_empty() {
        out.push('\n');
        while out.ends_with("\n\n\n") {
            out.pop();
        }
    }
    let footer = file.footer.iter().skip_while(|trivia| **trivia == Trivia::Blank);
    footer.for_each(|trivia| push_trivia(&mut out, trivia, 0));
    out.truncate(out.trim_end_matches('\n').len());
    out.push('\n');
    out
}

/// The separation of items of a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spacing {
    /// Not at all.
    Tight,
    /// By a blank line, if one of two neighbours has several lines or there was one.
    Entries,
}

/// Removes and returns the comments at the top of the file that a blank line separates from the first key.
fn file_head(file: &mut List) -> Vec<Trivia> {
    let Some(first) = file.items.first_mut() else { return Vec::new() };
    let head = first.leading.iter().rposition(|trivia| *trivia == Trivia::Blank).map_or(0, |blank| blank + 1);
    let head: Vec<Trivia> = first.leading.drain(..head).collect();
    head.into_iter().skip_while(|trivia| *trivia == Trivia::Blank).collect()
}

fn sort(list: &mut List, table: &[KeySpec]) {
    let position = |item: &Item| {
        let key = item.key.as_ref().and_then(Value::text);
        table.iter().position(|row| Some(row.name) == key)
    };
    list.items.sort_by_key(|item| position(item).unwrap_or(usize::MAX));
}

/// Sorts the keys of an entry. Lines above the first key are above the whole entry.
fn sort_entry(entry: &mut Item, table: &[KeySpec]) {
    if let Kind::Map(map) = &mut entry.value.kind {
        sort(map, table);
    }
}

/// The lines above an item; a blank line first if there was one or `set_off`.
fn leading(out: &mut String, trivia: &[Trivia], indent: usize, set_off: bool) {
    if set_off && trivia.first() != Some(&Trivia::Blank) {
        push_trivia(out, &Trivia::Blank, indent);
    }
    trivia.iter().for_each(|trivia| push_trivia(out, trivia, indent));
}

fn push_trivia(out: &mut String, trivia: &Trivia, indent: usize) {
    match trivia {
        Trivia::Blank if out.is_empty() || out.ends_with("\n\n") => {}
        Trivia::Blank => out.push('\n'),
        Trivia::Comment(text) => {
            pad(out, indent);
            out.push_str(text);
            out.push('\n');
        }
    }
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

/// The items of a block mapping or list, each on lines of its own.
fn block(out: &mut String, list: &List, indent: usize, spacing: Spacing) {
    let mut previous_lines = 0;
    for (index, item) in list.items.iter().enumerate() {
        let mut text = String::new();
        match &item.key {
            Some(_) => map_item(&mut text, item, indent, Spacing::Tight),
            None => list_item(&mut text, item, indent),
        }
        let lines = text.lines().count();
        let above = above(item, indent);
        match spacing {
            Spacing::Tight => above
                .iter()
                .filter(|trivia| **trivia != Trivia::Blank)
                .for_each(|trivia| push_trivia(out, trivia, indent)),
            Spacing::Entries if index == 0 => {
                let above: Vec<Trivia> =
                    above.into_iter().skip_while(|trivia| *trivia == Trivia::Blank).collect();
                leading(out, &above, indent, false);
            }
            Spacing::Entries => leading(out, &above, indent, lines > 1 || previous_lines > 1),
        }
        out.push_str(&text);
        previous_lines = lines;
    }
    let deeper = if list.items.iter().any(|item| item.key.is_none()) { indent + 2 } else { indent };
    list.footer
        .iter()
        .filter(|trivia| **trivia != Trivia::Blank)
        .for_each(|trivia| push_trivia(out, trivia, deeper));
}

/// The lines above an item at a column, with those above its own first item if they share a line.
fn above(item: &Item, indent: usize) -> Vec<Trivia> {
    let mut trivia = item.leading.clone();
    if let Kind::Map(list) | Kind::Seq(list) = &item.value.kind
        && item.key.is_none()
        && item.value.anchor.is_none()
        && flow_if_fits(&item.value, indent + 2).is_none()
    {
        trivia.extend(item.trailing.iter().cloned().map(Trivia::Comment));
        let first = list.items.first().map(|first| above(first, indent + 2)).unwrap_or_default();
        trivia.extend(first.into_iter().filter(|trivia| *trivia != Trivia::Blank));
    }
    trivia
}

/// A key with its value, at the indentation of its mapping.
fn map_item(out: &mut String, item: &Item, indent: usize, spacing: Spacing) {
    pad(out, indent);
    if let Some(key) = &item.key {
        out.push_str(&key_text(key, Context::Key));
        out.push(':');
    }
    if let Some(anchor) = &item.value.anchor {
        out.push_str(&format!(" &{anchor}"));
    }
    let used = columns(&out[out.rfind('\n').map_or(0, |newline| newline + 1)..]);
    match &item.value.kind {
        Kind::Null => end_line(out, &item.trailing),
        Kind::Alias(name) => {
            out.push_str(&format!(" *{name}"));
            end_line(out, &item.trailing);
        }
        Kind::Scalar(text, style) => {
            let is_prose = item.key.as_ref().and_then(Value::text) == Some("doc");
            let breaks = if is_prose { Breaks::Words } else { Breaks::Code };
            scalar_value(out, item, text, *style, &Place { indent, step: 2, breaks });
        }
        Kind::Seq(list) | Kind::Map(list) => match flow_if_fits(&item.value, used + 1) {
            Some(flow) if spacing == Spacing::Tight || list.items.is_empty() => {
                out.push(' ');
                out.push_str(&flow);
                end_line(out, &item.trailing);
            }
            _ => {
                end_line(out, &item.trailing);
                let deeper = if matches!(item.value.kind, Kind::Seq(_)) { indent } else { indent + 2 };
                block(out, list, deeper, spacing);
            }
        },
    }
}

/// An item of a list, with its dash.
fn list_item(out: &mut String, item: &Item, indent: usize) {
    pad(out, indent);
    out.push('-');
    if let Some(anchor) = &item.value.anchor {
        out.push_str(&format!(" &{anchor}"));
    }
    let used = columns(&out[out.rfind('\n').map_or(0, |newline| newline + 1)..]);
    match &item.value.kind {
        Kind::Null => {
            out.push_str(" ~");
            end_line(out, &item.trailing);
        }
        Kind::Alias(name) => {
            out.push_str(&format!(" *{name}"));
            end_line(out, &item.trailing);
        }
        Kind::Scalar(text, style) => {
            scalar_value(out, item, text, *style, &Place { indent, step: 4, breaks: Breaks::Code });
        }
        Kind::Seq(list) | Kind::Map(list) => match flow_if_fits(&item.value, used + 1) {
            Some(flow) => {
                out.push(' ');
                out.push_str(&flow);
                end_line(out, &item.trailing);
            }
            None if item.value.anchor.is_some() => {
                end_line(out, &item.trailing);
                block(out, list, indent + 2, Spacing::Tight);
            }
            None => {
                // The comments of the first one are above the dash already.
                let mut inner = String::new();
                block(&mut inner, list, indent + 2, Spacing::Tight);
                let first_line = first_item_offset(list, indent + 2, &inner);
                out.push(' ');
                out.push_str(&inner[first_line + indent + 2..]);
            }
        },
    }
}

/// The offset of the first item in the text of a block, after the comments above it.
fn first_item_offset(list: &List, indent: usize, text: &str) -> usize {
    let Some(first) = list.items.first() else { return 0 };
    let comments = above(first, indent).into_iter().filter(|trivia| *trivia != Trivia::Blank).count();
    text.match_indices('\n').take(comments).last().map_or(0, |(newline, _)| newline + 1)
}

fn end_line(out: &mut String, trailing: &Option<String>) {
    if let Some(comment) = trailing {
        out.push_str("  ");
        out.push_str(comment);
    }
    out.push('\n');
}

/// The position of a text after a key or dash.
struct Place {
    /// The column of the key or dash.
    indent: usize,
    /// The additional indentation of a block of text.
    step: usize,
    /// Positions where its line may be broken.
    breaks: Breaks,
}

/// The text of an item: on one line, on several, or as a block.
fn scalar_value(out: &mut String, item: &Item, text: &str, style: ScalarStyle, place: &Place) {
    let deeper = place.indent + place.step;
    if text.contains('\n') || matches!(style, ScalarStyle::Literal | ScalarStyle::Folded) {
        let width = WIDTH.saturating_sub(deeper).max(20);
        if let Some((head, lines)) = scalar::block(text, style, place.step, width) {
            out.push(' ');
            out.push_str(&head);
            end_line(out, &item.trailing);
            for line in lines {
                if !line.is_empty() {
                    pad(out, deeper);
                    out.push_str(&line);
                }
                out.push('\n');
            }
            return;
        }
    }
    out.push(' ');
    let used = columns(&out[out.rfind('\n').map_or(0, |newline| newline + 1)..]);
    let whole = inline(text, style, Context::Block);
    if whole != *text || used + columns(&whole) <= WIDTH {
        out.push_str(&whole);
    } else {
        let rest = WIDTH.saturating_sub(place.indent + 4);
        let pieces = scalar::wrap(text, place.breaks, WIDTH.saturating_sub(used), rest);
        for (index, piece) in pieces.iter().enumerate() {
            if index > 0 {
                out.push('\n');
                pad(out, place.indent + 4);
            }
            out.push_str(piece);
        }
    }
    end_line(out, &item.trailing);
}

/// A list or mapping in brackets, if it was written so, has no comments inside and fits the line.
fn flow_if_fits(value: &Value, used: usize) -> Option<String> {
    let (Kind::Seq(list) | Kind::Map(list)) = &value.kind else { return None };
    if !list.items.is_empty() && (!list.flow || has_comments(list)) {
        return None;
    }
    let text = flow(value);
    (list.items.is_empty() || used + columns(&text) <= WIDTH).then_some(text)
}

fn has_comments(list: &List) -> bool {
    !list.footer.is_empty()
        || list.items.iter().any(|item| {
            item.trailing.is_some()
                || item.leading.iter().any(|trivia| *trivia != Trivia::Blank)
                || matches!(&item.value.kind, Kind::Seq(list) | Kind::Map(list) if has_comments(list))
        })
}

/// A value in brackets, without its anchor.
fn flow(value: &Value) -> String {
    let anchored = |value: &Value| match &value.anchor {
        Some(anchor) => format!("&{anchor} {}", flow(value)),
        None => flow(value),
    };
    match &value.kind {
        Kind::Null => "~".to_owned(),
        // A blank separates it from a bracket or comma, which could be part of the name.
        Kind::Alias(name) => format!("*{name} "),
        Kind::Scalar(text, style) => inline(text, *style, Context::Flow),
        Kind::Seq(list) => {
            let items: Vec<String> = list.items.iter().map(|item| anchored(&item.value)).collect();
            format!("[{}]", items.join(", "))
        }
        Kind::Map(list) => {
            let items = list.items.iter().map(|item| {
                let key = item.key.as_ref().map(|key| key_text(key, Context::Flow)).unwrap_or_default();
                format!("{key}: {}", anchored(&item.value))
            });
            format!("{{{}}}", items.collect::<Vec<_>>().join(", "))
        }
    }
}

fn key_text(key: &Value, context: Context) -> String {
    let anchor = key.anchor.as_ref().map(|anchor| format!("&{anchor} ")).unwrap_or_default();
    match &key.kind {
        Kind::Alias(name) => format!("*{name} "),
        Kind::Scalar(text, style) => format!("{anchor}{}", inline(text, *style, context)),
        _ => format!("{anchor}~"),
    }
}
