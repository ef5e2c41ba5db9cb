//! Writes the synthetic program used by the benchmarks: `generate_hlo BUFFERS FILE`.

use std::error::Error;

#[path = "../benches/synthetic/mod.rs"]
mod synthetic;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [buffers, file] = arguments.as_slice() else { return Err("usage: generate_hlo BUFFERS FILE".into()) };
    std::fs::write(file, synthetic::program(buffers.parse()?))?;
    Ok(())
}
