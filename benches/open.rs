use highwater::{decode::{hlo, Reporter}, source::{Input, Progress}};
use std::time::Instant;
fn main() {
    for path in std::env::args().skip(1).filter(|a| !a.starts_with("--")) {
        for _ in 0..5 {
        let t = Instant::now();
        let p = Progress::default();
        let input = Input::open(path.as_ref()).unwrap();
        let bytes = input.load(&p).unwrap();
        let t1 = t.elapsed();
        let r = Reporter::default();
        let program = hlo::decode(&bytes, &p, &r).unwrap();
        let t2 = t.elapsed();
        println!("{path}: read {t1:?} decoded {t2:?}; {} instr {} comps {} buffers {} allocs {} shapes {:?}", program.instructions.len(), program.computations.len(), program.buffers.len(), program.allocations.len(), program.shapes.len(), r.finish());
        }
    }
}
