//! A folder or an archive opens as a list of programs, grouped by module, worst first, within limits.

use std::fs;
use std::io::{Cursor, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use highwater::decode::DecodeError;
use highwater::open::{Collection, Opened, Target};
use highwater::source::Progress;

use crate::common;
use crate::xla_made;

/// A temporary folder for one test, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("highwater-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }
    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).expect("a folder");
        }
        fs::write(&path, bytes).expect("written");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn open(path: &Path) -> Result<Collection, DecodeError> {
    Collection::open(path, &Progress::default())
}

/// A dump that fits, and one that does not, with their companion files.
fn two_dumps() -> (PathBuf, PathBuf) {
    (common::sample_program("/v5e_mlp_f32/"), common::sample_program("/v5e_pad_cloud_oom/"))
}

/// A trace with the modules of three samples.
fn trace() -> Vec<u8> {
    let modules = ["/v5e_mlp_f32/", "/v6e_replicated_oom/", "/v6e_dlrm_repl_d3/"];
    let modules = modules.map(|part| common::bytes(&common::sample_program(part)).to_vec());
    xla_made::trace_of_modules(&[("jit_a", 1, &modules[0]), ("jit_b", 2, &modules[1]), ("jit_c", 3, &modules[2])])
}

fn all_files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("readable")
        .flatten()
        .filter(|entry| entry.path().is_file())
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).expect("readable")))
        .collect();
    files.sort();
    files
}

fn lines(session: &Collection) -> Vec<String> {
    session
        .entries
        .iter()
        .map(|entry| {
            let capacity = entry.capacity().map_or_else(|| "?".to_owned(), |capacity| capacity.exact());
            format!(
                "{} [{}] {} of {capacity}, {} others",
                entry.name,
                entry.group,
                entry.needs().exact(),
                entry.others.len()
            )
        })
        .collect()
}

fn tar_of(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, format!("dump/{name}"), &bytes[..]).expect("appended");
    }
    builder.into_inner().expect("finished")
}

fn zip_of(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        writer.start_file(format!("dump/{name}"), zip::write::SimpleFileOptions::default()).expect("started");
        writer.write_all(bytes).expect("written");
    }
    writer.finish().expect("finished").into_inner()
}

#[test]
fn folders_and_archives_list_the_same() {
    let (fits, over) = two_dumps();
    let folder = Folder::new("same");
    let mut files = Vec::new();
    for (case, dump) in [("a", &fits), ("b", &over)] {
        for (name, bytes) in all_files(dump.parent().expect("a folder")) {
            files.push((format!("{case}/{name}"), bytes));
        }
    }
    for (name, bytes) in &files {
        folder.file(&format!("dump/{name}"), bytes);
    }
    let list = |path: &Path| {
        let mut session = open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        session.sort_worst_first();
        for entry in &session.entries {
            let profile = entry.open(&Progress::default()).unwrap_or_else(|e| panic!("{}: {e}", entry.file));
            assert!(!profile.programs.is_empty(), "{}", entry.file);
        }
        lines(&session).into_iter().map(|line| line.replace("[dump/", "[")).collect::<Vec<_>>()
    };
    let expected = list(&folder.0);
    // The program that does not fit comes first; each module is one line.
    assert_eq!(expected.len(), 2, "{expected:#?}");
    assert!(expected[0].contains("[b]") && expected[1].contains("[a]"), "{expected:#?}");
    assert!(expected[0].contains("16,911,433,728 B"), "{expected:#?}");
    let tar = tar_of(&files);
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&tar).expect("written");
    for (name, bytes) in [
        ("x.zip", zip_of(&files)),
        ("x.tar", tar.clone()),
        ("x.tar.gz", gz.finish().expect("finished")),
        ("x.tar.zst", zstd::stream::encode_all(&tar[..], 1).expect("packed")),
        ("unknown.bin", tar.clone()),
    ] {
        let packed = Folder::new(&format!("packed-{name}"));
        let path = packed.file(name, &bytes);
        assert!(Collection::is_collection(&path), "{name}");
        assert_eq!(list(&path), expected, "{name}");
    }
}

#[test]
fn error_texts_go_to_the_module_they_name() {
    let (fits, over) = two_dumps();
    let folder = Folder::new("errors");
    let bytes = fs::read(&fits).expect("readable");
    folder.file("module_0001.jit_a.after_optimizations.hlo.pb", &bytes);
    folder.file("module_0002.jit_ab.after_optimizations.hlo.pb", &fs::read(&over).expect("readable"));
    let error = "RESOURCE_EXHAUSTED: Ran out of memory. HLO module: jit_ab.\n";
    folder.file("run.err.txt", error.as_bytes());
    let session = open(&folder.0).expect("a session");
    let with: Vec<&str> = session
        .entries
        .iter()
        .filter(|entry| entry.companions().iter().any(|member| member.file_name() == "run.err.txt"))
        .map(|entry| entry.name.as_str())
        .collect();
    assert_eq!(with, ["jit_ab"]);
}

