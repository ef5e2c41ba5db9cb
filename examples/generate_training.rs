//! Writes the generated training step of the benchmarks, about 55 buffers a layer: `generate_training LAYERS FILE`.

use std::error::Error;

#[path = "../benches/synthetic/training.rs"]
mod training;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [layers, file] = arguments.as_slice() else { return Err("usage: generate_training LAYERS FILE".into()) };
    std::fs::write(file, training::program(layers.parse()?))?;
    Ok(())
}
