//! Poplar profiles: totals found by independent readers, every access path they use, and every way in which such a file
//! can be broken.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use highwater::analysis::ProfileAnalysis;
use highwater::analysis::tiles::{MemoryReport, Selection, TileAnalysis, vertex_state};
use highwater::decode::poplar;
use highwater::export::report::{self, Format, Options};
use highwater::model::{Profile, TileMemory};
use highwater::open::{self, Collection};
use highwater::source::{Input, Progress};
use serde_json::Value;

use crate::common::{self, Files};
use crate::poplar_files::{self, Spec, Tree};

fn open(path: &Path) -> Profile {
    open::open_path(path, &Progress::default()).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn report_of(profile: &Profile) -> Value {
    let analysis = ProfileAnalysis::new(profile);
    let text = report::write(&report::build(&[(profile, &analysis)], &[], &Options::default()), Format::Json);
    serde_json::from_str(&text).unwrap()
}

fn bytes_profile(name: &str, bytes: &[u8]) -> Result<Profile, String> {
    let input = Input::from_bytes(name, bytes.to_vec().into()).map_err(|e| e.to_string())?;
    open::open_input(&input, &Progress::default()).map_err(|e| e.to_string())
}

/// A temporary folder for this test.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("highwater-poplar-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn small() -> Spec {
    Spec { ipus: 2, tiles_per_ipu: 96, layers: 3, ..Spec::mk2() }
}

fn graph(spec: &Spec, cbor: bool) -> Vec<u8> {
    let mut tree = Tree::new(Vec::new(), cbor);
    poplar_files::write_graph(&mut tree, spec).unwrap();
    tree.finish().unwrap()
}

fn tiles(profile: &Profile) -> (&TileMemory, TileAnalysis) {
    let memory = profile.tiles.as_ref().expect("tiles");
    (memory, TileAnalysis::new(memory))
}

/// Compares each profile with totals computed by another program, `NAME.expected.json`; returns the number of profiles.
pub fn compare_totals(files: &Files) -> usize {
    let mut seen = 0;
    for path in files.named(|name| name.ends_with(".expected.json")) {
        let name = common::name(&path);
        let stem = path.to_string_lossy().trim_end_matches(".expected.json").to_owned();
        let sources = ["json", "cbor", "pop"].map(|end| common::packed_or_not(&format!("{stem}.{end}")));
        let Some(source) = sources.into_iter().flatten().next() else { panic!("{name}: no profile beside it") };
        let expected: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let report = report_of(&open(&source));
        let tiles = &report["profiles"][0]["tiles"];
        for (key, expected) in expected.as_object().unwrap() {
            let list = |of: &str, name: &str, bytes: &str| -> Value {
                let rows = tiles[of].as_array().into_iter().flatten();
                let pairs = rows.map(|row| (row[name].as_str().unwrap().to_owned(), row[bytes].clone()));
                let map: serde_json::Map<_, _> = pairs.collect();
                if map.is_empty() || map.values().all(Value::is_null) { Value::Null } else { map.into() }
            };
            let found = match key.as_str() {
                "by_category" => list("by_category", "category", "bytes"),
                "overlapped_by_category" => list("by_category", "category", "overlapped_bytes"),
                "by_region" => list("by_region", "region", "bytes"),
                key => tiles[key].clone(),
            };
            assert_eq!(&found, expected, "{name}: {key}");
        }
        seen += 1;
    }
    seen
}

#[test]
fn totals_equal_those_of_the_given_profiles() {
    assert!(compare_totals(&Files::of_project()) >= 4);
}

