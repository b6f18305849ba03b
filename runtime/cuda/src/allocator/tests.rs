//! The allocator against a model of memory and streams.

use std::collections::BTreeMap;

use super::*;

/// A device with a limit, and streams whose tickets pass when the test says so.
#[derive(Default)]
struct Model {
    limit: usize,
    next: usize,
    segments: BTreeMap<usize, usize>,
    /// Tickets issued and passed, by stream.
    issued: [u64; 4],
    passed: [u64; 4],
    /// Tickets waited for.
    waits: usize,
}

impl Model {
    fn new(limit: usize) -> Model {
        Model { limit, next: SEGMENT, ..Model::default() }
    }

    fn held(&self) -> usize {
        self.segments.values().sum()
    }

    fn ticket(&mut self, stream: u16) -> Ticket {
        self.issued[usize::from(stream)] += 1;
        Ticket(u64::from(stream) << 48 | self.issued[usize::from(stream)])
    }
}

impl Source for Model {
    fn segment(&mut self, bytes: usize) -> Result<Option<usize>> {
        assert!(bytes.is_multiple_of(SEGMENT) && bytes > 0);
        if self.held() + bytes > self.limit {
            return Ok(None);
        }
        let start = self.next;
        self.next += bytes + SEGMENT;
        self.segments.insert(start, bytes);
        Ok(Some(start))
    }

    fn free(&mut self, start: usize) {
        self.segments.remove(&start).expect("a segment is freed once");
    }

    fn has_passed(&mut self, ticket: Ticket) -> bool {
        let stream = usize::from(number_of(ticket));
        stream == 0 || self.passed[stream] >= ticket.0 & ((1 << 48) - 1)
    }

    fn wait(&mut self, ticket: Ticket) {
        self.waits += 1;
        let stream = usize::from(number_of(ticket));
        self.passed[stream] = self.passed[stream].max(ticket.0 & ((1 << 48) - 1));
    }
}

/// A block in use, and the state of every granule: its last use, or live.
#[derive(Default)]
struct Shadow {
    live: BTreeMap<usize, usize>,
    last_use: BTreeMap<usize, Ticket>,
}

impl Shadow {
    fn check_new(&self, model: &mut Model, start: usize, bytes: usize, stream: u16) {
        assert!(start.is_multiple_of(GRANULE));
        let segment = model.segments.range(..=start).next_back().expect("it is in a segment");
        assert!(start + bytes <= segment.0 + segment.1, "it is inside its segment");
        if let Some((before, length)) = self.live.range(..start + bytes).next_back() {
            assert!(before + length <= start, "blocks do not overlap");
        }
        for ticket in self.last_use.range(start..start + bytes).map(|(_, ticket)| *ticket) {
            assert!(number_of(ticket) == stream || model.has_passed(ticket), "an earlier use may still run");
        }
    }

