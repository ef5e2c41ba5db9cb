//! `highwater export`: the tables hold the report's numbers, in every format, in the documented schema.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::Path;

use highwater::export::dataset::{Kind, Table, describe};
use parquet::basic::Type as Physical;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Map, Value};

use super::command_line::{path, run, stderr, stdout};
use crate::common;

/// A row by the names of its columns.
type Row = HashMap<String, Field>;

fn folder(name: &str) -> String {
    common::samples().join(name).to_str().expect("UTF-8").to_owned()
}

/// Exports some paths as Parquet and reads a table back.
fn read(folder: &Path, table: Table) -> Vec<Row> {
    let file = File::open(folder.join(format!("{table}.parquet"))).expect("the table");
    let reader = SerializedFileReader::new(file).expect("Parquet");
    let rows = reader.get_row_iter(None).expect("rows");
    rows.map(|row| row.expect("a row").into_columns().into_iter().collect()).collect()
}

fn text<'a>(row: &'a Row, column: &str) -> Option<&'a str> {
    if let Some(Field::Str(text)) = row.get(column) { Some(text) } else { None }
}

fn int(row: &Row, column: &str) -> Option<i64> {
    match row.get(column) {
        Some(Field::Long(number) | Field::TimestampMillis(number)) => Some(*number),
        _ => None,
    }
}

fn export(paths: &[&str], format: &str, out: &Path) -> std::process::Output {
    let mut args = vec!["export", "--format", format, "--out", out.to_str().expect("UTF-8")];
    args.extend(paths);
    run(&args)
}

#[test]
fn tables_hold_the_numbers_of_the_report() {
    let out = tempfile::tempdir().expect("a folder");
    let paths = [path("v5e_gpt_m_oom"), path("v5e_mlp_f32"), folder("ipu_over.cbor"), folder("pairs")];
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let output = export(&paths, "parquet", out.path());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("programs.parquet: "), "{}", stdout(&output));

    let programs = read(out.path(), Table::Programs);
    let buffers = read(out.path(), Table::Buffers);
    let events = read(out.path(), Table::Events);
    let findings = read(out.path(), Table::Findings);
    let report = run(&["report", "--format", "json", "--buffers", "--top", "0", paths[0]]);
    let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
    let spaces = report["profiles"][0]["programs"][0]["spaces"].as_array().expect("spaces");
    for space in spaces {
        let is_here = |row: &&Row| text(row, "file") == Some(paths[0]) && text(row, "space") == space["name"].as_str();
        let [row] = programs.iter().filter(is_here).collect::<Vec<_>>()[..] else { panic!("not one row: {space}") };
        for (column, key) in [
            ("capacity_bytes", "capacity_bytes"),
            ("allocated_bytes", "allocated_bytes"),
            ("over_by_bytes", "over_by_bytes"),
            ("always_live_bytes", "always_live_bytes"),
            ("peak_bytes", "peak_bytes"),
            ("reserved_peak_bytes", "reserved_peak_bytes"),
            ("padding_at_peak_bytes", "peak/padding_bytes"),
            ("fragmentation_bytes", "peak/fragmentation_bytes"),
            ("buffers", "buffer_count"),
            ("steps", "time_count"),
        ] {
            assert_eq!(
                int(row, column),
                space.pointer(&format!("/{key}")).and_then(Value::as_i64),
                "{column} of {}",
                space["name"]
            );
        }
        assert_eq!(text(row, "verdict"), space["verdict"].as_str());
        assert!(int(row, "file_time").is_some_and(|ms| ms > 1_500_000_000_000), "when the file was written");
        let here: Vec<&Row> = buffers.iter().filter(is_here).collect();
        assert_eq!(here.len() as u64, space["buffer_count"].as_u64().expect("a number"));
        let at_peak: i64 = here.iter().filter_map(|row| int(row, "at_peak_bytes")).sum();
        assert_eq!(Some(at_peak), space["peak"]["bytes"].as_i64(), "what stands at the peak of {}", space["name"]);
        let bytes = |rows: &mut dyn Iterator<Item = Option<i64>>| rows.flatten().sum::<i64>();
        let listed = space["buffers"].as_array().expect("buffers");
        for (column, key) in [("bytes", "bytes"), ("unpadded_bytes", "unpadded_bytes"), ("buffer_id", "id")] {
            let sum = bytes(&mut listed.iter().map(|row| row[key].as_i64()));
            assert_eq!(bytes(&mut here.iter().map(|row| int(row, column))), sum, "{column}");
        }
        let highest = events.iter().filter(is_here).filter_map(|row| int(row, "live_bytes")).max();
        assert!(highest.is_none() || highest == int(row, "peak_bytes"), "the highest event is the peak");
    }
    let rules = report["profiles"][0]["findings"].as_array().expect("findings");
    let rules: Vec<_> = rules.iter().filter_map(|finding| finding["rule"].as_str()).collect();
    let here = findings.iter().filter(|row| text(row, "file") == Some(paths[0]));
    assert_eq!(here.filter_map(|row| text(row, "rule")).collect::<Vec<_>>(), rules);

    let keys: std::collections::HashSet<_> = programs.iter().filter_map(|row| text(row, "program_key")).collect();
    let joined = buffers.iter().all(|row| text(row, "program_key").is_some_and(|key| keys.contains(key)));
    assert!(joined && keys.len() >= 6, "every buffer joins its program: {}", keys.len());
    let tiles = read(out.path(), Table::Tiles);
    let of_tiles = programs.iter().find(|row| text(row, "kind") == Some("tiles")).expect("an IPU profile");
    let fullest = tiles.iter().filter(|row| text(row, "program_key") == text(of_tiles, "program_key"));
    let fullest = fullest.filter_map(|row| int(row, "bytes_including_gaps").or(int(row, "bytes"))).max();
    assert_eq!(fullest, int(of_tiles, "allocated_bytes"), "the fullest tile");
    assert!(!read(out.path(), Table::TileCategories).is_empty());
}

