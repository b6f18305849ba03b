//! Times of the host's side of requests, printed; the stand-in's own time is in those that reach the driver.

use std::hint::black_box;
use std::time::Instant;

use opsmith_runtime::backend::{DeviceMemory, DeviceSource, Grid, KernelParameter, Work};

use crate::common::{DEVICE, Part, done, runtime};

/// The parts of this file.
pub const PARTS: &[Part] = &[("costs", costs)];

static EMPTY: DeviceSource = DeviceSource {
    name: "empty.cuh",
    headers: &[],
    text: "extern \"C\" __global__ void opsmith_kernel(int) {}",
};

#[test]
#[ignore = "prints times"]
fn costs_of_requests() {
    println!("{}", done("costs", &[]));
}

fn measure(name: &str, mut work: impl FnMut()) {
    const ROUNDS: u32 = 20_000;
    let best = (0..7).map(|_| {
        let start = Instant::now();
        (0..ROUNDS).for_each(|_| work());
        start.elapsed() / ROUNDS
    });
    println!("{name}: {:?}", best.min().unwrap_or_default());
}

fn costs() {
    let kept = DeviceMemory::new(DEVICE, 4096).unwrap();
    measure("allocate and release", || drop(black_box(DeviceMemory::new(DEVICE, 4096).unwrap())));
    measure("a stream of this thread", || _ = black_box(Work::on(DEVICE).unwrap()));
    let work = Work::on(DEVICE).unwrap();
    measure("a ticket", || _ = black_box(work.ticket().unwrap()));
    measure("follow and note a use", || {
        work.follow(kept.last_use()).unwrap();
        kept.note_use(&work).unwrap();
    });
    measure("look a function up", || _ = black_box(runtime().function(0, &EMPTY, "").unwrap()));
    let function = runtime().function(0, &EMPTY, "").unwrap();
    let grid = Grid { blocks: [1; 3], threads: [1; 3], shared: 0 };
    let value = 1i32;
    for _ in 0..5 {
        let start = Instant::now();
        for _ in 0..2000 {
            // SAFETY: the kernel has one parameter, an integer.
            unsafe {
                runtime().launch(work.queue(), function, grid, &[KernelParameter::of(&value)]).unwrap()
            };
        }
        println!("launch, the stand-in's time included: {:?}", start.elapsed() / 2000);
        work.wait().unwrap();
    }
}
