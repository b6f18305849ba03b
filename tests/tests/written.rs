//! Kernels write every element of their results: what was in the memory before never shows.

use opsmith::{DType, Result, Tensor, Value};
use opsmith_tests::calls::{bits, call, resized, tensors, with_tensors};
use opsmith_tests::samples::{repeatable, samples};

/// Sizes in place of those of the samples, by a function of them.
const SIZES: [fn(i64) -> i64; 4] = [|size| size, |size| size + 4, |_| 1, |_| 0];

/// What is left in memory that calls get next.
const LEFT: [u8; 2] = [0x00, 0x01];

/// Leaves bytes in the blocks of memory from which results like these are made.
fn leave(byte: u8, results: &[Tensor]) -> Result<()> {
    let like = |tensor: &Tensor| opsmith::empty_like(tensor);
    // Temporary results take blocks, too.
    let blocks: Vec<Tensor> = (0..4).flat_map(|_| results.iter().map(like)).collect::<Result<_>>()?;
    for block in &blocks {
        let storage = block.storage();
        // SAFETY: the tensor's own memory, which nobody else has; each byte is one that every dtype may have.
        unsafe { std::ptr::write_bytes(storage.data(), byte, storage.bytes()) };
    }
    Ok(())
}

#[test]
fn every_element_of_a_result_is_written() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for op in opsmith::LIBRARY.all_ops() {
        // Memory as it is found is what some promise.
        if op.host.is_some() || op.name.contains("empty") {
            continue;
        }
        for dtype in [DType::F64, DType::I64, DType::Bool] {
            for (number, args) in samples(op, dtype).into_iter().enumerate() {
                for sizes in SIZES {
                    let inputs: Result<Vec<Tensor>> =
                        tensors(&args).iter().map(|tensor| resized(tensor, sizes)).collect();
                    let Ok(inputs) = inputs else { continue };
                    let args: Vec<Value> = with_tensors(&args, &inputs);
                    let Ok(first) = repeatable(op, || call(op, &args)) else { continue };
                    for byte in LEFT {
                        leave(byte, &first).unwrap();
                        let again = repeatable(op, || call(op, &args)).unwrap();
                        count += 1;
                        let differs = |(first, again): (&Tensor, &Tensor)| bits(first) != bits(again);
                        if first.iter().zip(&again).any(differs) {
                            let shapes: Vec<&[i64]> = inputs.iter().map(Tensor::shape).collect();
                            wrong.push(format!("{} sample {number}, {dtype}, {shapes:?}", op.name));
                        }
                    }
                }
            }
        }
    }
    println!("{count} calls");
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 5000, "{count} calls were made");
}
