//! Memory of a device: its location, movement, synchronisation, and forbidden accesses by the host.

use std::process::Command;
use std::sync::Once;

use opsmith::autograd::{Options, grad, jvp};
use opsmith::{DType, Device, ErrorKind, Generator, LIBRARY, Result, Tensor, TensorOps};
use opsmith_examples::classifier::{Network, Sgd};
use opsmith_examples::digits;
use opsmith_graph::{Graph, InputSpec, Passes, cond, while_loop};
use opsmith_protected::{device, install, live_bytes};
use opsmith_testing::calls::bits;

/// The first device, with kernels.
fn gpu() -> Device {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| install(LIBRARY.ops));
    device(0)
}

fn numbers(shape: &[i64]) -> Tensor {
    let count = shape.iter().product::<i64>();
    let values: Vec<f32> = (0..count).map(|at| ((at * 37 + 11) % 23) as f32 / 11.0 - 1.0).collect();
    Tensor::from_slice(&values, shape).unwrap()
}

#[track_caller]
fn assert_same(found: &Tensor, expected: &Tensor) {
    assert_eq!((found.dtype(), found.shape()), (expected.dtype(), expected.shape()));
    assert_eq!(bits(found), bits(expected), "{found} in place of {expected}");
}

#[test]
fn an_access_by_the_host_ends_the_process() {
    const READS: &str = "OPSMITH_TEST_READS_DEVICE_MEMORY";
    let tensor = numbers(&[4]).to_device(gpu()).unwrap();
    if std::env::var_os(READS).is_some() {
        tensor.item().unwrap_err();
        // SAFETY: none: the test is about this access, and the process does not survive it.
        println!("read {}", unsafe { tensor.data_ptr().cast::<f32>().read_volatile() });
        return;
    }
    let test = "an_access_by_the_host_ends_the_process";
    let output = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(READS, "1")
        .output()
        .unwrap();
    use std::os::unix::process::ExitStatusExt as _;
    assert_eq!(output.status.signal(), Some(11), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn elements_move_there_and_back() {
    for dtype in [DType::Bool, DType::I64, DType::BF16, DType::F32, DType::C128] {
        for shape in [&[][..], &[0], &[5], &[3, 4], &[2, 1, 3]] {
            let host = numbers(shape).to_dtype(dtype).unwrap();
            let there = host.to_device(gpu()).unwrap();
            assert_eq!(there.device(), gpu());
            assert_same(&there.to_device(Device::CPU).unwrap(), &host);
            assert_same(&there, &host);
            let other = there.to_device(device(1)).unwrap();
            assert_eq!(other.device(), device(1));
            assert_same(&other, &host);
        }
    }
}

#[test]
fn layouts_and_dtypes_change_on_the_way() {
    let host = numbers(&[3, 4]);
    for to in [DType::F32, DType::F64, DType::I32, DType::Bool] {
        let expected = host.t().unwrap().to_dtype(to).unwrap();
        // Both sides strided, from the host, to the host, within the device, and to another.
        let pairs = [(Device::CPU, gpu()), (gpu(), Device::CPU), (gpu(), gpu()), (gpu(), device(1))];
        for (from, into) in pairs {
            let source = host.to_device(from).unwrap().t().unwrap();
            let memory = opsmith::zeros([4, 6]).unwrap().to_dtype(to).unwrap().to_device(into).unwrap();
            let target = memory.narrow(1, 1, 3).unwrap();
            opsmith_runtime::copy::copy(&target, &source).unwrap();
            assert_same(&target, &expected);
            assert_same(
                &memory.narrow(1, 4, 2).unwrap(),
                &opsmith::zeros([4, 2]).unwrap().to_dtype(to).unwrap(),
            );
        }
    }
}

/// A number that moves alone becomes a fill; its conversion is a copy's all the same.
#[test]
fn single_elements_are_converted_as_copies_convert_them() {
    let singles = [
        Tensor::of(&[-1.5f32]),
        Tensor::of(&[f32::NAN]),
        Tensor::of(&[3.0e10f32]),
        Tensor::of(&[i64::MAX]),
        Tensor::of(&[(1i64 << 54) + (1 << 30) + 1]),
        Tensor::of(&[u64::MAX]),
        Tensor::of(&[opsmith_runtime::Complex64::new(-2.0, 1.0)]),
    ];
    for source in &singles {
        for dtype in DType::ALL {
            let target =
                |place| opsmith::zeros([3]).unwrap().to_dtype(dtype).unwrap().to_device(place).unwrap();
            let (host, there) = (target(Device::CPU), target(gpu()));
            opsmith_runtime::copy::copy(&host, source).unwrap();
            opsmith_runtime::copy::copy(&there, source).unwrap();
            assert_same(&there, &host);
        }
    }
}

#[test]
fn truth_values_of_memory_that_no_kernel_wrote_are_true_or_false() {
    let storage = opsmith_runtime::storage::Storage::on(gpu(), 4).unwrap();
    // SAFETY: as a kernel leaves its output that writes nothing; the memory has four bytes.
    let tensor =
        unsafe { Tensor::from_parts(storage, opsmith_runtime::Layout::contiguous(&[4]), DType::Bool, gpu()) };
    assert_eq!(tensor.to_vec::<bool>().unwrap().iter().map(|truth| u8::from(*truth)).max(), Some(1));
}

#[test]
fn a_conversion_that_names_a_device_moves() {
    let x = numbers(&[2, 3]).requires_grad_(true).unwrap();
    let options = opsmith::ToCopyOptions::new().dtype(DType::F64).device(gpu());
    let y = opsmith::to_copy_with(&x, &options).unwrap();
    assert_eq!((y.device(), y.dtype()), (gpu(), DType::F64));
    (y * 3.0).unwrap().sum().unwrap().backward().unwrap();
    let gradient = x.grad().unwrap();
    assert_eq!((gradient.device(), gradient.dtype()), (Device::CPU, DType::F32));
    assert_same(&gradient, &opsmith::full([2, 3], 3.0).unwrap().to_dtype(DType::F32).unwrap());
}

#[test]
fn movement_has_derivatives_of_any_order() {
    let x = numbers(&[4]).to_dtype(DType::F64).unwrap().requires_grad_(true).unwrap();
    let there = |x: &Tensor| -> Result<Tensor> {
        let y = x.to_device(gpu())?;
        ((&y * &y)? * &y)?.to_device(Device::CPU)?.sum()
    };
    let options = Options { create_graph: true, ..Options::default() };
    let first = grad(&[&there(&x).unwrap()], &[&x], &[None], options).unwrap().remove(0).unwrap();
    let second = grad(&[&first.sum().unwrap()], &[&x], &[None], options).unwrap().remove(0).unwrap();
    assert_same(&second.detach(), &(x.detach() * 6.0).unwrap());
    let (_, tangent) = jvp(|inputs| Ok(vec![there(&inputs[0])?]), &[&x.detach()], &[&x.detach()]).unwrap();
    let expected = there(&x.detach()).unwrap();
    let difference = (tangent[0].as_ref().unwrap().item().unwrap().to_f64()
        - 3.0 * expected.item().unwrap().to_f64())
    .abs();
    assert!(difference < 1e-12, "{difference}");
}

#[test]
fn the_host_reads_a_copy() {
    let (host, there) = (numbers(&[2, 3]), numbers(&[2, 3]).to_device(gpu()).unwrap());
    assert_eq!(there.to_vec::<f32>().unwrap(), host.to_vec::<f32>().unwrap());
    assert_eq!(format!("{there}"), format!("{host}"));
    assert!(format!("{there:?}").contains(", device=cuda:0"), "{there:?}");
    assert_eq!(there.sum().unwrap().item().unwrap(), host.sum().unwrap().item().unwrap());
    assert_eq!(there.t().unwrap().to_vec::<f32>().unwrap(), host.t().unwrap().to_vec::<f32>().unwrap());
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    host.write_npy(&mut ours).unwrap();
    there.write_npy(&mut theirs).unwrap();
    assert_eq!(ours, theirs);
    assert!(opsmith::equal(&there, &host).unwrap());
}

#[test]
fn operands_on_different_devices_are_refused() {
    let (host, there) = (numbers(&[3]), numbers(&[3]).to_device(gpu()).unwrap());
    let error = host.add(&there).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Device);
    assert_eq!(
        error.to_string(),
        "add.Tensor: the operands are on different devices, cpu and cuda:0\n  self: float32 (3)\n  other: float32 (3)\n  help: move them to one device first"
    );
    let mut out = numbers(&[3]);
    assert_eq!(there.add_out(&there, &mut out).unwrap_err().kind(), ErrorKind::Device);
    assert_same(&out, &numbers(&[3]));
    assert_eq!(host.add_(&there).unwrap_err().kind(), ErrorKind::Device);
    // A number combines with operands of any device.
    let number = Tensor::scalar(2.0, DType::F32);
    assert_same(&there.mul(&number).unwrap(), &host.mul(&number).unwrap());
    assert_same(&number.sub(&there).unwrap(), &number.sub(&host).unwrap());
    // A number on a device does not combine with host operands.
    let number = number.to_device(gpu()).unwrap();
    assert_eq!(host.mul(&number).unwrap_err().kind(), ErrorKind::Device);
}

#[test]
fn a_device_that_is_not_there_is_an_error() {
    gpu();
    let error = numbers(&[3]).to_device(device(7)).unwrap_err();
    assert_eq!(error.to_string(), "there is no device 7\n  help: there are 2, from 0");
    assert!(opsmith::zeros_with([2], opsmith::ZerosOptions::new().device(device(7))).is_err());
}

#[test]
fn a_kernel_of_the_host_refuses_memory_of_a_device() {
    use opsmith::Backend;
    let (op, _) = LIBRARY.get("sinh").unwrap();
    gpu();
    // SAFETY of the numbers: only this test calls the operator in this dtype.
    let host = op.kernels.get(Backend::Cpu, DType::F16).unwrap();
    let there = numbers(&[3]).to_dtype(DType::F16).unwrap().to_device(gpu()).unwrap();
    let right = op.kernels.replace(Backend::Cuda, DType::F16, None).unwrap();
    // SAFETY: it is a kernel of this operator for this dtype; for which backend, it looks itself.
    unsafe { op.kernels.restore(Backend::Cuda, DType::F16, host) };
    let error = there.sinh().unwrap_err();
    // SAFETY: it was there before.
    unsafe { op.kernels.restore(Backend::Cuda, DType::F16, right) };
    assert_eq!(error.kind(), ErrorKind::Device);
    assert!(error.to_string().contains("which the host cannot read"), "{error}");
}

#[test]
fn streams_of_many_threads_keep_their_order() {
    let sum = opsmith::zeros([8]).unwrap().to_device(gpu()).unwrap();
    let one = opsmith::ones([8]).unwrap().to_device(gpu()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    sum.add_(&one).unwrap();
                    // Read by several at once, and released while a stream still uses it.
                    drop((&one + &sum).unwrap());
                }
            });
        }
    });
    assert_same(&sum, &opsmith::full([8], 400.0).unwrap().to_dtype(DType::F32).unwrap());
}

