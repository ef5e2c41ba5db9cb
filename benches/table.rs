//! Benchmark of the buffer table of a synthetic program: reading, sorting, filtering and grouping.
//! `cargo bench --bench table -- 1000000`.

#[path = "synthetic/mod.rs"]
mod synthetic;

use std::time::Instant;

use highwater::analysis::ProfileAnalysis;
use highwater::analysis::map::MemoryMap;
use highwater::analysis::table::{BufferTable, Column, Counted, Filter, Key, Order, arrange};
use highwater::open;
use highwater::source::{Input, Progress};

fn main() {
    let Some(buffers) = std::env::args().skip(1).find_map(|word| word.parse().ok()) else {
        println!("skipped: no number of buffers given");
        return;
    };
    let Ok(input) = Input::from_bytes("made", synthetic::program(buffers).into()) else { return };
    let timed = |what: &str, begin: Instant| println!("{what}: {:.1} ms", begin.elapsed().as_secs_f64() * 1e3);
    let begin = Instant::now();
    let Ok(profile) = open::open_input(&input, &Progress::default()) else { return };
    timed("read", begin);
    let begin = Instant::now();
    let analysis = ProfileAnalysis::new(&profile);
    timed("analysed", begin);
    let (program, own) = (&profile.programs[0], &analysis.programs[0]);
    let Some(space) = own.main_space() else { return };
    let begin = Instant::now();
    let map = MemoryMap::new(program, own, space);
    timed("memory map", begin);
    let begin = Instant::now();
    let table = BufferTable::new(program, own, space, &map);
    timed("table columns", begin);
    let begin = Instant::now();
    table.name.rank();
    timed("names sorted, once", begin);
    let all: Vec<u32> = (0..table.len() as u32).collect();
    for column in Column::ALL {
        let order = Order { keys: vec![Key { column, down: true }], ..Order::default() };
        let rows = all.clone();
        let begin = Instant::now();
        let shown = arrange(&table, rows, &order, &Counted::default());
        timed(&format!("sorted by {} ({} rows)", column.title(), shown.rows), begin);
    }
    for group in [Column::Category, Column::Op, Column::Shape] {
        let order = Order { group: Some(group), ..Order::default() };
        let rows = all.clone();
        let begin = Instant::now();
        let shown = arrange(&table, rows, &order, &Counted::default());
        timed(&format!("grouped by {} ({} groups)", group.title(), shown.groups.len()), begin);
    }
    for words in [
        "size>512KiB",
        "fusion.12",
        "op:/layer_(1|2)[0-9]/",
        "name:/[.]9+$/",
        "padding>40% category:temp live@peak",
        "-softmax dtype:f32 from>1000 steps>100",
    ] {
        let Ok(filter) = Filter::parse(words) else { continue };
        let begin = Instant::now();
        let kept = filter.keep(&table, &all, space.peak_point());
        timed(&format!("filtered by '{words}' ({} left)", kept.len()), begin);
    }
}
