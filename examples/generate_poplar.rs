//! Writes synthetic Poplar profiles: `generate_poplar FORMAT FILE [fits|over|huge]` with FORMAT `json`, `cbor`, `vars` or
//! `pop`. It generated two files in `sample_profiles/` and generates the input of the scale benchmark.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

#[path = "../tests/common/poplar_files.rs"]
mod poplar_files;

use poplar_files::{Spec, Tree};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [form, file, rest @ ..] = arguments.as_slice() else {
        return Err("usage: generate_poplar json|cbor|vars|pop FILE [fits|over|huge]".into());
    };
    let spec = match rest.first().map(String::as_str) {
        None | Some("fits") => Spec::mk2(),
        Some("over") => Spec { fill: 0.93, hot_tiles: vec![0, 1, 2, 3, 400, 401, 1100], ..Spec::mk2() },
        // A large program on 16 Mk2 IPUs: several GB as JSON.
        Some("huge") => Spec {
            ipus: 16,
            exchanges: 2000,
            compute_sets: 5000,
            estimates: true,
            layers: 24,
            hot_tiles: vec![0, 5000, 23_000],
            ..Spec::mk2()
        },
        Some(other) => return Err(format!("'{other}' is not one of fits, over, huge").into()),
    };
    let path = Path::new(file);
    if form == "pop" {
        poplar_files::write_pop(path, &spec)?;
        return Ok(());
    }
    let mut tree = Tree::new(BufWriter::with_capacity(1 << 20, File::create(path)?), form == "cbor");
    match form.as_str() {
        "json" | "cbor" => poplar_files::write_graph(&mut tree, &spec)?,
        "vars" => poplar_files::write_variables(&mut tree, &spec)?,
        other => return Err(format!("'{other}' is not one of json, cbor, vars, pop").into()),
    }
    tree.finish()?.flush()?;
    Ok(())
}
