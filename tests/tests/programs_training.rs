//! Training of exported programs: gradients of all parameters as PyTorch computed them, and runs after an update.

mod programs_support;

use opsmith::autograd::no_grad;
use opsmith::{Tensor, TensorOps};
use opsmith_programs::Program;
use programs_support::{Archive, compare, compare_from, folders};

/// The program of a folder that has it, with its recorded arrays.
fn recorded(name: &str) -> Option<(Program, Archive)> {
    let folder = folders().into_iter().find(|folder| folder.join(format!("{name}.pt2")).exists())?;
    let program = Program::load(folder.join(format!("{name}.pt2"))).unwrap();
    Some((program, Archive::open(&folder.join(format!("{name}.npz")))))
}

/// The sum of the squares of all results.
fn loss(outputs: &[Tensor]) -> Tensor {
    let sums =
        outputs.iter().filter(|output| output.dtype().is_float()).map(|output| output.mul(output)?.sum());
    sums.reduce(|sum, more| sum?.add(&more?)).unwrap().unwrap()
}

/// Compares the gradients of a program's parameters in the first recorded case.
fn trains(name: &str) {
    let Some((program, recorded)) = recorded(name) else {
        println!("{name}: not here; it is in ../shared/data/programs of the project's data");
        return;
    };
    let inputs = recorded.arrays("case0.in").unwrap();
    for (_, parameter) in program.parameters() {
        parameter.set_requires_grad(true).unwrap();
    }
    let outputs = program.call(&inputs).unwrap();
    compare(name, &outputs, &recorded.arrays("case0.out").unwrap());
    loss(&outputs).backward().unwrap();
    let mut compared = 0;
    for (parameter, tensor) in program.parameters() {
        // PyTorch has chosen one of the names of tied parameters.
        let mut names = program.weights().filter(|(_, other)| other.same(tensor)).map(|(name, _)| name);
        let Some(expected) = names.find_map(|name| recorded.array(&format!("grad.{name}"))) else {
            assert!(tensor.grad().is_none(), "{name}: `{parameter}` has a gradient, and PyTorch has none");
            continue;
        };
        let gradient = tensor.grad().unwrap_or_else(|| panic!("{name}: `{parameter}` has no gradient"));
        // Those of some biases are zero but for rounding.
        compare_from(1e-2, &format!("{name}, gradient of {parameter}"), &[gradient], &[expected]);
        compared += 1;
    }
    assert_eq!(compared, recorded.names("grad.").len(), "{name}: gradients of all parameters");
    println!("{name}: {compared} gradients");
}

macro_rules! programs {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            trains(stringify!($name));
        }
    )*};
}

programs! { mlp convnet lstm tiny_transformer gpt2_eager_attention statistics }

#[test]
fn a_run_after_an_update_uses_the_new_parameters() {
    let (program, recorded) = recorded("mlp").unwrap();
    let inputs = recorded.arrays("case0.in").unwrap();
    let before = program.run(&inputs).unwrap();
    let (_, bias) = program.parameters().find(|(name, _)| name.ends_with("bias")).unwrap();
    no_grad(|| bias.add_(1.0)).unwrap();
    let after = program.run(&inputs).unwrap();
    assert_ne!(before[0].to_vec::<f32>().unwrap(), after[0].to_vec::<f32>().unwrap());
    compare("the graph as the calls", &after, &program.call(&inputs).unwrap());
}
