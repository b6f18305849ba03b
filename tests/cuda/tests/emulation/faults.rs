//! Planted mistakes: each loses the context with the code of a device, and is named with its kernel.
//!
//! In: the loaded kernels. Out: assertions. Must not know the stand-ins' insides.

use crate::cuda::{Grid, grid};
use crate::{Loaded, SM_90, passes, run};

pub const SCENARIOS: &[(&str, fn())] = &[
    ("missing barrier", missing_barrier),
    ("store past", || fails(700, "store", grid(1, 1), &[&block(), &Element(64)])),
    ("store before", || fails(700, "store", grid(1, 1), &[&block(), &Element(-1)])),
    ("store far", || fails(700, "store", grid(1, 1), &[&block(), &Element(1 << 20)])),
    ("load past", || fails(700, "load", grid(1, 1), &[&block(), &block(), &Element(64)])),
    ("null", || fails(700, "store_absolute", grid(1, 1), &[&8u64])),
    ("host", host),
    ("freed", freed),
    ("skipped barrier", || fails(719, "skipped_barrier", grid(1, 32), &[&block()])),
    ("different barriers", || fails(719, "different_barriers", grid(1, 64), &[&block()])),
    ("absent lane", || fails(719, "absent_lane", grid(1, 32), &[&block()])),
    ("foreign mask", || fails(719, "foreign_mask", grid(1, 32), &[&block()])),
    ("shared", || fails(700, "overrun_shared", grid(1, 4), &[&block(), &6i32])),
    ("shared inside", || fails(0, "overrun_shared", grid(1, 4), &[&block(), &4i32])),
    ("dynamic", || {
        fails(700, "overrun_dynamic", Grid { shared: 100, ..grid(1, 1) }, &[&block(), &25i32]);
    }),
    ("stack", || fails(700, "full_stack", grid(1, 1), &[&block(), &100_000i32])),
    ("trap", || fails(719, "traps", grid(1, 32), &[])),
    ("division", || fails(700, "divides", grid(1, 1), &[&block(), &0i32])),
    ("images", images),
    ("texts", texts),
    ("limits", limits),
];

use std::cell::OnceCell;

thread_local! {
    static LOADED: OnceCell<Loaded> = const { OnceCell::new() };
}

/// The loaded kernels of this process, which may end with a lost context.
fn with_loaded<T>(function: impl FnOnce(&Loaded) -> T) -> T {
    LOADED.with(|loaded| function(loaded.get_or_init(Loaded::new)))
}

/// A block of 64 floats.
fn block() -> crate::cuda::Address {
    with_loaded(|loaded| loaded.cuda.send(&[1f32; 64]))
}