#[test]
fn every_format_has_the_same_rows_in_the_same_order_each_time() {
    let paths = [folder("pairs"), path("v5e_mlp_f32")];
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let mut rows: Vec<Vec<usize>> = Vec::new();
    let mut first: Option<Vec<u8>> = None;
    for format in ["parquet", "csv", "tsv", "json", "json"] {
        let out = tempfile::tempdir().expect("a folder");
        let output = export(&paths, format, out.path());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let left: Vec<_> = fs::read_dir(out.path()).expect("the folder").flatten().map(|e| e.file_name()).collect();
        assert_eq!(left.len(), Table::ALL.len(), "no draft is left: {left:?}");
        let count = |table: Table| {
            if format == "parquet" {
                return read(out.path(), table).len();
            }
            let bytes = fs::read(out.path().join(format!("{table}.{format}"))).expect("the table");
            let text = String::from_utf8(bytes).expect("UTF-8");
            if format == "json" {
                for line in text.lines() {
                    let row: Map<String, Value> = serde_json::from_str(line).expect("an object on each line");
                    assert_eq!(row.len(), table.columns().len());
                }
                return text.lines().count();
            }
            // Quoted line breaks are in the middle of a record, which ends with CR LF.
            let records = if format == "csv" { text.matches("\r\n").count() } else { text.lines().count() };
            records - 1
        };
        rows.push(Table::ALL.into_iter().map(count).collect());
        if format == "json" {
            let bytes = fs::read(out.path().join("buffers.json")).expect("the table");
            assert!(first.get_or_insert_with(|| bytes.clone()) == &bytes, "another run, another order");
        }
    }
    assert!(rows[0][0] > 0 && rows.iter().all(|other| *other == rows[0]), "{rows:?}");
}

#[test]
fn what_cannot_be_read_is_listed_and_the_rest_is_written() {
    let out = tempfile::tempdir().expect("a folder");
    let bad = out.path().join("cut.hlo.pb");
    let whole = fs::read(path("v5e_mlp_f32")).expect("readable");
    fs::write(&bad, &whole[..whole.len() / 3]).expect("written");
    let good = path("v5e_mlp_f32");
    let tables = out.path().join("tables");
    let output = export(&["/nonexistent.pb", bad.to_str().expect("UTF-8"), &good], "parquet", &tables);
    assert_eq!(output.status.code(), Some(3));
    let errors = read(&tables, Table::Errors);
    let files: Vec<_> = errors.iter().filter_map(|row| text(row, "file")).collect();
    assert_eq!(files, ["/nonexistent.pb", bad.to_str().expect("UTF-8")]);
    for file in files {
        assert!(stderr(&output).contains(file), "{}", stderr(&output));
    }
    assert!(read(&tables, Table::Programs).iter().any(|row| text(row, "file") == Some(&good)));
    let output = export(&[&good], "parquet", &bad);
    assert_eq!(output.status.code(), Some(3), "a file stands where the folder should be");
    let only = out.path().join("only");
    let only_text = only.to_str().expect("UTF-8");
    let output = run(&["export", &good, "--out", only_text, "--tables", "programs,findings"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(fs::read_dir(&only).expect("the folder").count(), 2);
    assert_eq!(run(&["export", &good, "--out", only_text, "--tables", "nonsense"]).status.code(), Some(2));
    assert_eq!(run(&["export", &good]).status.code(), Some(2), "no folder to write to");
}

#[test]
fn the_schema_is_documented() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tables.md")).expect("the page");
    let output = run(&["export", "--schema"]);
    assert_eq!(stdout(&output), describe());
    assert!(page.ends_with(&describe()), "docs/tables.md must end with what `highwater export --schema` prints");
    let out = tempfile::tempdir().expect("a folder");
    export(&[&path("v5e_mlp_f32")], "parquet", out.path());
    for table in Table::ALL {
        let file = File::open(out.path().join(format!("{table}.parquet"))).expect("the table");
        let reader = SerializedFileReader::new(file).expect("Parquet");
        let metadata = reader.metadata().file_metadata();
        let schema = metadata.schema_descr();
        let found: Vec<_> = schema.columns().iter().map(|column| (column.name(), column.physical_type())).collect();
        let physical = |kind: Kind| match kind {
            Kind::Text => Physical::BYTE_ARRAY,
            Kind::Int | Kind::Time => Physical::INT64,
            Kind::Bool => Physical::BOOLEAN,
        };
        let expected: Vec<_> = table.columns().iter().map(|column| (column.name, physical(column.kind))).collect();
        assert_eq!(found, expected, "{table}");
        let values = metadata.key_value_metadata().expect("metadata");
        assert!(values.iter().any(|pair| pair.key == "schema" && pair.value.as_deref() == Some("highwater.dataset/1")));
    }
}