    fn free(&mut self, start: usize, ticket: Ticket) {
        let bytes = self.live.remove(&start).unwrap();
        for granule in (start..start + bytes).step_by(GRANULE) {
            self.last_use.insert(granule, ticket);
        }
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

fn check_statistics(pool: &Pool, model: &Model) {
    let statistics = pool.statistics();
    assert_eq!(statistics.live_bytes + statistics.cached_bytes, model.held());
    assert_eq!(statistics.segments, model.segments.len());
    let live: usize = pool.live.values().map(|slot| pool.blocks[*slot].bytes).sum();
    assert_eq!(statistics.live_bytes, live);
    let free: usize = pool.free.iter().flatten().map(|(bytes, ..)| bytes).sum();
    assert_eq!(statistics.cached_bytes, free);
}

#[test]
fn random_requests_of_three_streams() {
    for seed in 0..8 {
        let mut random = Random(seed);
        let (mut pool, mut model, mut shadow) =
            (Pool::default(), Model::new(24 * SEGMENT), Shadow::default());
        for _ in 0..500 {
            match random.below(10) {
                0..5 => {
                    let stream = 1 + random.below(3) as u16;
                    let bytes = match random.below(3) {
                        0 => random.below(4000),
                        1 => random.below(SMALL + 1000),
                        _ => random.below(3 * SEGMENT),
                    };
                    let Some(start) = pool.allocate(&mut model, bytes, stream).unwrap() else {
                        assert!(model.held() + SEGMENT > model.limit || bytes > SEGMENT, "there was memory");
                        continue;
                    };
                    let bytes = bytes.max(1).next_multiple_of(GRANULE);
                    shadow.check_new(&mut model, start, bytes, stream);
                    shadow.live.insert(start, bytes);
                }
                5..9 if !shadow.live.is_empty() => {
                    let start = *shadow.live.keys().nth(random.below(shadow.live.len())).unwrap();
                    let ticket = model.ticket(1 + random.below(3) as u16);
                    assert!(pool.release(start, ticket));
                    shadow.free(start, ticket);
                }
                _ => {
                    let stream = 1 + random.below(3);
                    model.passed[stream] = model.issued[stream];
                }
            }
            check_statistics(&pool, &model);
        }
        for start in shadow.live.keys().copied().collect::<Vec<_>>() {
            let ticket = model.ticket(1);
            assert!(pool.release(start, ticket));
        }
        pool.trim(&mut model);
        check_statistics(&pool, &model);
        assert!(model.segments.is_empty(), "all memory is returned");
        assert_eq!(pool.slots.len(), pool.blocks.len());
    }
}

#[test]
fn a_stream_reuses_its_own_block_at_once_and_others_later() {
    let (mut pool, mut model) = (Pool::default(), Model::new(64 * SEGMENT));
    let first = pool.allocate(&mut model, 2 * SEGMENT, 1).unwrap().unwrap();
    let ticket = model.ticket(1);
    pool.release(first, ticket);
    assert_eq!(pool.allocate(&mut model, 2 * SEGMENT, 1).unwrap(), Some(first));
    let ticket = model.ticket(1);
    pool.release(first, ticket);
    let second = pool.allocate(&mut model, 2 * SEGMENT, 2).unwrap().unwrap();
    assert_ne!(first, second, "stream 1 may still use the block");
    model.passed[1] = model.issued[1];
    assert_eq!(pool.allocate(&mut model, 2 * SEGMENT, 2).unwrap(), Some(first));
    assert_eq!((pool.statistics().segments, model.waits), (2, 0));
}

#[test]
fn blocks_split_and_join() {
    let (mut pool, mut model) = (Pool::default(), Model::new(64 * SEGMENT));
    let starts: Vec<usize> =
        (0..4).map(|_| pool.allocate(&mut model, 512 << 10, 1).unwrap().unwrap()).collect();
    assert_eq!(pool.statistics().segments, 1, "four halves of a MiB share a segment");
    for start in &starts {
        let ticket = model.ticket(1);
        pool.release(*start, ticket);
    }
    assert_eq!(pool.free[set_index(true, 1)].len(), 1, "all joined");
    assert_eq!(pool.allocate(&mut model, 1 << 20, 1).unwrap(), Some(starts[0]));
}

#[test]
fn exhaustion_trims_and_retries() {
    let (mut pool, mut model) = (Pool::default(), Model::new(8 * SEGMENT));
    let blocks: Vec<usize> =
        (0..4).map(|_| pool.allocate(&mut model, 2 * SEGMENT, 1).unwrap().unwrap()).collect();
    for start in &blocks[..3] {
        let ticket = model.ticket(1);
        pool.release(*start, ticket);
    }
    // Three segments of 4 MiB are cached; one of 10 MiB needs them returned, after their last use.
    assert!(pool.allocate(&mut model, 5 * SEGMENT, 2).unwrap().is_some());
    assert_eq!((pool.statistics().retries, model.waits), (1, 1));
    assert_eq!(pool.allocate(&mut model, 5 * SEGMENT, 2).unwrap(), None);
    check_statistics(&pool, &model);
    assert_eq!(pool.allocate(&mut model, usize::MAX, 2).unwrap(), None);
    assert_eq!(pool.allocate(&mut model, usize::MAX - 4096, 2).unwrap(), None);
}

#[test]
fn a_cap_limits_live_and_cached_bytes() {
    let (mut pool, mut model) = (Pool::default(), Model::new(64 * SEGMENT));
    pool.set_cap(Some(3 * SEGMENT));
    let first = pool.allocate(&mut model, 2 * SEGMENT, 1).unwrap().unwrap();
    assert_eq!(pool.allocate(&mut model, 2 * SEGMENT, 1).unwrap(), None);
    let ticket = model.ticket(1);
    pool.release(first, ticket);
    assert!(pool.allocate(&mut model, 3 * SEGMENT, 1).unwrap().is_some(), "cached memory was returned");
    assert_eq!(pool.statistics().peak_bytes, 3 * SEGMENT);
}
