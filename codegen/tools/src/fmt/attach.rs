//! Attaches each comment to its item.
//!
//! A comment after an item on the same line belongs to it; one on a line of its own belongs to the item below, or, if
//! it is indented like the items of a block that ends there, to the end of that block.

use super::tree::{Comment, Item, Kind, List, Trivia, Value};

/// Attaches the comments to the tree.
pub(super) fn attach(root: &mut Value, comments: &[Comment], text: &str) {
    let mut attach = Attach { comments, next: 0, text };
    if let Kind::Map(list) | Kind::Seq(list) = &mut root.kind {
        attach.items(list, None, text.len());
        let rest = attach.take_before(usize::MAX, false);
        list.footer.extend(rest);
    }
}

struct Attach<'a> {
    comments: &'a [Comment],
    /// The first comment that is not attached yet.
    next: usize,
    text: &'a str,
}

impl<'a> Attach<'a> {
    /// The items of a list that ends before `limit`; `parent` is the column of the item it is in.
    fn items(&mut self, list: &mut List, parent: Option<usize>, limit: usize) {
        let starts: Vec<usize> = list.items.iter().map(Item::start).collect();
        for (index, item) in list.items.iter_mut().enumerate() {
            let leading = self.take_before(starts[index], true);
            item.leading.extend(leading);
            self.value(item, starts.get(index + 1).copied().unwrap_or(limit));
        }
        if list.flow {
            list.footer = self.take_before(limit, false);
            return;
        }
        while let Some(comment) = self.peek(limit)
            && self.is_alone(comment.start)
            && parent.is_none_or(|parent| self.column(comment.start) > parent)
        {
            if self.follows_blank(comment.start) {
                list.footer.push(Trivia::Blank);
            }
            list.footer.push(Trivia::Comment(comment.text.clone()));
            self.next += 1;
        }
    }

    /// The comments around and inside an item's value; the next item starts at `limit`.
    fn value(&mut self, item: &mut Item, limit: usize) {
        let item_column = match &item.key {
            Some(key) => self.column(key.start),
            None => self.dash_column(item.value.start),
        };
        let key_end = item.key.as_ref().map_or(item.value.start, |key| key.end);
        let (start, end) = (item.value.start, item.value.end);
        let is_block = matches!(&item.value.kind, Kind::Seq(list) | Kind::Map(list) if !list.flow);
        // Between the key and the value.
        while let Some(comment) = self.peek(start) {
            if item.trailing.is_none() && self.same_line(key_end, comment.start) {
                item.trailing = Some(comment.text.clone());
            } else if is_block {
                break;
            } else {
                item.leading.push(Trivia::Comment(comment.text.clone()));
            }
            self.next += 1;
        }
        match &mut item.value.kind {
            Kind::Seq(list) | Kind::Map(list) => {
                let inner_limit = if list.flow { end } else { limit };
                self.items(list, Some(item_column), inner_limit);
                if list.items.is_empty() {
                    item.leading.append(&mut list.footer);
                }
            }
            // The head of a block of text can have a comment.
            Kind::Scalar(..) => {
                while let Some(comment) = self.peek(end) {
                    self.behind(item, comment);
                }
            }
            Kind::Null | Kind::Alias(_) => {}
        }
        if !is_block
            && let Some(comment) = self.peek(limit)
            && self.same_line(end, comment.start)
            && !self.is_alone(comment.start)
        {
            self.behind(item, comment);
        }
    }

    /// Attaches a comment to the end of the item's line, or above it if there is one already.
    fn behind(&mut self, item: &mut Item, comment: &Comment) {
        match &item.trailing {
            None => item.trailing = Some(comment.text.clone()),
            Some(_) => item.leading.push(Trivia::Comment(comment.text.clone())),
        }
        self.next += 1;
    }

    fn peek(&self, limit: usize) -> Option<&'a Comment> {
        self.comments.get(self.next).filter(|comment| comment.start < limit)
    }

    /// The comments before a position, and whether blank lines separate them.
    fn take_before(&mut self, place: usize, blank_at_end: bool) -> Vec<Trivia> {
        let mut taken = Vec::new();
        while let Some(comment) = self.peek(place) {
            if self.follows_blank(comment.start) {
                taken.push(Trivia::Blank);
            }
            taken.push(Trivia::Comment(comment.text.clone()));
            self.next += 1;
        }
        if blank_at_end && self.follows_blank(place) {
            taken.push(Trivia::Blank);
        }
        taken
    }

    fn line_start(&self, place: usize) -> usize {
        self.text[..place].rfind('\n').map_or(0, |newline| newline + 1)
    }

    fn column(&self, place: usize) -> usize {
        place - self.line_start(place)
    }

    /// The column of the dash before an item of a list.
    fn dash_column(&self, place: usize) -> usize {
        let before = &self.text[..place];
        let dash = before.rfind("- ").or_else(|| before.rfind("-\n"));
        dash.map_or(0, |dash| self.column(dash))
    }

    /// Whether only blanks precede a position on its line.
    fn is_alone(&self, place: usize) -> bool {
        self.text[self.line_start(place)..place].trim().is_empty()
    }

    fn same_line(&self, from: usize, to: usize) -> bool {
        from <= to && !self.text[from..to].contains('\n')
    }

    /// Whether the line above is blank.
    fn follows_blank(&self, place: usize) -> bool {
        let start = self.line_start(place);
        start > 0 && self.text[self.line_start(start - 1)..start - 1].trim().is_empty()
    }
}