/// Every path of keys that third-party code uses in such a file (formats/poplar.md, 1.6).
#[test]
fn access_paths_of_other_readers() {
    let text = r#"{"graphProfile":{
        "target":{"numIPUs":1,"tilesPerIPU":3,"numTiles":3,"bytesPerTile":100,"type":"IPU_MODEL"},
        "graph":{"numVertices":12,"numComputeSets":1},
        "vertexTypes":{"names":["a::B","c::D"]},
        "computeSets":{"names":["cs0"]},
        "exchanges":{"codeBytesByTile":[[1,2,3],[4,5,6]]},
        "programs":[{"type":"Sequence","children":[1]},{"type":"Switch","children":[2,3]},
            {"type":"Sequence","children":[4]},{"type":"Sequence","children":[4,5]},
            {"type":"Sync"},{"type":"StreamCopyBegin","name":"in"}],
        "memory":{
            "byTile":{"total":[10,20,30],"totalIncludingGaps":[10,25,131]},
            "byCategory":{"variable":{"interleaved":{"nonOverlapped":[1,1,1],"overlapped":[9,9,9]},
                "nonInterleaved":{"nonOverlapped":[2,2,2]},"overflowed":{"nonOverlapped":[0,0,31]}},
                "copyDescriptor":{"nonInterleaved":{"nonOverlapped":[1,0,0]}},
                "vertexFieldData":{"nonInterleaved":{"nonOverlapped":[0,2,0]}}},
            "byVertexType":{"codeBytes":[[1,1,1],[2,2,2]],"vertexDataBytes":[[1,0,0],[0,0,9]],
                "descriptorBytes":[[1,0,0],[0,0,0]],"edgePtrBytes":[[0,1,0],[0,0,0]],"copyPtrBytes":[[0,0,1],[0,0,0]]},
            "liveness":{"alwaysLive":{"bytesByTile":[4,5,6]},"notAlwaysLive":{"maxBytesByTile":[6,7,8],
                "byProgram":[{"bytes":3,"children":[{"bytes":17,"children":[]},{"bytes":16,"children":[]}]},
                    {"bytes":1,"children":[]}]}}}},
        "executionProfile":{"profilerMode":"NONE","programTrace":[5,5]}}"#;
    let profile = bytes_profile("report.json", text.as_bytes()).unwrap();
    let (memory, analysis) = tiles(&profile);
    // Maximum and sum of byTile.total, maximum of totalIncludingGaps.
    assert_eq!(analysis.total, Some(60));
    assert_eq!(memory.total.as_ref().unwrap().iter().max(), Some(&30));
    assert_eq!((analysis.max, &analysis.over[..], analysis.worst_over_by), (Some((2, 131)), &[2][..], 31));
    // alwaysLive.bytesByTile + notAlwaysLive.maxBytesByTile.
    assert_eq!(analysis.always_live, Some(15));
    assert_eq!(memory.not_always_live_max.as_ref().unwrap().iter().sum::<u64>(), 21);
    // category.region.nonOverlapped.
    let variable = &analysis.categories[0];
    assert_eq!((variable.bytes, variable.overlapped), (3 + 6 + 31, Some(27)));
    assert_eq!(vertex_state(&analysis.categories), 3);
    // byVertexType, five arrays.
    assert_eq!(memory.vertex_types.rows.iter().map(|row| row.bytes).sum::<u64>(), 9 + 10 + 1 + 1 + 1);
    assert_eq!(memory.vertex_types.rows[1].name, "c::D");
    assert_eq!(memory.vertex_types.largest[2], [(1, 11), (0, 2)]);
    // The first Switch's second branch, and its StreamCopy programs.
    let switch = memory.programs.iter().find(|program| program.kind == "Switch").unwrap();
    let branch = &memory.programs[switch.children[1] as usize];
    let copies = branch.children.iter().filter(|&&id| memory.programs[id as usize].kind.starts_with("StreamCopy"));
    assert_eq!(copies.count(), 1);
    assert_eq!(memory.programs[5].runs, Some(2));
    // graph.numVertices, numComputeSets.
    let fact = |key: &str| profile.facts.iter().find(|fact| fact.key == key).map(|fact| fact.value.as_str());
    assert_eq!((fact("numVertices"), fact("numComputeSets")), (Some("12"), Some("1")));
    // Maximum over the forest.
    assert_eq!(analysis.peak.map(|peak| peak.bytes), Some(17));
    assert_eq!(memory.liveness.nodes[0].below, 2);
    // Exchange code over both dimensions.
    assert_eq!(memory.exchanges.rows.iter().map(|row| row.bytes).sum::<u64>(), 21);
    // A few tiles.
    let some = MemoryReport::new(memory, analysis.gaps.as_ref(), &Selection::Tiles(vec![1, 2]), 10);
    assert_eq!((some.including_gaps, some.excluding_gaps), (Some(156), Some(50)));
    assert_eq!(some.categories[0].overlapped, Some(18));
    assert_eq!(some.exchange_bytes, 16);
}

/// Impossibly large byte counts are summed without overflow.
#[test]
fn sums_of_impossible_bytes_do_not_wrap() {
    let half = 1u64 << 63;
    let text = format!(
        r#"{{"target":{{"numIPUs":1,"tilesPerIPU":1,"numTiles":1,"bytesPerTile":100}},"memory":{{"byTile":{{"total":[5],
        "interleaved":[{half}],"nonInterleaved":[{half}],"overflowed":[5]}}}}}}"#
    );
    let profile = bytes_profile("report.json", text.as_bytes()).unwrap();
    assert!(profile.notes.iter().any(|note| note.text.contains("regions do not add up")), "{:?}", profile.notes);
}

