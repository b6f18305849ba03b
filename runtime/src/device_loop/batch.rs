//! Loops that are held back, and submitted together.
//!
//! In: the loops over elements that a thread asks for while it holds them back. Out: their results, by fewer launches: consecutive
//! loops of one shape are a chain, and chains of one kernel over operands of several sizes are one launch. They are submitted before
//! other work of the thread on a device, and at the end. Results have the bits of separate launches.
//!
//! ```text
//! held back     m1 = lerp(m1, g1)   r1 = sqrt(v1)   p1 += m1 / r1     m2 = lerp(m2, g2)   r2 = sqrt(v2)   p2 += m2 / r2
//! chains        c1: m1, p1 (r1 in registers)                          c2: m2, p2: the kernel of c1
//! launches      [c1, c2]
//! ```
//!
//! A tensor that nothing else holds when its chain is submitted, as a temporary result, exists in registers alone.

use std::cell::RefCell;
use std::collections::HashMap;

use smallvec::SmallVec;

use super::chain::{Chain, MAX_CHAIN_DIMS, run_many};
use super::gather::ElementLoop;
use super::grow::{ChainElements, GrowingChain};
use super::launch;
use crate::backend;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::tensor::{Tensor, on_device};

/// A loop that is held back; tensors are positions in [`Batch::tensors`].
struct Pending {
    name: &'static str,
    element: ElementLoop,
    out: usize,
    inputs: SmallVec<[usize; 4]>,
}

#[derive(Default)]
struct Batch {
    /// Each tensor once, so that one of which this is the only handle is known.
    tensors: Vec<Tensor>,
    loops: Vec<Pending>,
}

thread_local! {
    /// The loops that this thread holds back, if it does.
    static HELD: RefCell<Option<Batch>> = const { RefCell::new(None) };
}

/// Holds back the loops that a function asks for; all are submitted when this returns.
///
/// # Errors
/// Errors of the function, and of the loops.
pub fn in_batches<R>(function: impl FnOnce() -> Result<R>) -> Result<R> {
    /// Ends the batch also if the function panics.
    struct End;

    impl Drop for End {
        fn drop(&mut self) {
            backend::hold_back(None);
            HELD.set(None);
        }
    }

    if HELD.with_borrow(Option::is_some) {
        return function();
    }
    HELD.set(Some(Batch::default()));
    backend::hold_back(Some(submit));
    let end = End;
    let result = function();
    let submitted = submit();
    drop(end);
    let result = result?;
    submitted.map(|()| result)
}

/// Calls a function whose loops are launched at once, after those that this thread holds back: it changes what its tensors show, or
/// records its work.
///
/// # Errors
/// Errors of the function, and of the loops that were held back.
pub fn apart<R>(function: impl FnOnce() -> Result<R>) -> Result<R> {
    /// Holds back again, also if the function panics.
    struct Again;

    impl Drop for Again {
        fn drop(&mut self) {
            HELD.set(Some(Batch::default()));
            backend::hold_back(Some(submit));
        }
    }

    if !backend::holds_back() {
        return function();
    }
    submit()?;
    HELD.set(None);
    backend::hold_back(None);
    let _again = Again;
    function()
}

/// Holds a loop back, if this thread does so; its operands are the result, and its inputs. Whether it does.
pub(super) fn held(name: &'static str, operands: &[&Tensor], element: impl FnOnce() -> ElementLoop) -> bool {
    HELD.with_borrow_mut(|held| {
        let Some(batch) = held else { return false };
        let mut place = |tensor: &Tensor| {
            let known = batch.tensors.iter().rposition(|known| known.same(tensor));
            known.unwrap_or_else(|| {
                batch.tensors.push(tensor.clone());
                batch.tensors.len() - 1
            })
        };
        let (out, inputs) = (place(operands[0]), operands[1..].iter().map(|input| place(input)).collect());
        batch.loops.push(Pending { name, element: element(), out, inputs });
        true
    })
}

