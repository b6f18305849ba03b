//! Emission in pieces: a module's operators a few at a time, on every processor.
//!
//! In: a `Generation`. Out: the text of each emitter's module, the same however many threads there
//! are. Tokens of a few operators fit into caches and are gone before the next; those of a library with
//! thousands would take hundreds of megabytes. Must not know the output of emitters.

use std::num::NonZero;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::formatted::{Formatted, PieceKey, PieceOfFile};
use super::{EMITTERS, Emitter, Generation, Selection, format};

/// Operators a piece.
const PIECE: usize = 16;

/// More threads than this wait for each other's memory.
const MAX_THREADS: usize = 8;

/// A share of one module.
struct Piece {
    emitter: usize,
    /// Which of the model's operators; all, if the module is one whole.
    operators: Option<Range<usize>>,
}

/// The formatted text of a piece, and the key of its tokens.
type Text = (PieceKey, String);

/// The text of a module, and the ranges of its pieces.
#[derive(Clone, Default)]
pub(super) struct Module {
    pub(super) text: String,
    pub(super) pieces: Vec<PieceOfFile>,
}

/// Every emitter's module, in order; empty for one that is not part of the crate. A piece that an earlier run formatted is
/// taken from there.
///
/// # Errors
/// If an emitter wrote something that is not Rust.
pub(super) fn modules(generation: &Generation<'_>, earlier: &Formatted) -> Result<Vec<Module>, String> {
    let pieces = pieces(generation);
    let texts = texts(generation, earlier, &pieces)?;
    let mut modules = vec![Module::default(); EMITTERS.len()];
    for (piece, (key, text)) in pieces.iter().zip(texts) {
        let module = &mut modules[piece.emitter];
        // A blank line stands between any two items.
        if !module.text.is_empty() && !text.is_empty() {
            module.text.push('\n');
        }
        module.pieces.push(PieceOfFile { key, start: module.text.len(), length: text.len() });
        module.text.push_str(&text);
    }
    Ok(modules)
}

/// Modules that are one whole come first.
fn pieces(generation: &Generation<'_>) -> Vec<Piece> {
    let operators = generation.model.ops.len();
    let (divided, whole): (Vec<_>, Vec<_>) = (0..EMITTERS.len())
        .filter(|index| EMITTERS[*index].is_part_of(generation.config))
        .partition(|index| EMITTERS[*index].divisible);
    let whole = whole.into_iter().map(|emitter| Piece { emitter, operators: None });
    let starts = move || (0..operators).step_by(PIECE);
    let divided = divided.into_iter().flat_map(move |emitter| {
        starts().map(move |start| Piece { emitter, operators: Some(start..(start + PIECE).min(operators)) })
    });
    whole.chain(divided).collect()
}

fn texts(generation: &Generation<'_>, earlier: &Formatted, pieces: &[Piece]) -> Result<Vec<Text>, String> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = cores.min(MAX_THREADS).min(pieces.len() / 2).max(1);
    let done: Vec<Mutex<Option<Result<Text, String>>>> = pieces.iter().map(|_| Mutex::new(None)).collect();
    let wholes = pieces.iter().take_while(|piece| piece.operators.is_none()).count();
    let (next_whole, next_share) = (AtomicUsize::new(0), AtomicUsize::new(wholes));
    let whole = || Some(next_whole.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < wholes);
    let share = || Some(next_share.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < pieces.len());
    let work = |generation: &Generation<'_>, starts_with_wholes: bool| {
        // Modules that are one whole take longest, and most memory, so that only one thread begins with them.
        let position = || if starts_with_wholes { whole().or_else(share) } else { share().or_else(whole) };
        while let Some(position) = position() {
            let piece = &pieces[position];
            let selection = piece.operators.clone().map_or(generation.selection.clone(), Selection::Range);
            let share = Generation { model: generation.model, config: generation.config, selection };
            let text = text(&EMITTERS[piece.emitter], &share, earlier);
            if let Ok(mut slot) = done[position].lock() {
                *slot = Some(text);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| work(generation, false));
        }
        work(generation, true);
    });
    let missing = || Err("a thread of the generator ended early".to_owned());
    done.into_iter().map(|slot| slot.into_inner().ok().flatten().unwrap_or_else(missing)).collect()
}

fn text(emitter: &Emitter, generation: &Generation<'_>, earlier: &Formatted) -> Result<Text, String> {
    let tokens = emitter.tokens(generation);
    let key = PieceKey::of(&tokens);
    if let Some(text) = earlier.text(key) {
        return Ok((key, text.clone()));
    }
    let text = format::source(tokens, || emitter.tokens(generation)).map_err(|error| {
        format!("the emitter {} wrote something that is not Rust: {error}", emitter.source)
    })?;
    Ok((key, text))
}
