//! Tickets: the number of a stream and a count of its tickets.
//!
//! In: both, or a ticket. Out: the other. Must not know streams.

use opsmith_runtime::backend::Ticket;

/// Bits of the count.
const COUNT_BITS: u32 = 48;

/// The ticket of a stream with a number from 1.
#[inline]
pub fn ticket(number: u16, count: u64) -> Ticket {
    Ticket(u64::from(number) << COUNT_BITS | count)
}

/// The number of the stream that issued a ticket; 0 for a point that has passed.
pub fn number_of(ticket: Ticket) -> u16 {
    (ticket.0 >> COUNT_BITS) as u16
}

/// The count of the stream's tickets with this one.
pub fn count_of(ticket: Ticket) -> u64 {
    ticket.0 & ((1 << COUNT_BITS) - 1)
}
