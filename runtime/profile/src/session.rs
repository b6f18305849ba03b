//! Sessions: from the start of recording to a profile.

use std::marker::PhantomData;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use opsmith_runtime::Device;

use crate::collect::collect;
use crate::error::ProfileError;
use crate::limits::Limits;
use crate::model::Profile;
use crate::recorder::clock::{Moment, Scale};
use crate::recorder::{self, Wanted};

/// The settings of a profiler.
///
/// ```
/// use opsmith_profile::ProfileOptions;
///
/// // Names and times alone, of the last 10,000 events of each thread.
/// let options = ProfileOptions::new().shapes(false).memory(false).records(10_000);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ProfileOptions {
    name: String,
    wanted: Wanted,
    records: usize,
    limits: bool,
    schedule: Schedule,
}

/// Which steps of a program are recorded, see [`ProfileOptions::schedule`].
#[derive(Clone, Copy, Debug, Default)]
struct Schedule {
    skipped: u64,
    warm_up: u64,
    active: Option<u64>,
}

impl Default for ProfileOptions {
    fn default() -> ProfileOptions {
        ProfileOptions::new()
    }
}

impl ProfileOptions {
    /// Operands, memory, places and devices, of the last 262,144 events of each thread.
    pub fn new() -> ProfileOptions {
        ProfileOptions {
            name: "profile".to_owned(),
            wanted: Wanted { shapes: true, memory: true, sites: true, devices: true },
            records: 1 << 18,
            limits: false,
            schedule: Schedule::default(),
        }
    }

    /// The profile's name, `profile` by default.
    pub fn name(self, name: impl Into<String>) -> ProfileOptions {
        ProfileOptions { name: name.into(), ..self }
    }

    /// Whether shapes, strides, dtypes and attributes are recorded, which GB/s, grouping by shapes and reproducers need.
    pub fn shapes(self, shapes: bool) -> ProfileOptions {
        ProfileOptions { wanted: Wanted { shapes, ..self.wanted }, ..self }
    }

    /// Whether each change of memory is recorded, for a timeline. Totals of events are recorded without, too.
    pub fn memory(self, memory: bool) -> ProfileOptions {
        ProfileOptions { wanted: Wanted { memory, ..self.wanted }, ..self }
    }

    /// Whether the line of the user's code that made each call is recorded, which grouping by call site needs.
    pub fn sites(self, sites: bool) -> ProfileOptions {
        ProfileOptions { wanted: Wanted { sites, ..self.wanted }, ..self }
    }

    /// Whether the times of kernels and copies on devices are recorded, by the devices' own clocks. The first kernel of a session
    /// on a device then waits for its stream.
    pub fn devices(self, devices: bool) -> ProfileOptions {
        ProfileOptions { wanted: Wanted { devices, ..self.wanted }, ..self }
    }

    /// Most events of a thread; later ones overwrite earlier ones. An event takes at most 100 bytes.
    pub fn records(self, records: usize) -> ProfileOptions {
        ProfileOptions { records: records.max(1), ..self }
    }

    /// Whether the profile has the limits of this machine and of the devices that it used, as [`Limits::of_this_machine`] and
    /// [`Limits::with_device`] give them: its tables then have the share of each row's time that its kernels need at least.
    pub fn limits(self, limits: bool) -> ProfileOptions {
        ProfileOptions { limits, ..self }
    }

    /// Records `active` steps after `skipped` and `warm_up` ones, which [`Profiler::step`] separates. During a warm-up
    /// events are recorded and dropped, so that the first recorded step costs as much as the others.
    pub fn schedule(self, skipped: u64, warm_up: u64, active: u64) -> ProfileOptions {
        ProfileOptions { schedule: Schedule { skipped, warm_up, active: Some(active) }, ..self }
    }
}

/// Whether a session runs in this process.
static RUNNING: AtomicBool = AtomicBool::new(false);
/// Serialises starts and ends.
static GATE: Mutex<()> = Mutex::new(());

/// A session. It records all threads of the process until it is stopped; dropped, it discards its records.
#[must_use = "a profiler records as long as it lives"]
pub struct Profiler {
    options: ProfileOptions,
    first: Moment,
    started_ms: u64,
    /// The end of the last recorded step of a schedule.
    last: Option<u64>,
    steps: u64,
    /// Whether a range is open for the current step.
    in_step: bool,
    stopped: bool,
    /// The range of a step belongs to the thread that began it.
    _thread: PhantomData<*const ()>,
}

impl Profiler {
    /// Starts recording.
    ///
    /// # Errors
    /// If a profiler runs in this process already.
    pub fn start(options: ProfileOptions) -> Result<Profiler, ProfileError> {
        let _gate = GATE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let running = || {
            ProfileError::new(
                "a profiler runs in this process already",
                "stop it first: calls of all threads go into one profile",
            )
        };
        if RUNNING.load(Ordering::SeqCst) {
            return Err(running());
        }
        recorder::begin(options.records, options.wanted).map_err(|()| {
            ProfileError::new(
                "another listener has the spans of this process",
                "record in a process that does not report to `tracing`",
            )
        })?;
        RUNNING.store(true, Ordering::SeqCst);
        let started_ms = unix_ms();
        let first = Moment::now();
        let mut profiler = Profiler {
            options,
            first,
            started_ms,
            last: None,
            steps: 0,
            in_step: false,
            stopped: false,
            _thread: PhantomData,
        };
        profiler.enter_step();
        Ok(profiler)
    }