/// Submits all loops that this thread holds back.
///
/// # Errors
/// Errors of the device.
fn submit() -> Result<()> {
    let taken = HELD.with_borrow_mut(|held| held.as_mut().map(std::mem::take));
    match taken {
        Some(batch) if !batch.loops.is_empty() => batch.submit(),
        _ => Ok(()),
    }
}

/// A chain of loops, and the loops; one loop that can be in none has an empty chain.
struct Part {
    chain: GrowingChain<usize>,
    device: Device,
    loops: std::ops::Range<usize>,
}

/// A chain with its operands, ready to be launched; or a loop that can be in none.
struct Ready {
    chain: Option<Chain>,
    device: Device,
    /// The loop, if it is the only one.
    alone: Option<usize>,
    operands: Vec<usize>,
    /// The memory of the first operands is written.
    results: usize,
}

impl Batch {
    fn submit(mut self) -> Result<()> {
        let parts = self.parts();
        let mut users: HashMap<usize, SmallVec<[usize; 2]>> = HashMap::new();
        for (number, part) in parts.iter().enumerate() {
            for pending in &self.loops[part.loops.clone()] {
                for position in pending.inputs.iter().chain([&pending.out]) {
                    let parts = users.entry(self.tensors[*position].storage().address()).or_default();
                    if !parts.contains(&number) {
                        parts.push(number);
                    }
                }
            }
        }
        let ready = parts.into_iter().map(|part| self.ready(part, &users)).collect::<Result<Vec<Ready>>>()?;
        grouped(&self.tensors, ready).into_iter().try_for_each(|group| self.launch(&group))
    }

