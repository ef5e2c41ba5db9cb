//! Writes synthetic runtime profiles: `generate_runtime xspace|long|bfc|pprof FILE [NUMBER]`, where NUMBER is the number
//! of steps, chunks or layers. It generates `sample_profiles/made/` and the long histories of the frame benchmark.

use std::error::Error;

#[path = "../tests/common/xla_made.rs"]
mod xla_made;

use xla_made::History;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [form, file, rest @ ..] = arguments.as_slice() else {
        return Err("usage: generate_runtime xspace|long|bfc|pprof FILE [NUMBER]".into());
    };
    let number: Option<u64> = rest.first().map(|text| text.parse()).transpose()?;
    let bytes = match form.as_str() {
        "xspace" => xla_made::xspace(&History { steps: number.unwrap_or(12), arrays: 24, leak: 96 << 20, devices: 2 }),
        "long" => xla_made::xspace(&History { steps: number.unwrap_or(10_000), arrays: 50, leak: 0, devices: 2 }),
        "bfc" => xla_made::bfc(number.unwrap_or(240)),
        "pprof" => xla_made::pprof(number.unwrap_or(24), 4),
        other => return Err(format!("'{other}' is not one of xspace, long, bfc, pprof").into()),
    };
    std::fs::write(file, bytes)?;
    Ok(())
}
