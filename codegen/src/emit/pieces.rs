//! Emission in pieces: a module's operators a few at a time, on every processor.
//!
//! In: what to generate. Out: the text of each emitter's module, the same however many threads there
//! are. Tokens of a few operators fit into caches and are gone before the next; those of a library with
//! thousands would take hundreds of megabytes. Must not know what emitters write.

use std::num::NonZero;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

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

/// The text of every emitter's module, in order; empty for a module that is not part of the crate.
///
/// # Errors
/// If an emitter wrote something that is not Rust.
pub(super) fn modules(generation: &Generation<'_>) -> Result<Vec<String>, String> {
    let pieces = pieces(generation);
    let texts = texts(generation, &pieces)?;
    let mut modules = vec![String::new(); EMITTERS.len()];
    for (piece, text) in pieces.iter().zip(texts) {
        let module = &mut modules[piece.emitter];
        // A blank line stands between any two items.
        if !module.is_empty() && !text.is_empty() {
            module.push('\n');
        }
        module.push_str(&text);
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

fn texts(generation: &Generation<'_>, pieces: &[Piece]) -> Result<Vec<String>, String> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = cores.min(MAX_THREADS).min(pieces.len() / 2).max(1);
    let done: Vec<Mutex<Option<Result<String, String>>>> = pieces.iter().map(|_| Mutex::new(None)).collect();
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
            let text = text(&EMITTERS[piece.emitter], &share);
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

fn text(emitter: &Emitter, generation: &Generation<'_>) -> Result<String, String> {
    format::source(|| emitter.tokens(generation))
        .map_err(|error| format!("the emitter {} wrote something that is not Rust: {error}", emitter.source))
}
