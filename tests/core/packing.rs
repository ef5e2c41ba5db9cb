//! The compiler's heap packing is reproduced to the byte for unchanged live ranges.

use std::time::Instant;

use highwater::analysis::ProgramAnalysis;
use highwater::analysis::packing::{self, Packer};
use highwater::model::{Device, MemorySpace};

use crate::common::{self, Files};

/// Repacks the heaps of every TPU program; returns how many were packed in program order and by size or span.
pub fn pack_again(files: &Files) -> (usize, usize) {
    let (mut online, mut fallback) = (0, 0);
    let mut wrong = Vec::new();
    for path in files.named(|name| common::ends_with(name, ".hlo.pb")) {
        let program = common::program(&path);
        let analysis = ProgramAnalysis::new(&program, &Device::default());
        // The rules are those of TPU programs; XLA's CPU and GPU compilers pack differently.
        if program.name.is_empty() || ["cpu", "gpu_after"].iter().any(|word| path.to_string_lossy().contains(word)) {
            continue;
        }
        let Some(space) = analysis.space(MemorySpace::HBM) else { continue };
        let start = Instant::now();
        let Some(packed) = packing::reproduce(&program, space, false) else { continue };
        let took = start.elapsed();
        println!("{} {:?} {:.4} {took:?}", common::name(&path), packed.packer, packed.equal_offsets);
        if packed.heap != packed.compiler_heap {
            wrong.push(format!("{}: {} instead of {}", common::name(&path), packed.heap.0, packed.compiler_heap.0));
        }
        match packed.packer {
            _ if packed.equal_offsets < 1.0 => {
                wrong.push(format!("{}: {:.3} of the offsets", common::name(&path), packed.equal_offsets));
            }
            Packer::Online => online += 1,
            Packer::Fallback => fallback += 1,
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    (online, fallback)
}

#[test]
fn heaps_and_every_offset_in_them_are_the_compilers() {
    let (online, fallback) = pack_again(&Files::of_project());
    assert!(online >= 8 && fallback >= 1, "{online} and {fallback}");
}
