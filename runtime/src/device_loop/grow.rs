//! A chain that grows by one call after another, as long as it stays sound.
//!
//! In: loops of calls, and the elements of their tensors. Out: links, with each input either an operand or the result of an earlier
//! link. A chain reads all elements of a position before it writes one, and other positions at other times: so a memory that it
//! writes is accessed at one place alone. Must not know graphs or tensors: `T` stands for a tensor.

use opsmith_core::DType;
use smallvec::SmallVec;

use super::chain::{ChainInput, ChainLink, MAX_CHAIN_LINKS, MAX_CHAIN_OPERANDS};
use super::gather::ElementLoop;
use crate::layout::{Dims, Layout};

/// The elements of a tensor at the positions of a shape.
#[derive(Clone, PartialEq, Debug)]
pub struct ChainElements {
    /// The number of its memory.
    pub memory: usize,
    dtype: DType,
    offset: i64,
    /// Steps along the dimensions; 0 where the tensor is broadcast.
    strides: Dims,
}

impl ChainElements {
    /// The elements of a tensor of a layout; `None` if it has more dimensions than the shape.
    pub fn of(memory: usize, layout: &Layout, dtype: DType, sizes: &[i64]) -> Option<ChainElements> {
        let missing = sizes.len().checked_sub(layout.sizes.len())?;
        let own = std::iter::zip(&layout.sizes, &layout.strides);
        let own = own.map(|(size, stride)| if *size == 1 { 0 } else { *stride });
        let strides = std::iter::repeat_n(0, missing).chain(own).collect();
        Some(ChainElements { memory, dtype, offset: layout.offset, strides })
    }
}

/// A memory that the chain writes.
#[derive(Debug)]
pub struct ChainWrite<T> {
    /// Its elements.
    pub elements: ChainElements,
    /// The tensor.
    pub tensor: T,
    /// The link that wrote it last.
    pub link: usize,
    /// Whether nothing read it before it was written.
    pub made: bool,
}

/// A chain that may grow.
#[derive(Debug)]
pub struct GrowingChain<T> {
    /// The shape of all results.
    pub sizes: Dims,
    /// The loops.
    pub links: Vec<ChainLink>,
    /// The operands that are read, in their order.
    pub reads: Vec<(ChainElements, T)>,
    /// The memory that is written.
    pub writes: Vec<ChainWrite<T>>,
}

impl<T: Copy> GrowingChain<T> {
    /// A chain without loops.
    pub fn new(sizes: Dims) -> GrowingChain<T> {
        GrowingChain { sizes, links: Vec::new(), reads: Vec::new(), writes: Vec::new() }
    }

    /// Adds a loop whose result has the shape, if the chain stays sound and small enough; whether it did.
    pub fn add(
        &mut self,
        (name, element): (&'static str, &ElementLoop),
        given: &[(ChainElements, T)],
        (out, tensor): (ChainElements, T),
    ) -> bool {
        let overlaps =
            std::iter::zip(&out.strides, &self.sizes).any(|(stride, size)| *stride == 0 && *size != 1);
        let mut inputs: SmallVec<[ChainInput; 4]> = SmallVec::new();
        let mut reads: Vec<(ChainElements, T)> = Vec::new();
        for (elements, id) in given {
            if let Some(written) =
                self.writes.iter().find(|written| written.elements.memory == elements.memory)
            {
                if written.elements != *elements {
                    return false;
                }
                inputs.push(ChainInput::Link(written.link));
                continue;
            }
            let known = self.reads.iter().chain(&reads).position(|(known, _)| known == elements);
            inputs.push(ChainInput::Operand(known.unwrap_or_else(|| {
                reads.push((elements.clone(), *id));
                self.reads.len() + reads.len() - 1
            })));
        }
        let others = || self.reads.iter().chain(&reads).filter(|(elements, _)| elements.memory == out.memory);
        let (read_before, read_elsewhere) =
            (others().count() > 0, others().any(|(elements, _)| *elements != out));
        let before = self.writes.iter().position(|written| written.elements.memory == out.memory);
        let written_elsewhere = before.is_some_and(|before| self.writes[before].elements != out);
        let operands = self.reads.len() + reads.len() + self.writes.len() + usize::from(before.is_none());
        let too_many = operands > MAX_CHAIN_OPERANDS || self.links.len() >= MAX_CHAIN_LINKS;
        if overlaps || read_elsewhere || written_elsewhere || too_many {
            return false;
        }
        let (link, dtype) = (self.links.len(), out.dtype);
        match before {
            Some(before) => self.writes[before].link = link,
            None => self.writes.push(ChainWrite { elements: out, tensor, link, made: !read_before }),
        }
        self.reads.extend(reads);
        self.links.push(ChainLink { name, element: element.clone(), inputs, dtype });
        true
    }
}
