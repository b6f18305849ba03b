//! Runs one of the examples: `cargo run --release --bin opsmith-example-programs -- NAME [--device DEVICE]`. The variable
//! `OPSMITH_DEVICE` names a device, too.

use anyhow::{Context, Result, bail};
use opsmith::Device;
use opsmith_example_programs::{digits, shapes, text};

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let of_environment = std::env::var("OPSMITH_DEVICE").unwrap_or_else(|_| "cpu".to_owned());
    let (name, device) = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [name] => (name, of_environment.as_str()),
        [name, "--device", device] => (name, device),
        _ => bail!(
            "write `opsmith-example-programs NAME`, with `--device cuda` for a GPU; NAME is digits, shapes or text"
        ),
    };
    let device = Device::from_name(device)
        .with_context(|| format!("`{device}` is no device; try `cpu`, `cuda` or `cuda:1`"))?;
    match name {
        "digits" => digits::main(device),
        "shapes" => shapes::main(device),
        "text" => text::main(device),
        other => bail!("there is no example `{other}`; try digits, shapes or text"),
    }
}
