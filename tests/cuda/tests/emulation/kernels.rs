//! Good kernels: each gives its results in every order of threads, with checks and without.
//!
//! In: the loaded kernels. Out: assertions. Must not know the stand-ins' insides.

use crate::cuda::{Grid, grid};
use crate::{Loaded, passes};

pub const SCENARIOS: &[(&str, fn())] = &[
    ("rows", rows),
    ("softmax", softmax),
    ("atomics", atomics),
    ("dynamic shared", dynamic_shared),
    ("votes", votes),
    ("shuffles", shuffles),
    ("numbers", numbers),
    ("globals", globals),
];

#[test]
fn every_kernel_gives_its_results_in_every_order() {
    let orders = ["forward", "reversed", "random:1", "random:2", "random:3"];
    for (scenario, _) in SCENARIOS {
        for order in orders {
            passes(scenario, &[("STANDIN_ORDER", order)]);
        }
        passes(scenario, &[("STANDIN_CHECK", "1"), ("STANDIN_ORDER", "random:4")]);
    }
}

fn matrix(rows: usize, columns: usize) -> Vec<f32> {
    (0..rows * columns).map(|i| ((i * 37) % 101) as f32 / 8.0 - 5.0).collect()
}

fn rows() {
    let (loaded, columns) = (Loaded::new(), 700);
    let x = matrix(9, columns);
    let out = loaded.cuda.allocate(9 * 4);
    loaded.launch("row_sums", grid(9, 256), &[&loaded.cuda.send(&x), &out, &(columns as i32)]);
    // Eighths, so every order of additions is exact.
    let expected: Vec<f32> = x.chunks(columns).map(|row| row.iter().sum()).collect();
    assert_eq!(loaded.cuda.fetch::<f32>(out, 9, loaded.stream), expected);
    let wide: Vec<f64> = x.iter().map(|value| f64::from(*value)).collect();
    let out = loaded.cuda.allocate(9 * 8);
    loaded.launch("row_sums_double", grid(9, 64), &[&loaded.cuda.send(&wide), &out, &(columns as i32)]);
    let expected: Vec<f64> = wide.chunks(columns).map(|row| row.iter().sum()).collect();
    assert_eq!(loaded.cuda.fetch::<f64>(out, 9, loaded.stream), expected);
}

fn softmax() {
    let (loaded, columns) = (Loaded::new(), 300);
    let x = matrix(5, columns);
    let out = loaded.cuda.allocate(5 * columns * 4);
    loaded.launch("softmax", grid(5, 128), &[&loaded.cuda.send(&x), &out, &(columns as i32)]);
    let out = loaded.cuda.fetch::<f32>(out, 5 * columns, loaded.stream);
    for (row, result) in x.chunks(columns).zip(out.chunks(columns)) {
        let largest = row.iter().copied().fold(f32::MIN, f32::max);
        let sum: f64 = row.iter().map(|x| f64::from(x - largest).exp()).sum();
        for (x, result) in row.iter().zip(result) {
            let expected = f64::from(x - largest).exp() / sum;
            assert!((f64::from(*result) - expected).abs() <= 3e-7 * expected, "{result} {expected}");
        }
    }
}

fn atomics() {
    let loaded = Loaded::new();
    let out = loaded.cuda.send(&[0f64; 2]);
    let integers = loaded.cuda.send(&[0i32, i32::MIN, i32::MAX, 0, 0]);
    let tickets = loaded.cuda.send(&[0u32]);
    loaded.launch("atomics", grid(5, 100), &[&out, &integers, &tickets]);
    assert_eq!(loaded.cuda.fetch::<f64>(out, 2, loaded.stream), [250.0, 500.0]);
    let expected = [499 * 500 / 2, 499, -499, 0x7fff_ffff, 7];
    assert_eq!(loaded.cuda.fetch::<i32>(integers, 5, loaded.stream), expected);
    assert_eq!(loaded.cuda.fetch::<u32>(tickets, 1, loaded.stream), [0]);
}

/// The launch asks for shared memory: a little, then more than a block has without asking.
fn dynamic_shared() {
    let loaded = Loaded::new();
    let values: Vec<f32> = (0..96).map(|i| i as f32).collect();
    let x = loaded.cuda.send(&values);
    loaded.launch("reverse", Grid { shared: 96 * 4, ..grid(1, 96) }, &[&x]);
    let reversed: Vec<f32> = values.iter().rev().copied().collect();
    assert_eq!(loaded.cuda.fetch::<f32>(x, 96, loaded.stream), reversed);
    let function = loaded.cuda.function(loaded.module, "reverse").unwrap();
    let much = Grid { shared: 100_000, ..grid(1, 96) };
    assert_eq!(loaded.cuda.launch(function, much, loaded.stream, &[&x]), 1);
    let code = crate::cuda::call!(loaded.cuda.driver(), "cuFuncSetAttribute",
        function => crate::cuda::Handle, 8 => i32, 100_000 => i32);
    assert_eq!(code, 0);
    assert_eq!(loaded.cuda.launch(function, much, loaded.stream, &[&x]), 0);
    assert_eq!(loaded.cuda.fetch::<f32>(x, 96, loaded.stream), values);
}