    /// Ends a step of the schedule and begins the next, as a range `step 1`, `step 2`, …
    ///
    /// # Errors
    /// If another listener replaced this one.
    pub fn step(&mut self) -> Result<(), ProfileError> {
        if self.in_step {
            recorder::end_range();
            self.in_step = false;
        }
        self.steps += 1;
        let Schedule { skipped, warm_up, active } = self.options.schedule;
        if active.is_some() && self.steps == skipped + warm_up {
            // The records of the warm-up; the profile begins here.
            drop(recorder::finish());
            recorder::begin(self.options.records, self.options.wanted)
                .map_err(|()| ProfileError::new("another profiler listens", "stop it first"))?;
            (self.first, self.started_ms) = (Moment::now(), unix_ms());
        }
        self.enter_step();
        Ok(())
    }

    fn enter_step(&mut self) {
        let Schedule { skipped, warm_up, active } = self.options.schedule;
        let Some(active) = active else { return recorder::set_recording(true) };
        let recording = self.steps >= skipped && self.steps < skipped + warm_up + active;
        if self.steps == skipped + warm_up + active {
            self.last = Some(recorder::clock::ticks());
        }
        recorder::set_recording(recording);
        if recording {
            recorder::begin_range(&format!("step {}", self.steps + 1));
            self.in_step = true;
        }
    }

    /// Stops recording. Waits at most a second for calls that run in other threads; the profile's notes name those whose
    /// events are missing.
    pub fn stop(mut self) -> Profile {
        self.finish()
    }

    fn finish(&mut self) -> Profile {
        let _gate = GATE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.stopped = true;
        if self.in_step {
            recorder::end_range();
        }
        let last = self.last.unwrap_or_else(recorder::clock::ticks);
        let (rings, missing) = recorder::finish();
        let scale = Scale::since(self.first);
        RUNNING.store(false, Ordering::SeqCst);
        let mut profile = Profile::empty(&self.options.name);
        profile.started_ms = self.started_ms;
        profile.duration_ns = scale.nanoseconds(last);
        profile.has_shapes = self.options.wanted.shapes;
        profile.has_memory = self.options.wanted.memory;
        profile.notes = missing;
        let devices = collect(&mut profile, rings, scale);
        if self.options.limits {
            measure_limits(&mut profile, &devices);
        }
        let overwritten: u64 = profile.threads.iter().map(|thread| thread.overwritten).sum();
        if overwritten > 0 {
            profile.notes.push(format!(
                "{overwritten} events were overwritten by later ones: record more with `ProfileOptions::records`"
            ));
        }
        profile
    }
}

fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}

/// Gives a profile the limits of this machine and of devices; those that cannot be measured are missing, and a note says so.
fn measure_limits(profile: &mut Profile, devices: &[Device]) {
    let mut limits = Limits::of_this_machine();
    for &device in devices {
        match limits.clone().with_device(device) {
            Ok(with_device) => limits = with_device,
            Err(error) => profile.notes.push(format!("the limits of {device} were not measured: {error}")),
        }
    }
    profile.limits = Some(limits);
}

impl Drop for Profiler {
    fn drop(&mut self) {
        if !self.stopped {
            self.finish();
        }
    }
}

/// Runs a function and gives its result and its profile.
///
/// # Errors
/// If a profiler runs in this process already.
pub fn profile<R>(function: impl FnOnce() -> R) -> Result<(R, Profile), ProfileError> {
    profile_with(ProfileOptions::new(), function)
}

/// As [`profile`], with options.
///
/// # Errors
/// As [`profile`].
pub fn profile_with<R>(
    options: ProfileOptions,
    function: impl FnOnce() -> R,
) -> Result<(R, Profile), ProfileError> {
    let profiler = Profiler::start(options)?;
    let result = function();
    Ok((result, profiler.stop()))
}

/// A part of this thread's time under a name, as long as the value lives. Values end in the opposite order of their
/// beginnings.
#[must_use = "a range ends where its value is dropped"]
pub struct Range {
    open: bool,
    /// A range belongs to the thread that began it.
    _thread: PhantomData<*const ()>,
}

/// Begins a range; costs the read of a flag while no profiler records.
///
/// ```
/// # use opsmith_profile::{profile, range};
/// let ((), profile) = profile(|| {
///     let _epoch = range("epoch");
/// })?;
/// assert_eq!(profile.name_of(&profile.events[0]), "epoch");
/// # Ok::<(), opsmith_profile::ProfileError>(())
/// ```
pub fn range(name: &str) -> Range {
    let open = recorder::is_recording();
    if open {
        recorder::begin_range(name);
    }
    Range { open, _thread: PhantomData }
}

impl Drop for Range {
    fn drop(&mut self) {
        if self.open {
            recorder::end_range();
        }
    }
}
