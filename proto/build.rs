//! Generates Rust types from the `.proto` files in this folder, and their descriptors for other parsers to compare with.

use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.open_file("proto/hlo.proto")?;
    let descriptors = Path::new(&std::env::var("OUT_DIR")?).join("hlo.descriptors");
    std::fs::write(descriptors, compiler.encode_file_descriptor_set())?;
    prost_build::Config::new().compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