fn votes() {
    let loaded = Loaded::new();
    let out = loaded.cuda.allocate(18 * 4);
    loaded.launch("votes", grid(1, 48), &[&out]);
    let out = loaded.cuda.fetch::<u32>(out, 18, loaded.stream);
    // Lanes 9, 12, …, 30 of the first warp vote; the second has 16 lanes.
    let third = |lanes: u32| (6..lanes).filter(|lane| lane % 3 == 0).fold(0, |all, lane| all | 1 << lane);
    assert_eq!(out[..9], [0x5555_5555, 1, 0, 0xf0, 31 * 16, 10, 1, 0, third(32)]);
    assert_eq!(out[9..], [0x5555, 1, 1, 0xf0, 15 * 8, 10, 1, 0, third(16)]);
}

fn shuffles() {
    let loaded = Loaded::new();
    let out = loaded.cuda.allocate(6 * 32 * 4);
    loaded.launch("shuffles", grid(1, 32), &[&out]);
    let out = loaded.cuda.fetch::<i32>(out, 6 * 32, loaded.stream);
    for lane in 0..32usize {
        let at = |part: usize| out[part * 32 + lane] as usize;
        assert_eq!(at(0), 5);
        assert_eq!(at(1), lane / 8 * 8 + 1);
        assert_eq!(at(2), if lane % 16 < 2 { lane } else { lane - 2 });
        assert_eq!(at(3), if lane + 3 < 32 { lane + 3 } else { lane });
        assert_eq!(at(4), lane ^ 1);
        assert_eq!(at(5), ((lane ^ 2) as f64 * 1.5) as usize);
    }
}

/// Values of mathematical tables for the functions that C lacks, and bits.
fn numbers() {
    let loaded = Loaded::new();
    let out = loaded.cuda.allocate(20 * 8);
    loaded.launch("numbers", grid(1, 1), &[&out]);
    let out = loaded.cuda.fetch::<f64>(out, 20, loaded.stream);
    let expected = [
        0.476_936_276_204_469_9,
        4.572_824_967_389_486,
        7.619_853_024_160_525e-24,
        1.959_963_984_540_054_2,
        0.056_140_992_743_822_59,
        0.005_641_613_782_989_433,
        1.266_065_877_752_008_4,
        1.590_636_854_637_329,
        2.932_553_783_849_336e20,
        std::f64::consts::FRAC_1_SQRT_2,
        0.0,
        1.0,
        0.5,
        1000.0,
        -2.326_753_765_513_524_6,
    ];
    for (i, (value, expected)) in out.iter().zip(expected).enumerate() {
        assert!((value - expected).abs() <= 1e-14 * expected.abs(), "{i}: {value} {expected}");
    }
    assert_eq!(out[15], 8.0 + 100.0 * 31.0 + 10000.0 * 4.0);
    assert_eq!(out[16], 2_147_483_648.0 + 2.0);
    assert_eq!(out[17], 2_147_483_647.0 + 2.0);
    assert_eq!(out[18], f64::from(0x7755_3311u32));
    assert_eq!(out[19], f64::from(5.0 - 0.476_936_28f32));
}

/// A variable of the module that the host sets to pinned memory.
fn globals() {
    let loaded = Loaded::new();
    let (status, bytes) = loaded.cuda.global(loaded.module, "status").unwrap();
    assert_eq!(bytes, 8);
    assert_eq!(loaded.cuda.global(loaded.module, "counters").unwrap().1, 16);
    assert_eq!(loaded.cuda.global(loaded.module, "nothing"), Err(500));
    let word = loaded.cuda.pinned(4).cast::<u32>();
    // SAFETY: the memory has room for one.
    unsafe { word.write(0) };
    let sent = loaded.cuda.send_bytes(status, (&raw const word).cast(), 8, loaded.stream);
    assert_eq!(sent, 0);
    loaded.launch("set_status", grid(1, 32), &[&4u32]);
    // SAFETY: the stream has not run yet, and only this thread makes it run.
    assert_eq!(unsafe { word.read_volatile() }, 0);
    assert_eq!(loaded.cuda.wait(loaded.stream), 0);
    // SAFETY: as above; it is done now.
    assert_eq!(unsafe { word.read_volatile() }, 4);
}
