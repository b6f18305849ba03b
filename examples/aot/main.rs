//! Runs one of the programs beside this file: `cargo run -p opsmith-example-aot -- NAME`.

mod add_reduce;
mod device;
mod gradients;
mod several_outputs;

fn main() -> opsmith::Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("add_reduce") => add_reduce::main(),
        Some("device") => {
            device::main();
            Ok(())
        }
        Some("gradients") => gradients::main(),
        Some("several_outputs") => several_outputs::main(),
        _ => {
            eprintln!("name a program: add_reduce, device, gradients or several_outputs");
            std::process::exit(2)
        }
    }
}