    /// Consecutive loops of one shape.
    fn parts(&self) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        for (number, pending) in self.loops.iter().enumerate() {
            let out = &self.tensors[pending.out];
            let sizes = out.shape();
            let elements = |position: &usize| {
                let tensor = &self.tensors[*position];
                let memory = tensor.storage().address();
                let elements = ChainElements::of(memory, tensor.layout(), tensor.dtype(), sizes);
                // Operands broadcast to the result.
                elements.map(|elements| (elements, *position))
            };
            let inputs = pending.inputs.iter().map(elements).collect::<Option<Vec<_>>>();
            let few = sizes.iter().filter(|size| **size != 1).count() <= MAX_CHAIN_DIMS;
            let usable = inputs.zip(elements(&pending.out)).filter(|_| few);
            let named = (pending.name, &pending.element);
            if let Some((inputs, result)) = &usable
                && let Some(part) = parts.last_mut()
                && part.device == out.device()
                && part.chain.sizes.as_slice() == sizes
                && !part.chain.links.is_empty()
                && part.chain.add(named, inputs, result.clone())
            {
                part.loops.end = number + 1;
                continue;
            }
            let mut chain = GrowingChain::new(sizes.into());
            if let Some((inputs, result)) = usable {
                chain.add(named, &inputs, result);
            }
            parts.push(Part { chain, device: out.device(), loops: number..number + 1 });
        }
        parts
    }

    /// The kernel of a part. Memory of which nothing else has a handle, and that no other part uses, is not written.
    fn ready(&mut self, part: Part, users: &HashMap<usize, SmallVec<[usize; 2]>>) -> Result<Ready> {
        let Part { chain, device, loops } = part;
        let alone = (loops.len() == 1).then_some(loops.start);
        if chain.links.is_empty() {
            let pending = &self.loops[loops.start];
            let operands = std::iter::once(pending.out).chain(pending.inputs.iter().copied()).collect();
            return Ok(Ready { chain: None, device, alone, operands, results: 1 });
        }
        let mut stored: Vec<(usize, usize)> = Vec::new();
        for write in &chain.writes {
            let tensor = &mut self.tensors[write.tensor];
            let shared = users.get(&write.elements.memory).is_none_or(|parts| parts.len() > 1);
            if shared || !write.made || tensor.storage().references() > 1 || !tensor.is_unique() {
                stored.push((write.link, write.tensor));
            }
        }
        if let ([], Some(last)) = (stored.as_slice(), chain.writes.last()) {
            // A result that nothing reads; its kernel may still report an error.
            stored.push((last.link, last.tensor));
        }
        let results = stored.len();
        let links: Vec<usize> = stored.iter().map(|(link, _)| *link).collect();
        let operands: Vec<usize> = stored
            .iter()
            .map(|(_, tensor)| *tensor)
            .chain(chain.reads.iter().map(|(_, tensor)| *tensor))
            .collect();
        let tensors: SmallVec<[&Tensor; 8]> =
            operands.iter().map(|position| &self.tensors[*position]).collect();
        let chain = Chain::new(&chain.links, &links, &tensors)?;
        Ok(Ready { chain: Some(chain), device, alone, operands, results })
    }

    fn launch(&self, group: &[Ready]) -> Result<()> {
        let [first, others @ ..] = group else { return Ok(()) };
        let operands: Vec<Vec<&Tensor>> = group
            .iter()
            .map(|ready| ready.operands.iter().map(|position| &self.tensors[*position]).collect())
            .collect();
        if let (Some(chain), false) = (&first.chain, others.is_empty()) {
            let chains = group.iter().filter_map(|ready| ready.chain.as_ref());
            let all: Vec<(&Chain, &[&Tensor])> = chains.zip(operands.iter().map(Vec::as_slice)).collect();
            // SAFETY: the tensors are those for which the chains were made, and keep their memory; the group was so chosen that
            // none writes what another accesses.
            return all.chunks(chain.most()).try_for_each(|chunk| unsafe { run_many(first.device, chunk) });
        }
        let pending = first.alone.map(|number| &self.loops[number]);
        if let Some(Pending {
            element: ElementLoop::Expression { of, variant, dtype, constants, .. },
            out,
            inputs,
            ..
        }) = pending
        {
            let operands: SmallVec<[&Tensor; 8]> =
                std::iter::once(out).chain(inputs).map(|position| &self.tensors[*position]).collect();
            let for_each =
                |visit: &mut dyn FnMut(&Tensor)| operands.iter().for_each(|operand| visit(operand));
            return on_device(first.device, for_each, |_| {
                launch(of, (*variant, *dtype), &operands, constants)
            });
        }
        let Some(chain) = &first.chain else {
            return Err(Error::kernel("a loop that was held back is no expression"));
        };
        // SAFETY: the tensors are those for which the chain was made, and keep their memory; results overlap operands only as the
        // same elements.
        unsafe { chain.run(first.device, &operands[0]) }
    }
}

/// Chains in groups, each of one launch or several of one kernel, in an order that gives the same results.
fn grouped(tensors: &[Tensor], ready: Vec<Ready>) -> Vec<Vec<Ready>> {
    let memory = |position: &usize| tensors[*position].storage().address();
    let conflicts = |one: &Ready, other: &Ready| {
        let writes = |ready: &Ready, of: &Ready| {
            ready.operands[..ready.results]
                .iter()
                .any(|written| of.operands.iter().any(|read| memory(read) == memory(written)))
        };
        writes(one, other) || writes(other, one)
    };
    let mut groups: Vec<Vec<Ready>> = Vec::new();
    for next in ready {
        let mut place = None;
        for (number, group) in groups.iter().enumerate().rev() {
            if group.iter().any(|known| conflicts(known, &next)) {
                break;
            }
            let goes_with = |chain: &Chain, next: &Chain| chain.goes_with(next) && next.most() > 1;
            let chains = group[0].chain.as_ref().zip(next.chain.as_ref());
            if group[0].device == next.device && chains.is_some_and(|(chain, next)| goes_with(chain, next)) {
                place = Some(number);
                break;
            }
        }
        match place {
            Some(number) => groups[number].push(next),
            None => groups.push(vec![next]),
        }
    }
    groups
}
