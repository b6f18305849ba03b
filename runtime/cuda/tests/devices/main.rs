//! The devices on stand-ins for the driver and the compiler, which run kernels on the host.
//!
//! The loader reads `LD_LIBRARY_PATH` when a process starts, so each test starts this program again, with one part to do.
//! The stand-in's memory is closed to the host, its streams run their work as late as they may, and new memory is poisoned:
//! a missing wait or order gives wrong results or ends the process.

mod capture;
mod common;
mod convolutions;
mod costs;
mod failures;
mod images;
mod kernels;
mod libraries;
mod memory;
mod movement;
mod pinned;
mod product_cases;
mod products;
mod streams;
mod transforms;

/// Does the part that a test asks for.
#[test]
fn worker() {
    let Ok(part) = std::env::var(common::PART) else { return };
    let all = [
        capture::PARTS,
        convolutions::PARTS,
        costs::PARTS,
        failures::PARTS,
        images::PARTS,
        kernels::PARTS,
        libraries::PARTS,
        memory::PARTS,
        movement::PARTS,
        pinned::PARTS,
        products::PARTS,
        streams::PARTS,
        transforms::PARTS,
    ]
    .concat();
    let (_, work) = all.iter().find(|(name, _)| *name == part).expect("the part exists");
    work();
    println!("DONE {part}");
}
