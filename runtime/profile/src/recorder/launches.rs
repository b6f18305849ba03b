//! Kernels and copies of devices: when a stream began and finished each, by the device's clock.
//!
//! In: streams, before and after a kernel or a copy is submitted to them. Out: pairs of moments, and their times on the host's clock
//! when a session ends. The first kernel of a session on a device waits once for the stream, to set the device's clock by the
//! host's.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use opsmith_runtime::backend::{self, Mark, Queue, StreamId};
use opsmith_runtime::{Device, Result};

use super::clock::{Scale, ticks};

/// Most kernels of a thread whose moments are kept; those before are given back.
const MOST: usize = 1 << 16;

/// A moment of a device, given back when dropped.
struct Held {
    device: Device,
    mark: Mark,
}

impl Held {
    /// The moment of a stream, if its device has a clock.
    fn take(device: Device, stream: u64) -> Result<Option<Held>> {
        let queue = Queue { device: device.index, stream: StreamId(stream) };
        let mark = backend::of(device)?.mark(queue)?;
        Ok((mark != Mark::default()).then_some(Held { device, mark }))
    }

    fn nanoseconds_to(&self, later: &Held) -> Result<f64> {
        backend::of(self.device)?.nanoseconds_between(self.device.index, self.mark, later.mark)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Ok(runtime) = backend::of(self.device) {
            runtime.forget(self.device.index, self.mark);
        }
    }
}

/// The same moment on a device's clock and on the host's.
struct Origin {
    session: u64,
    held: Held,
    ticks: u64,
}

static ORIGINS: Mutex<Vec<Origin>> = Mutex::new(Vec::new());

fn origins() -> MutexGuard<'static, Vec<Origin>> {
    ORIGINS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets the device's clock by the host's, once a session.
fn set_clock(session: u64, device: Device, stream: u64) -> Result<()> {
    let mut origins = origins();
    origins.retain(|origin| origin.session == session);
    if origins.iter().any(|origin| origin.held.device == device) {
        return Ok(());
    }
    // The second of two, so that the stream has nothing else to do in between.
    for _ in 0..2 {
        let Some(held) = Held::take(device, stream)? else { return Ok(()) };
        held.nanoseconds_to(&held)?;
        origins.retain(|origin| origin.held.device != device);
        origins.push(Origin { session, held, ticks: ticks() });
    }
    Ok(())
}

/// A kernel on a device, or a copy to or from one.
struct Launch {
    /// The number of its record.
    record: u64,
    stream: u64,
    start: Held,
    end: Option<Held>,
}

/// The kernels on devices of a thread.
#[derive(Default)]
pub(crate) struct Launches {
    kept: VecDeque<Launch>,
    /// The record whose submission has begun; a copy that its kernel needs is a part of it.
    open: Option<u64>,
    /// Kernels that were given back for later ones, or whose moments could not be taken.
    pub lost: u64,
}

/// A kernel or copy of a device, by the host's clock.
pub(crate) struct Timed {
    /// The number of its record.
    pub record: u64,
    pub device: Device,
    pub stream: u64,
    pub start_ns: u64,
    pub duration_ns: u64,
}

impl Launches {
    /// A record's kernel or copy is submitted from now on.
    pub fn begin(&mut self, session: u64, record: u64, device: Device, stream: u64) {
        if self.open.is_some() {
            return;
        }
        self.open = Some(record);
        if self.kept.len() == MOST {
            self.kept.pop_front();
            self.lost += 1;
        }
        match set_clock(session, device, stream).and_then(|()| Held::take(device, stream)) {
            Ok(Some(start)) => self.kept.push_back(Launch { record, stream, start, end: None }),
            Ok(None) => {}
            // The kernel itself will report it.
            Err(_) => self.lost += 1,
        }
    }

    /// It was submitted.
    pub fn end(&mut self, record: u64, device: Device, stream: u64) {
        if self.open != Some(record) {
            return;
        }
        self.open = None;
        let last = self.kept.back_mut().filter(|launch| launch.record == record && launch.end.is_none());
        if let Some(launch) = last {
            launch.end = Held::take(device, stream).ok().flatten();
        }
    }

    /// The times of all kernels, after all are done, and the number of those whose times are not known.
    pub fn times(self, scale: Scale) -> (Vec<Timed>, u64) {
        let origins = origins();
        let mut lost = self.lost;
        let mut times = Vec::new();
        for launch in self.kept {
            let device = launch.start.device;
            let time = |origin: &Origin| -> Option<(f64, f64)> {
                let end = launch.end.as_ref()?;
                let start = origin.held.nanoseconds_to(&launch.start).ok()?;
                Some((start, launch.start.nanoseconds_to(end).ok()?))
            };
            let origin = origins.iter().find(|origin| origin.held.device == device);
            match origin.and_then(|origin| Some((origin, time(origin)?))) {
                Some((origin, (start, duration))) => times.push(Timed {
                    record: launch.record,
                    device,
                    stream: launch.stream,
                    start_ns: scale.nanoseconds(origin.ticks).saturating_add_signed(start as i64),
                    duration_ns: duration.max(0.0) as u64,
                }),
                None => lost += 1,
            }
        }
        (times, lost)
    }
}

/// Gives the moments back by which devices' clocks were set.
pub(crate) fn clear_clocks() {
    origins().clear();
}