#[test]
fn json_cbor_and_sqlite_agree() {
    let spec = small();
    let (total, including, always, max) = spec.sums();
    let folder = folder("agree");
    let pop = folder.join("a.pop");
    poplar_files::write_pop(&pop, &spec).unwrap();
    let profiles = [
        bytes_profile("g.json", &graph(&spec, false)).unwrap(),
        bytes_profile("g.cbor", &graph(&spec, true)).unwrap(),
        open(&pop),
        bytes_profile("stdin", &fs::read(&pop).unwrap()).unwrap(),
    ];
    for (at, profile) in profiles.iter().enumerate() {
        let (memory, analysis) = tiles(profile);
        assert_eq!((analysis.total, analysis.total_including_gaps), (Some(total), Some(including)), "form {at}");
        assert_eq!(analysis.max, Some((max.0 as u32, max.1)), "form {at}");
        assert_eq!(memory.tile_count() as u64, spec.tiles(), "form {at}");
        assert_eq!(analysis.categories.len(), 15, "form {at}");
        assert_eq!(analysis.categories.iter().map(|c| c.bytes).sum::<u64>(), total, "form {at}");
        if at < 2 {
            assert_eq!(analysis.always_live, Some(always), "form {at}");
            assert_eq!(memory.liveness.steps.len() as u64, spec.steps(), "form {at}");
            let peak = (0..spec.steps()).map(|step| spec.step(step)).max();
            assert_eq!(analysis.peak.map(|peak| peak.bytes), peak, "form {at}");
            assert!(memory.step_name(1).contains("Convolve"), "{}", memory.step_name(1));
        }
    }
    assert!(profiles[2].notes.iter().any(|note| note.text.contains("nobody_knows")), "{:?}", profiles[2].notes);
    let variables = poplar::variables_of_tile(&pop, 3, 2).unwrap();
    assert_eq!((variables.len(), variables[0].name.as_str()), (2, "model/variable"));
    assert_eq!(variables[0].category, "variable");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_folder_is_one_profile() {
    let spec = small();
    let folder = folder("folder");
    let write = |name: &str, write: &dyn Fn(&mut Tree<Vec<u8>>)| {
        let mut tree = Tree::new(Vec::new(), false);
        write(&mut tree);
        fs::write(folder.join(name), tree.finish().unwrap()).unwrap();
    };
    write("graph.json", &|tree| poplar_files::write_graph(tree, &spec).unwrap());
    write("execution.json", &|tree| poplar_files::write_execution(tree, &spec, 3).unwrap());
    write("vars.json", &|tree| poplar_files::write_variables(tree, &spec).unwrap());
    fs::write(folder.join("framework.json"), r#"{"framework":"popart","version":"2.1","deep":{"er":[1,2]}}"#).unwrap();
    fs::write(folder.join("app.json"), r#"{"batch":4}"#).unwrap();
    fs::write(folder.join("profile_info.json"), r#"{"gcprofile_version":"1","command":"python train.py"}"#).unwrap();
    fs::write(
        folder.join("tile_mapping.json"),
        r#"{"mappings":{"main":[["add.1",0,[4,4],"float",0,0,16,[[0,12],[7,4]],"x"]]}}"#,
    )
    .unwrap();
    fs::write(
        folder.join("debug.json"),
        r#"{"contexts":[{"layer":"poplibs","location":{"fileName":1,"lineNumber":7}}],"stringTable":["a","b.cpp"]}"#,
    )
    .unwrap();
    fs::write(folder.join("notes.txt"), "nothing").unwrap();
    for path in [folder.clone(), folder.join("graph.json")] {
        let profile = open(&path);
        let (memory, analysis) = tiles(&profile);
        assert_eq!(analysis.total, Some(spec.sums().0));
        assert_eq!(memory.programs[0].runs, Some(3));
        assert_eq!(memory.variables.len() as u64, spec.tiles() * 15);
        assert_eq!(memory.execution.as_ref().unwrap().cycles, Some(123_456));
        assert_eq!(profile.sources.len(), 8, "{:?}", profile.sources);
        let fact = |group: &str, key: &str| profile.facts.iter().any(|fact| fact.group == group && fact.key == key);
        assert!(fact("framework", "deep.er") && fact("app", "batch") && fact("profile_info", "command"));
        assert!(fact("tile mapping", "main") && fact("debug", "b.cpp:7"), "{:?}", profile.facts);
        let report = MemoryReport::new(memory, None, &Selection::Tiles(vec![5]), 5);
        assert_eq!(report.variables.len(), 15);
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_folder_of_several_profiles_lists_them_worst_first() {
    let folder = folder("several");
    let graph_of = |spec: &Spec| graph(spec, false);
    let spec = small();
    fs::write(folder.join("one.json"), graph_of(&spec)).unwrap();
    fs::write(folder.join("two.cbor"), graph(&spec, true)).unwrap();
    fs::create_dir(folder.join("inner")).unwrap();
    let names =
        |collection: &Collection| collection.entries.iter().map(highwater::open::Entry::full_name).collect::<Vec<_>>();
    let write_report = |at: &Path| {
        fs::write(at.join("graph.json"), graph_of(&spec)).unwrap();
        fs::write(at.join("app.json"), r#"{"batch":4}"#).unwrap();
    };
    write_report(&folder);
    write_report(&folder.join("inner"));
    assert!(Collection::is_collection(&folder));
    assert!(!Collection::is_collection(&folder.join("inner")));
    let progress = Progress::default();
    let mut collection = Collection::open(&folder, &progress).unwrap();
    let mut found = names(&collection);
    found.sort();
    assert_eq!(found, ["graph.json", "inner/graph.json", "one.json", "two.cbor"]);
    collection.sort_worst_first();
    assert!(collection.entries.iter().all(|entry| entry.known().is_some()));
    for row in 0..4 {
        let profile = collection.open_entry(row, &progress).unwrap();
        assert_eq!(tiles(&profile).1.total, Some(spec.sums().0));
        let is_report = collection.entries[row].file.ends_with("graph.json");
        assert_eq!(profile.facts.iter().any(|fact| fact.key == "batch"), is_report);
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn numbered_pairs_belong_together() {
    let spec = small();
    let folder = folder("pairs");
    for number in 0..2u64 {
        let own = Spec { ipus: number + 1, ..spec.clone() };
        fs::write(folder.join(format!("{number}.graph_json")), graph(&own, false)).unwrap();
        let mut tree = Tree::new(Vec::new(), false);
        poplar_files::write_execution(&mut tree, &own, number + 1).unwrap();
        fs::write(folder.join(format!("{number}.exec_json")), tree.finish().unwrap()).unwrap();
    }
    for asked in ["1.graph_json", "1.exec_json"] {
        let profile = open(&folder.join(asked));
        let (memory, _) = tiles(&profile);
        assert_eq!((memory.target.ipus, memory.programs[0].runs), (2, Some(2)), "{asked}");
        assert_eq!(profile.sources.len(), 2);
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn lowered_variables_alone_give_bytes_by_tile() {
    let spec = Spec { ipus: 1, tiles_per_ipu: 4, ..Spec::mk2() };
    let mut tree = Tree::new(Vec::new(), false);
    poplar_files::write_variables(&mut tree, &spec).unwrap();
    let profile = bytes_profile("vars.json", &tree.finish().unwrap()).unwrap();
    let (memory, analysis) = tiles(&profile);
    let used: u64 = (0..4).map(|tile| (0..15).map(|c| spec.category(c, tile).0).sum::<u64>()).sum();
    assert_eq!(analysis.total, Some(used));
    // There are 16 bytes between one variable and the next.
    assert_eq!(analysis.total_including_gaps, Some(used + 4 * 14 * 16));
    assert_eq!(memory.variables.memory_elements.len(), 13);
    let by_category: u64 = analysis.categories.iter().map(|category| category.bytes).sum();
    assert_eq!((by_category, memory.overlap_known), (used, false));
    let by_region: u64 = memory.regions.iter().flat_map(|region| &region.bytes).sum();
    assert_eq!(by_region, used);
    let gaps = analysis.gaps.as_ref().unwrap().sums();
    assert_eq!(gaps.below_interleaved.unwrap() + gaps.fragmentation.unwrap(), gaps.bytes);
}

/// Variables that share addresses, were not allocated, or lie across the start of the interleaved region.
#[test]
fn lowered_variables_are_counted_where_they_lie() {
    let text = r#"{"numTiles":2,"targetMemoryInfo":{"tileMemory":1000,"interleavedMemoryStart":500},"vars":[
        {"var":0,"info":{"allocated":true},"tile":0,"name":"a","sizeBytes":100,"offset":0,"category":"variable","alwaysLive":true},
        {"var":1,"info":{"allocated":true},"tile":0,"name":"b","sizeBytes":100,"offset":50,"category":"message"},
        {"var":2,"info":{"allocated":true},"tile":0,"name":"c","sizeBytes":40,"offset":480,"category":"variable"},
        {"var":3,"info":{"allocated":false},"tile":1,"name":"d","sizeBytes":2000,"category":"variable"}]}"#;
    let profile = bytes_profile("vars.json", text.as_bytes()).unwrap();
    let (memory, analysis) = tiles(&profile);
    assert_eq!(memory.total.as_deref(), Some(&[150 + 40, 2000][..]));
    assert_eq!(memory.including_gaps.as_deref(), Some(&[520, 2000][..]));
    let region = |name: &str| memory.regions.iter().find(|region| region.name == name).unwrap().bytes.clone();
    assert_eq!(
        (region("nonInterleaved"), region("interleaved"), region("overflowed")),
        (vec![170, 0], vec![20, 0], vec![0, 2000])
    );
    assert_eq!(memory.always_live.as_deref(), Some(&[100, 0][..]));
    assert_eq!(analysis.categories.iter().map(|c| c.bytes).collect::<Vec<_>>(), [2140, 100]);
    assert_eq!(analysis.over, [1]);
}

#[test]
fn cut_files_keep_what_was_read() {
    let spec = small();
    for cbor in [false, true] {
        let whole = graph(&spec, cbor);
        let mut with_tiles = 0;
        for cut in (1..40).map(|part| whole.len() * part / 40) {
            match bytes_profile(if cbor { "g.cbor" } else { "g.json" }, &whole[..cut]) {
                Ok(profile) => {
                    assert!(
                        profile.notes.iter().any(|note| note.offset.is_some()),
                        "no place named: {:?}",
                        profile.notes
                    );
                    with_tiles += usize::from(profile.tiles.is_some_and(|tiles| tiles.must_fit().is_some()));
                }
                Err(message) => assert!(!message.is_empty()),
            }
        }
        assert!(with_tiles > 3, "cbor {cbor}: {with_tiles}");
    }
}

#[test]
fn damaged_bytes_never_panic() {
    let spec = Spec { tiles_per_ipu: 8, ipus: 1, layers: 1, exchanges: 2, compute_sets: 2, ..Spec::mk2() };
    for cbor in [false, true] {
        let whole = graph(&spec, cbor);
        for seed in 0..400usize {
            let mut bytes = whole.clone();
            for k in 0..3 {
                let at = seed.wrapping_mul(7919).wrapping_add(k * 104_729) % bytes.len();
                bytes[at] = (seed * 31 + k * 7) as u8;
            }
            let _ = bytes_profile("g", &bytes).map(|profile| ProfileAnalysis::new(&profile));
        }
    }
}

#[test]
fn deep_trees_and_long_numbers_are_refused_or_skipped() {
    let deep = format!(r#"{{"target":{{"numTiles":1}},"x":{}"#, "[".repeat(100_000));
    let profile = bytes_profile("g.json", deep.as_bytes()).unwrap();
    assert!(profile.notes.iter().any(|note| note.text.contains("nested more than")));
    let closing = "[]".to_owned() + &"}]".repeat(1500);
    let forest = format!(
        r#"{{"target":{{"numTiles":1}},"memory":{{"liveness":{{"notAlwaysLive":{{"byProgram":{}{}}}}}}}}}"#,
        r#"[{"bytes":1,"children":"#.repeat(1500),
        closing
    );
    let profile = bytes_profile("g.json", forest.as_bytes()).unwrap();
    assert_eq!(profile.tiles.unwrap().liveness.nodes.len(), 1500);
    let long = format!(r#"{{"target":{{"numTiles":1,"bytesPerTile":{}}}}}"#, "9".repeat(2000));
    assert!(bytes_profile("g.json", long.as_bytes()).is_ok());
    // An impossibly large length.
    assert!(
        bytes_profile("x.cbor", &[0xa1, 0x66, b't', b'a', b'r', b'g', b'e', b't', 0xbb, 0xff, 0xff, 0xff]).is_err()
    );
}

#[test]
fn unknown_keys_are_named() {
    let text =
        r#"{"target":{"numTiles":1,"bytesPerTile":9,"moonPhase":3},"memory":{"byTile":{"total":[1]},"aura":[1,2]}}"#;
    let profile = bytes_profile("g.json", text.as_bytes()).unwrap();
    assert!(profile.facts.iter().any(|fact| fact.key == "moonPhase"));
    assert!(profile.notes.iter().any(|note| note.text.contains("memory.aura")), "{:?}", profile.notes);
}

#[test]
fn sqlite_files_that_are_cut_locked_half_written_or_not_poplars() {
    let folder = folder("sqlite");
    let pop = folder.join("a.pop");
    poplar_files::write_pop(&pop, &small()).unwrap();
    // Locked by another connection.
    let holder = rusqlite::Connection::open(&pop).unwrap();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    assert_eq!(tiles(&open(&pop)).1.total, Some(small().sums().0));
    drop(holder);
    // With a journal next to it.
    fs::write(folder.join("a.pop-journal"), b"x").unwrap();
    assert!(open(&pop).notes.iter().any(|note| note.text.contains("a.pop-journal")));
    fs::remove_file(folder.join("a.pop-journal")).unwrap();
    // Truncated anywhere: a message or a partial profile, never a panic.
    let whole = fs::read(&pop).unwrap();
    let cut = folder.join("cut.pop");
    let (mut parts, mut with_tiles) = (0, 0);
    for part in 1..16 {
        fs::write(&cut, &whole[..whole.len() * part / 16]).unwrap();
        match open::open_path(&cut, &Progress::default()) {
            Ok(profile) => {
                parts += 1;
                with_tiles += usize::from(profile.tiles.is_some());
                assert!(profile.notes.iter().any(|note| note.text.contains("ends")), "{:?}", profile.notes);
            }
            Err(error) => assert!(error.to_string().contains("SQLite"), "{error}"),
        }
    }
    println!("{parts} of 15 cut files still show something, {with_tiles} of them tiles");
    assert!(with_tiles > 7, "{with_tiles}");
    // Not a Poplar database.
    let other = folder.join("other.db");
    rusqlite::Connection::open(&other).unwrap().execute_batch("CREATE TABLE people(name text)").unwrap();
    let error = open::open_path(&other, &Progress::default()).unwrap_err().to_string();
    assert!(error.contains("people") && error.contains("Poplar"), "{error}");
    // Nothing was written next to any of them.
    let mut names: Vec<_> = fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    assert_eq!(names, ["a.pop", "cut.pop", "other.db"]);
    fs::remove_dir_all(folder).unwrap();
}

/// Facts of a file by key.
pub fn facts_of(path: &Path) -> BTreeMap<String, String> {
    let input = Input::open(path).unwrap();
    let profile = open::open_input(&input, &Progress::default()).unwrap();
    profile.facts.into_iter().map(|fact| (fact.key, fact.value)).collect()
}

/// A cache with the tables of the real one, which we may not redistribute.
#[test]
fn a_cache_of_the_execution_trace_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.pop_cache");
    let tables = "CREATE TABLE cache_info(profile_pop_fcc INTEGER); INSERT INTO cache_info VALUES (77);
        CREATE TABLE execution_trace_blocks_0(tag TEXT, ipu INTEGER, cycles_from INTEGER, cycles_to INTEGER, step_ids BLOB);
        INSERT INTO execution_trace_blocks_0 VALUES ('OnTileExecute', 0, 0, 900, x'8182');
        INSERT INTO execution_trace_blocks_0 VALUES ('OnTileExecute', 1, 0, 1000, x'8283');
        INSERT INTO execution_trace_blocks_0 VALUES ('DoExchange', 1, 1000, 1250, x'14bb');";
    rusqlite::Connection::open(&path).unwrap().execute_batch(tables).unwrap();
    let facts = facts_of(&path);
    for (key, value) in [
        ("change counter of profile.pop", "77"),
        ("OnTileExecute", "2 blocks"),
        ("DoExchange", "1 blocks"),
        ("IPUs", "2"),
        ("last cycle", "1250"),
        ("steps", "4"),
    ] {
        assert_eq!(facts.get(key).map(String::as_str), Some(value), "{key}");
    }
}

#[test]
fn the_samples_fit_and_do_not() {
    let samples = common::samples();
    let over = |name: &str| tiles(&open(&samples.join(name))).1.over.len();
    assert_eq!(over("ipu_fits.json"), 0);
    assert!(over("ipu_over.cbor") > 0);
}