#[test]
fn a_message_about_another_module_is_not_put_to_the_only_one_there_is() {
    let folder = Folder::new("another-module");
    let dump = common::sample_program("/v5e_gpt_m_oom/");
    folder.file(dump.file_name().and_then(|name| name.to_str()).expect("a name"), &fs::read(&dump).expect("a sample"));
    let message = |module: &str| {
        format!(
            "Ran out of memory on HBM, the total memory required for HLO temporaries (62.89G) exceeds available HBM (15.75G). HLO module: {module}.\n"
        )
    };
    folder.file("err.log", message("jit_other").as_bytes());
    assert_eq!(open(&folder.0).expect("a list").entries.len(), 2, "the message stands alone");
    folder.file("err.log", message("jit_train_step").as_bytes());
    assert_eq!(open(&folder.0).expect("a list").entries.len(), 1, "it belongs to the dump");
}

#[test]
fn texts_without_a_message_are_no_programs() {
    let folder = Folder::new("silent-texts");
    let dump = common::sample_program("/v5e_mlp_f32/");
    folder.file(dump.file_name().and_then(|name| name.to_str()).expect("a name"), &fs::read(&dump).expect("a sample"));
    folder.file("README.md", b"How these dumps were made.\n");
    folder.file("settings.json", br#"{"batch": 8, "hosts": ["a", "b"]}"#);
    folder.file("worker.txt", b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n");
    let session = open(&folder.0).expect("a list");
    assert_eq!(session.entries.len(), 2, "{:?}", lines(&session));
    assert_eq!(session.notes, ["2 text files, such as README.md, have no out-of-memory message and are left out"]);
    let only = Folder::new("only-texts");
    only.file("README.md", b"Nothing here.\n");
    assert_eq!(open(&only.0).expect("a list").entries.len(), 1, "where there is nothing else, it is shown");
}

#[test]
fn five_hundred_modules_list_within_a_second() {
    let (fits, _) = two_dumps();
    let folder = Folder::new("many");
    let bytes = fs::read(&fits).expect("readable");
    for module in 0..500 {
        folder.file(&format!("module_{module:04}.jit_step_{module}.after_optimizations.hlo.pb"), &bytes);
        for report in ["buffer-assignment.txt", "live-range.txt", "memory-usage-report.txt"] {
            folder
                .file(&format!("module_{module:04}.jit_step_{module}.after_optimizations-{report}"), b"not looked at");
        }
    }
    let start = Instant::now();
    let mut session = open(&folder.0).expect("a session");
    let listed = start.elapsed();
    session.sort_worst_first();
    let sorted = start.elapsed();
    println!("500 modules: listed after {listed:?}, sorted after {sorted:?}");
    assert_eq!(session.entries.len(), 500);
    assert!(listed.as_secs_f64() < 1.0, "{listed:?}");
}

#[test]
fn a_trace_lists_its_programs() {
    let folder = Folder::new("trace");
    let bytes = trace();
    for host in ["host-a", "host-b"] {
        folder.file(&format!("plugins/profile/run1/{host}.xplane.pb"), &bytes);
    }
    let session = open(&folder.0).expect("a session");
    let programs: Vec<String> = session.entries.iter().map(|entry| format!("{}:{}", entry.group, entry.name)).collect();
    assert_eq!(programs.len(), 6, "{programs:?}");
    assert!(programs[0].starts_with("plugins/profile/run1/host-a:"), "{programs:?}");
}

#[test]
fn hostile_archives_are_refused_with_a_message() {
    let (fits, _) = two_dumps();
    let dump = fs::read(&fits).expect("readable");
    let folder = Folder::new("hostile");

    // Paths that lead outside, links, and one valid file.
    let mut builder = tar::Builder::new(Vec::new());
    let mut add = |path: &[u8], kind: tar::EntryType, bytes: &[u8]| {
        let mut header = tar::Header::new_old();
        header.as_old_mut().name[..path.len()].copy_from_slice(path);
        header.set_entry_type(kind);
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        if kind.is_symlink() {
            header.set_link_name("/etc/passwd").expect("a name");
        }
        header.set_cksum();
        builder.append(&header, bytes).expect("appended");
    };
    add(b"../../evil.hlo.pb", tar::EntryType::Regular, &dump);
    add(b"/abs.hlo.pb", tar::EntryType::Regular, &dump);
    add(b"link.hlo.pb", tar::EntryType::Symlink, b"");
    add(b"good.hlo.pb", tar::EntryType::Regular, &dump);
    let mut tar = builder.into_inner().expect("finished");
    // The old header has no magic number; the first entry decides the format.
    tar[257..263].copy_from_slice(b"ustar\0");
    tar[263..265].copy_from_slice(b"00");
    let sum: u32 =
        tar[..512].iter().enumerate().map(|(i, &b)| if (148..156).contains(&i) { 32 } else { u32::from(b) }).sum();
    tar[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let session = open(&folder.file("paths.tar", &tar)).expect("one file is good");
    assert_eq!(session.entries.len(), 1);
    let notes = session.notes.join("\n");
    assert!(notes.contains("2 entries with unsafe or invalid paths") && notes.contains("1 link"), "{notes}");

    // A bomb: a gigabyte of zeros in a member that claims to be small is not unpacked beyond the ratio limit.
    let zeros = vec![0u8; 64 << 20];
    let mut bomb = zip_of(&[("a.hlo.pb".to_owned(), zeros)]);
    let session = open(&folder.file("bomb.zip", &bomb));
    assert!(session.is_err(), "nothing in it is a profile");

    // Overlapping entries: the same bytes claimed again and again.
    let entries: Vec<(String, Vec<u8>)> = (0..4).map(|i| (format!("{i}.hlo.pb"), vec![b'x'; 4096])).collect();
    bomb = zip_of(&entries);
    // Every entry in the directory claims a megabyte of compressed bytes.
    let mut at = 0;
    while let Some(found) = bomb[at..].windows(4).position(|window| window == b"PK\x01\x02") {
        at += found;
        bomb[at + 20..at + 24].copy_from_slice(&(1u32 << 20).to_le_bytes());
        at += 4;
    }
    let error = open(&folder.file("overlap.zip", &bomb)).expect_err("refused").to_string();
    assert!(error.contains("overlap") || error.contains("refused"), "{error}");

    // An archive in an archive is listed, not opened.
    let nested = zip_of(&[("inner.zip".to_owned(), zip_of(&entries)), ("good.hlo.pb".to_owned(), dump.clone())]);
    let session = open(&folder.file("nested.zip", &nested)).expect("one file is good");
    assert!(session.notes.iter().any(|note| note.contains("nested archive")), "{:?}", session.notes);

    // Truncated.
    let mut cut = tar_of(&[("good.hlo.pb".to_owned(), dump.clone()), ("more.hlo.pb".to_owned(), dump)]);
    cut.truncate(cut.len() * 2 / 3);
    let _ = open(&folder.file("cut.tar", &cut));
    let mut cut_zip = zip_of(&entries);
    cut_zip.truncate(cut_zip.len() / 2);
    assert!(open(&folder.file("cut.zip", &cut_zip)).is_err());
}

/// A hand-made tar entry with any kind and any claimed size.
fn tar_entry(name: &str, kind: tar::EntryType, claimed: u64, bytes: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_size(claimed);
    header.set_mode(0o644);
    header.set_cksum();
    let mut entry = header.as_bytes().to_vec();
    entry.extend(bytes);
    entry.resize(entry.len().next_multiple_of(512), 0);
    entry
}

#[test]
fn long_names_of_a_tar_are_read_and_endless_ones_are_not() {
    let (fits, _) = two_dumps();
    let dump = fs::read(&fits).expect("readable");
    let folder = Folder::new("names");
    let deep = format!("{}/module_0001.jit_deep.after_optimizations.hlo.pb", "a_folder_of_some_length/".repeat(12));
    let gnu = tar_of(&[(deep.clone(), dump.clone())]);
    let record = |key: &str, value: &str| {
        let rest = format!(" {key}={value}\n");
        let length =
            (1..10_000usize).find(|length| length.to_string().len() + rest.len() == *length).expect("a length");
        format!("{length}{rest}")
    };
    let described = format!("{}{}", record("mtime", "1.5"), record("path", &deep));
    let mut pax = tar_entry("PaxHeaders/x", tar::EntryType::XHeader, described.len() as u64, described.as_bytes());
    pax.extend(tar_entry("short", tar::EntryType::Regular, dump.len() as u64, &dump));
    for (name, bytes) in [("gnu.tar", &gnu), ("pax.tar", &pax)] {
        let packed = zstd::stream::encode_all(&bytes[..], 1).expect("packed");
        for path in [folder.file(name, bytes), folder.file(&format!("{name}.zst"), &packed)] {
            let session = open(&path).expect("a session");
            let names: Vec<&str> = session.entries.iter().map(|entry| entry.name.as_str()).collect();
            assert_eq!(names, ["jit_deep"], "{}", path.display());
            assert!(session.entries[0].group.ends_with("a_folder_of_some_length"), "{}", session.entries[0].group);
        }
    }
    // A name of 64 MiB is ignored; entries after it are listed.
    for kind in [tar::EntryType::GNULongName, tar::EntryType::XHeader, tar::EntryType::GNULongLink] {
        let mut bytes = tar_entry("x", kind, 64 << 20, &vec![b'a'; 64 << 20]);
        bytes.extend(tar_entry("a.hlo.pb", tar::EntryType::Regular, dump.len() as u64, &dump));
        bytes.extend(tar_entry("good.hlo.pb", tar::EntryType::Regular, dump.len() as u64, &dump));
        let packed = zstd::stream::encode_all(&bytes[..], 1).expect("packed");
        for path in [folder.file("endless.tar", &bytes), folder.file("endless.tar.zst", &packed)] {
            let session = open(&path).expect("one file is good");
            assert!(session.entries.iter().any(|entry| entry.file == "good.hlo.pb"), "{kind:?} {}", path.display());
            let lost = session.notes.iter().any(|note| note.contains("1 entry with a damaged or overlong name"));
            assert_eq!(lost, kind != tar::EntryType::GNULongLink, "{kind:?} {:?}", session.notes);
        }
    }
}

#[test]
fn sizes_that_lie_cost_nothing_and_what_came_before_stays() {
    let (fits, _) = two_dumps();
    let dump = fs::read(&fits).expect("readable");
    let folder = Folder::new("lies");
    let mut bytes = tar_entry("good.hlo.pb", tar::EntryType::Regular, dump.len() as u64, &dump);
    bytes.extend(tar_entry("huge.hlo.pb", tar::EntryType::Regular, 1 << 30, b"little"));
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&bytes).expect("written");
    let gz = gz.finish().expect("finished");
    for path in [folder.file("lies.tar", &bytes), folder.file("lies.tar.gz", &gz)] {
        let session = open(&path).expect("one file is good");
        let good = session.entries.iter().find(|entry| entry.file == "good.hlo.pb").expect("what came before");
        assert!(good.open(&Progress::default()).is_ok(), "{}", path.display());
        if path.ends_with("lies.tar.gz") {
            assert!(session.notes.iter().any(|note| note.contains("damaged")), "{:?}", session.notes);
        }
    }
    // A higher ratio than that of any real file.
    let mut zeros = dump;
    zeros.resize(256 << 20, 0);
    let bomb = zstd::stream::encode_all(&zeros[..], 1).expect("packed");
    assert!(bomb.len() < 1 << 20);
    let error = highwater::open::open_path(&folder.file("x.hlo.pb.zst", &bomb), &Progress::default());
    let error = error.expect_err("refused").to_string();
    assert!(error.contains("too large"), "{error}");
}

#[cfg(unix)]
#[test]
fn what_is_no_file_in_a_folder_is_never_opened() {
    let (fits, _) = two_dumps();
    let folder = Folder::new("special");
    let name = "module_0001.jit_a.after_optimizations.hlo.pb";
    folder.file(name, &fs::read(&fits).expect("readable"));
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, folder.0.join(name)).expect("linked");
    link("/dev/zero", "module_0002.jit_zero.after_optimizations.hlo.pb");
    link(".", "loop");
    link("nowhere", "module_0003.jit_gone.after_optimizations.hlo.pb");
    let pipe = folder.0.join("module_0004.jit_pipe.after_optimizations.hlo.pb");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()), "no named pipe could be made");
    let session = open(&folder.0).expect("a session");
    let names: Vec<&str> = session.entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["jit_a"]);
    assert!(session.notes.iter().any(|note| note.contains("1 links to folders")), "{:?}", session.notes);
    // Opened on its own, the file looks for companion reports, and must not wait for the pipe either.
    let profile = highwater::open::open_path(&folder.0.join(name), &Progress::default()).expect("a profile");
    assert_eq!(profile.programs.len(), 1);
}

#[test]
fn cancelling_stops_the_listing() {
    let (fits, _) = two_dumps();
    let progress = Progress::default();
    progress.cancel();
    let result = Collection::open(fits.parent().expect("a folder"), &progress);
    assert!(result.is_err_and(|error| error.is_cancelled()));
}

#[test]
fn the_only_program_of_a_trace_is_decoded_with_it() {
    let folder = Folder::new("only-program");
    let bytes = common::bytes(&common::sample_program("/v5e_mlp_f32/"));
    let trace = folder.file("one.xplane.pb", &xla_made::trace_of_modules(&[("jit_a", 1, &bytes)]));
    let progress = Progress::default();
    let opened = Target::Path(trace).open(&progress).and_then(|opened| opened.listed(&[], &progress));
    let Ok(Opened::Profile(profile)) = opened else { panic!("{opened:?}") };
    assert_eq!((profile.programs.len(), profile.modules.len()), (1, 1));
}