/// The number of an element.
struct Element(#[expect(dead_code, reason = "a kernel reads it")] i64);
impl crate::cuda::Argument for Element {}

/// A launch whose stream fails with a code, as does every later call.
fn fails(code: i32, kernel: &str, grid: Grid, arguments: &[&dyn crate::cuda::Argument]) {
    with_loaded(|loaded| {
        loaded.launch(kernel, grid, arguments);
        assert_eq!(loaded.cuda.wait(loaded.stream), code);
        assert_eq!(loaded.cuda.wait(loaded.stream), code, "a lost context stays lost");
    });
}

#[track_caller]
fn reports(scenario: &str, settings: &[(&str, &str)], parts: &[&str]) {
    let text = passes(scenario, settings);
    for part in parts {
        assert!(text.contains(part), "{scenario}: `{part}` is not in\n{text}");
    }
}

const CHECKED: &[(&str, &str)] = &[("STANDIN_CHECK", "1")];

/// In order of the threads, the neighbour has always written.
#[test]
fn a_missing_barrier_is_seen_in_another_order() {
    reports("missing barrier", &[], &["WRONG 0"]);
    for order in ["reversed", "random:1", "random:2"] {
        let text = passes("missing barrier", &[("STANDIN_ORDER", order)]);
        assert!(!text.contains("WRONG 0\n") && text.contains("WRONG "), "{order}: {text}");
    }
}

fn missing_barrier() {
    let loaded = Loaded::new();
    let x: Vec<f32> = (0..256).map(|i| i as f32).collect();
    let out = loaded.cuda.send(&[0f32; 256]);
    loaded.launch("missing_barrier", grid(1, 256), &[&loaded.cuda.send(&x), &out]);
    let out = loaded.cuda.fetch::<f32>(out, 256, loaded.stream);
    let wrong = (1..256).filter(|i| out[*i] != x[i - 1]).count();
    println!("WRONG {wrong}");
}

#[test]
fn an_access_outside_of_all_blocks_is_reported() {
    reports("store past", &[], &["STANDIN store: thread (0, 0, 0) of block (0, 0, 0) accessed"]);
    reports("store before", &[], &["STANDIN store: wrote before a block of 256 bytes"]);
    reports("store far", &[], &["STANDIN store: ", "outside of all blocks of the device"]);
    reports("load past", &[], &["STANDIN load: ", "outside of all blocks of the device"]);
    reports("null", &[], &["STANDIN store_absolute: ", " accessed 0x8"]);
    reports("freed", &[], &["STANDIN store: ", "outside of all blocks of the device", "refused=1"]);
    for scenario in ["store past", "store before", "load past"] {
        reports(scenario, CHECKED, &["accessed 4 bytes at"]);
    }
}

#[test]
fn memory_of_the_host_is_none_of_a_kernel() {
    reports("host", CHECKED, &["STANDIN store_absolute: ", "accessed 4 bytes at", "to write"]);
}

fn host() {
    let number = Box::new(5i32);
    fails(700, "store_absolute", grid(1, 1), &[&(&raw const *number as u64)]);
    assert_eq!(*number, 5);
}

/// The stream still uses the memory.
fn freed() {
    let block = block();
    with_loaded(|loaded| {
        loaded.launch("store", grid(1, 1), &[&block, &Element(0)]);
        assert_eq!(loaded.cuda.free(block), 0);
        assert_eq!(loaded.cuda.wait(loaded.stream), 700);
    });
}

#[test]
fn a_barrier_that_is_not_for_all_is_reported() {
    let parts = [
        "STANDIN skipped_barrier: ",
        "wait forever: from thread 0 at __syncthreads (kernels.cu:",
        "8 of 32 have left",
    ];
    reports("skipped barrier", &[], &parts);
    for order in ["forward", "reversed", "random:5"] {
        let settings = [("STANDIN_ORDER", order)];
        let parts =
            ["STANDIN different_barriers: ", "while others of the block wait at __syncthreads (kernels.cu:"];
        reports("different barriers", &settings, &parts);
    }
}

#[test]
fn a_collective_without_its_lanes_is_reported() {
    let parts = ["STANDIN absent_lane: ", "at a shuffle (kernels.cu:", "from thread 3 at __syncthreads"];
    reports("absent lane", &[], &parts);
    reports("foreign mask", &[], &["STANDIN foreign_mask: ", "is not in its own mask at a shuffle"]);
}

#[test]
fn an_overrun_of_shared_memory_is_reported() {
    reports("shared", CHECKED, &["STANDIN overrun_shared: ", "past the variable `first` of 32 bytes"]);
    passes("shared inside", CHECKED);
    reports(
        "dynamic",
        &[],
        &["STANDIN overrun_dynamic: ", "wrote past its dynamic shared memory of 100 bytes"],
    );
    reports("dynamic", CHECKED, &["STANDIN overrun_dynamic: ", "accessed 4 bytes"]);
    // Without checks, the neighbour's memory is written.
    assert!(!run("shared", &[]).done);
}

#[test]
fn other_faults_lose_the_context_alone() {
    reports("stack", &[], &["STANDIN full_stack: ", "accessed"]);
    reports(
        "trap",
        &[],
        &["STANDIN traps: thread (2, 0, 0) of block (0, 0, 0): __trap was called (kernels.cu:"],
    );
    reports("division", &[], &["STANDIN divides: ", "divided an integer by zero"]);
}

#[test]
fn images_and_texts_are_checked() {
    passes("images", &[]);
    passes("texts", &[]);
    passes("limits", &[]);
}

fn images() {
    with_loaded(|loaded| {
        let cuda = &loaded.cuda;
        let image = cuda.compile(crate::TEXT, SM_90).unwrap();
        assert_eq!(cuda.load(&[7u8; 4096]), Err(200));
        assert_eq!(
            cuda.load(
                b".version 9.0\n.target sm_90\n.address_size 64\nand some more text here, and a zero\0"
            ),
            Err(218)
        );
        let mut short = image.clone();
        short.truncate(image.len() / 2);
        short.extend(vec![0; image.len()]);
        assert_eq!(cuda.load(&short), Err(200));
        let mut changed = image.clone();
        changed[image.len() / 2] ^= 1;
        assert_eq!(cuda.load(&changed), Err(200));
        // The number of NVIDIA's devices among machines.
        let mut real = image.clone();
        real[18..20].copy_from_slice(&190u16.to_le_bytes());
        assert_eq!(cuda.load(&real), Err(209));
        let other = cuda.compile(crate::TEXT, &["-arch=sm_80"]).unwrap();
        assert_eq!(cuda.load(&other), Err(209));
        assert_eq!(cuda.function(loaded.module, "nothing"), Err(500));
        // Two of one text are two modules.
        let second = cuda.load(&image).unwrap();
        let (first, _) = cuda.global(loaded.module, "counters").unwrap();
        assert_ne!(first, cuda.global(second, "counters").unwrap().0);
        assert_eq!(crate::cuda::call!(cuda.driver(), "cuModuleUnload", second => crate::cuda::Handle), 0);
    });
}

fn texts() {
    with_loaded(|loaded| {
        let cuda = &loaded.cuda;
        let (code, log) =
            cuda.compile("\n\nextern \"C\" __global__ void f() { nothing; }", SM_90).unwrap_err();
        assert_eq!(code, 6);
        assert!(log.contains("kernels.cu:3:") && log.contains("nothing"), "{log}");
        let (code, log) = cuda.compile("#include <cstdint>\n", SM_90).unwrap_err();
        assert!(code == 6 && log.contains("cstdint"), "{code} {log}");
        assert_eq!(cuda.compile("", &["--nonsense"]).unwrap_err().0, 5);
        assert_eq!(cuda.compile("", &["-arch=sm_12"]).unwrap_err().0, 5);
        assert!(cuda.compile("", SM_90).is_ok());
    });
}

fn limits() {
    let x = block();
    with_loaded(|loaded| {
        let function = loaded.cuda.function(loaded.module, "add_one").unwrap();
        let code = |grid: Grid| loaded.cuda.launch(function, grid, loaded.stream, &[&x, &64u64]);
        assert_eq!(code(grid(1, 1024)), 0);
        assert_eq!(code(grid(1, 1025)), 1);
        assert_eq!(code(Grid { threads: [32, 33, 1], ..grid(1, 1) }), 1);
        assert_eq!(code(Grid { threads: [1, 1, 65], ..grid(1, 1) }), 1);
        assert_eq!(code(Grid { blocks: [1, 65536, 1], ..grid(1, 1) }), 1);
        assert_eq!(code(grid(0, 1)), 1);
        assert_eq!(code(Grid { shared: 49153, ..grid(1, 1) }), 1);
        // Its bounds are 256 threads.
        let rows = loaded.cuda.function(loaded.module, "row_sums").unwrap();
        let bounded = |threads| loaded.cuda.launch(rows, grid(1, threads), loaded.stream, &[&x, &x, &64i32]);
        assert_eq!((bounded(257), bounded(256)), (1, 0));
        let mut sizes = [(0usize, 0usize); 2];
        for (index, (offset, bytes)) in sizes.iter_mut().enumerate() {
            let code = crate::cuda::call!(loaded.cuda.driver(), "cuFuncGetParamInfo",
                function => crate::cuda::Handle, index => usize, &raw mut *offset => *mut usize, &raw mut *bytes => *mut usize);
            assert_eq!(code, 0);
        }
        assert_eq!(sizes, [(0, 8), (8, 8)]);
    });
}