/// Alone in its process, since others allocate too.
#[test]
fn memory_goes_back_when_its_last_use_has_passed() {
    const ALONE: &str = "OPSMITH_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        let before = live_bytes();
        let x = numbers(&[1000]).to_device(gpu()).unwrap().requires_grad_(true).unwrap();
        let y = ((&x * &x).unwrap() + &x).unwrap().sum().unwrap();
        y.backward().unwrap();
        assert!(live_bytes() > before);
        drop((x, y));
        assert_eq!(live_bytes(), before);
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["memory_goes_back_when_its_last_use_has_passed", "--exact"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn writes_of_the_host_wait_for_devices_that_read_pinned_memory() {
    let (device, given) = (gpu(), numbers(&[40, 50]));
    let host = given.pin_memory().unwrap();
    assert!(host.is_pinned() && !given.is_pinned());
    assert_same(&host, &given);
    // In place, an out form, a copy, and a graph that changes its input.
    let change = |inputs: &[Tensor]| {
        let there = inputs[0].to_device(device)?;
        inputs[0].mul_(2.0)?;
        Ok(vec![there])
    };
    let graph = Graph::trace(change, [InputSpec::from(&given)]).unwrap();
    let writes: [&dyn Fn(); 4] = [
        &|| host.add_(1.0).unwrap(),
        &|| opsmith::exp_out(&given, &mut host.clone()).map(drop).unwrap(),
        &|| opsmith_runtime::copy::copy(&host, &given).unwrap(),
        &|| drop(graph.run(&[&host]).unwrap()),
    ];
    for write in writes {
        let expected = host.deep_clone().unwrap();
        let there = [(); 2].map(|()| host.to_device(device).unwrap());
        // A reader does not wait.
        assert_same(&host, &expected);
        write();
        there.iter().for_each(|there| assert_same(there, &expected));
        assert_ne!(bits(&host), bits(&expected));
        // It is released after its last use.
        let other = expected.pin_memory().unwrap();
        let there = other.to_device(device).unwrap();
        drop(other);
        assert_same(&there, &expected);
    }
}

#[test]
fn a_graph_has_an_arena_on_each_device() {
    let function = |inputs: &[Tensor]| -> Result<Vec<Tensor>> {
        let [x, y] = inputs else { unreachable!("two inputs") };
        let here = ((x * 2.0)? + 1.0)?.exp()?;
        let there = ((y * 3.0)? - &here.to_device(gpu())?)?.tanh()?;
        Ok(vec![(here * &there.to_device(Device::CPU)?)?, there])
    };
    let spec = |device| InputSpec::new(DType::F32, ["rows".into(), 4.into()]).on(device);
    let mut graph = Graph::trace(function, [spec(Device::CPU), spec(gpu())]).unwrap();
    graph.check().unwrap();
    let optimized = graph.optimize(&Passes::all());
    for rows in [1, 3, 8] {
        let inputs = [numbers(&[rows, 4]), numbers(&[rows, 4]).to_device(gpu()).unwrap()];
        let eager = function(&inputs).unwrap();
        for threads in [1, 2] {
            graph.set_threads(threads);
            for graph in [&graph, &optimized] {
                let found = graph.run(&inputs).unwrap();
                assert_eq!((found[0].device(), found[1].device()), (Device::CPU, gpu()));
                found.iter().zip(&eager).for_each(|(found, eager)| assert_same(found, eager));
            }
        }
    }
    let wrong = [numbers(&[2, 4]), numbers(&[2, 4])];
    assert_eq!(graph.run(&wrong).unwrap_err().kind(), ErrorKind::Graph);
}

#[test]
fn a_saved_graph_keeps_constants_of_a_device() {
    let weight = numbers(&[4, 2]).to_device(gpu()).unwrap();
    let graph = Graph::trace(
        |inputs: &[Tensor]| Ok(vec![inputs[0].mm(&weight)?]),
        [InputSpec::from(&weight.t().unwrap())],
    )
    .unwrap();
    let folder = std::env::temp_dir().join(format!("opsmith_device_graph_{}", std::process::id()));
    graph.save(&folder).unwrap();
    let loaded = Graph::load(&folder).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let input = weight.t().unwrap();
    assert_same(&loaded.run(&[&input]).unwrap()[0], &graph.run(&[&input]).unwrap()[0]);
    let optimized = loaded.optimize(&Passes::all().frozen());
    assert_same(&optimized.run(&[&input]).unwrap()[0], &graph.run(&[&input]).unwrap()[0]);
}

#[test]
fn branches_and_loops_are_decided_by_elements_of_a_device() {
    let function = |inputs: &[Tensor]| -> Result<Vec<Tensor>> {
        let x = &inputs[0];
        let positive = x.sum()?.gt(0.0)?;
        let chosen = cond(&positive, || x.exp(), || x.neg())?;
        while_loop(&chosen, |state| state[0].abs()?.max()?.lt(100.0), |state| Ok(vec![(&state[0] * 2.0)?]))
    };
    let graph = Graph::trace(function, [InputSpec::new(DType::F32, [3.into()]).on(gpu())]).unwrap();
    for sign in [1.0, -1.0] {
        let host = Tensor::of(&[0.5f32 * sign as f32, 0.25, -0.125]);
        let expected = function(std::slice::from_ref(&host)).unwrap();
        let there = host.to_device(gpu()).unwrap();
        assert_same(&function(std::slice::from_ref(&there)).unwrap()[0], &expected[0]);
        assert_same(&graph.run(&[there]).unwrap()[0], &expected[0]);
    }
}

/// The quickstart's training, its losses and parameters bit for bit.
#[test]
fn a_network_learns_the_same() {
    let train = |device: Device| -> anyhow::Result<(Vec<f64>, Vec<Tensor>)> {
        let (training, _) = digits::load(1)?;
        let training = training.to_device(device)?;
        let generator = Generator::new(1);
        let network = Network::new(&generator, device)?;
        let mut optimizer = Sgd::new(network.parameters(), 0.05, 0.9)?;
        let mut losses = Vec::new();
        for indices in generator.permutation(training.len()).chunks(32) {
            let batch = training.select(indices)?;
            let loss = network.logits(&batch.images)?.cross_entropy(&batch.labels)?;
            loss.backward()?;
            optimizer.step()?;
            losses.push(loss.item()?.to_f64());
        }
        losses.push(network.accuracy(&training)?);
        Ok((losses, network.parameters()))
    };
    let ((host_losses, host), (losses, there)) = (train(Device::CPU).unwrap(), train(gpu()).unwrap());
    assert_eq!(losses, host_losses);
    assert!(losses[losses.len() - 2] < losses[0] / 2.0, "{losses:?}");
    there.iter().zip(&host).for_each(|(there, host)| assert_same(&there.detach(), &host.detach()));
}
