//! Keeps the dump folder of a long run small while it grows: of each program the file with its buffer assignment and the
//! description of the device, and of all programs those that need most. Works only in a folder that we have made.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use highwater::decode::hlo;
use highwater::model::{Bytes, MemorySpace};
use highwater::open::Watch;
use highwater::source::DumpName;

/// The files of one program.
#[derive(Debug, Default)]
struct Program {
    /// What it needs of the main memory; `None` until its buffer assignment has come.
    needs: Option<Bytes>,
    /// Its files, and their sizes.
    kept: Vec<(PathBuf, u64)>,
}

impl Program {
    fn bytes(&self) -> u64 {
        self.kept.iter().map(|file| file.1).sum()
    }
}

/// The programs of a run so far.
#[derive(Debug)]
pub struct Tidy {
    watch: Watch,
    /// Most bytes that the folder may hold.
    keep: u64,
    /// By folder and name without the stage.
    programs: BTreeMap<(PathBuf, String), Program>,
    /// Files that go once the buffer assignment of their program has come, and their sizes.
    rest: Vec<(PathBuf, u64)>,
    /// Programs that were removed because others need more.
    dropped: usize,
}

impl Tidy {
    /// Starts with an empty folder.
    pub fn new(folder: &Path, keep: Bytes) -> Self {
        Self { watch: Watch::new(folder), keep: keep.0, programs: BTreeMap::new(), rest: Vec::new(), dropped: 0 }
    }

    /// Looks at what has come, and removes what is not needed.
    pub fn look(&mut self, has_ended: bool) {
        // A folder that cannot be listed now is listed at the next look.
        for path in self.watch.look(has_ended).unwrap_or_default() {
            self.take(path);
        }
        let rest = std::mem::take(&mut self.rest);
        for (path, bytes) in rest {
            if self.is_of_known_program(&path) {
                remove(&mut self.watch, &path);
            } else {
                self.rest.push((path, bytes));
            }
        }
        self.bound();
    }

    /// Looks for the last time; returns how many programs were removed because others need more.
    pub fn finish(mut self) -> usize {
        self.look(true);
        self.dropped
    }

    fn take(&mut self, path: PathBuf) {
        let (Some(name), Some(folder)) = (path.file_name().and_then(|name| name.to_str()), path.parent()) else {
            return;
        };
        let bytes = path.metadata().map_or(0, |data| data.len());
        let file = DumpName::parse(name);
        let kept = file.filter(|file| file.has_assignment() || file.tells_of_device());
        let Some(file) = kept else {
            let is_in =
                folder.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("module_"));
            if is_in || name.starts_with("module_") {
                self.rest.push((path, bytes));
            }
            return;
        };
        let program = self.programs.entry((folder.to_owned(), file.stem.clone())).or_default();
        if file.has_assignment() {
            let glance = hlo::glance_file(&path).unwrap_or_default();
            // One without an assignment has nothing over the others.
            if glance.has_buffer_assignment {
                program.needs = Some(glance.allocated_in(MemorySpace::HBM).unwrap_or_default());
            }
        }
        program.kept.push((path, bytes));
    }

    /// Whether a file, by its name or by the folder it is in, is of a program whose buffer assignment has come.
    fn is_of_known_program(&self, path: &Path) -> bool {
        let is_known = |folder: &Path, stem: &str| {
            self.programs.get(&(folder.to_owned(), stem.to_owned())).is_some_and(|program| program.needs.is_some())
        };
        let text = |name: Option<&std::ffi::OsStr>| name.and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let (name, Some(folder)) = (text(path.file_name()), path.parent()) else { return false };
        name.match_indices('.').any(|(dot, _)| is_known(folder, &name[..dot]))
            || folder.parent().is_some_and(|parent| is_known(parent, &text(folder.file_name())))
    }

    /// Removes the programs that need least until the others fit; never the one that needs most, and none that is still
    /// being compiled.
    fn bound(&mut self) {
        let rest: u64 = self.rest.iter().map(|file| file.1).sum();
        let mut total = rest + self.programs.values().map(Program::bytes).sum::<u64>();
        if total <= self.keep {
            return;
        }
        let known = self.programs.iter().filter_map(|(key, program)| Some((program.needs?, key.clone())));
        let mut known: Vec<_> = known.collect();
        known.sort();
        known.pop();
        for (_, key) in known {
            if total <= self.keep {
                break;
            }
            let Some(program) = self.programs.remove(&key) else { continue };
            total -= program.bytes();
            self.dropped += 1;
            for (path, _) in program.kept {
                remove(&mut self.watch, &path);
            }
        }
    }
}

fn remove(watch: &mut Watch, path: &Path) {
    // Somebody may have removed it before us.
    let _ = std::fs::remove_file(path);
    watch.forget(path);
    // A folder of one program's files goes with the last of them.
    if let Some(folder) = path.parent()
        && folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("module_"))
    {
        let _ = std::fs::remove_dir(folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module and a buffer assignment with one allocation of `needs` bytes, and the unknown field 20 of `weight`.
    fn program(needs: u8, weight: usize) -> Vec<u8> {
        let mut file = vec![0x0a, 3, 0x0a, 1, b'f', 0x1a, 6, 0x1a, 4, 8, 0, 0x10, needs];
        file.extend([0xa2, 1]);
        let mut rest = weight;
        while rest >= 0x80 {
            file.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        file.push(rest as u8);
        file.resize(file.len() + weight, 0);
        file
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("a folder");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_memory_does_not_need_goes_once_the_assignment_has_come() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).expect("written");
        let mut tidy = Tidy::new(folder.path(), Bytes(1 << 30));
        write("module_0001.jit_f.before_optimizations.hlo.pb", &program(1, 10));
        write("module_0001.jit_f.target_arguments.pb", &[8, 1]);
        write("notes.txt", b"not XLA's");
        tidy.look(false);
        tidy.look(false);
        assert_eq!(names(folder.path()).len(), 3, "its compilation may fail: this is all there is of it");
        write("module_0001.jit_f.after_optimizations.hlo.pb", &program(1, 10));
        tidy.look(false);
        tidy.look(false);
        write("module_0001.jit_f.after_codegen.hlo.pb", &program(1, 10));
        write("module_0001.jit_f.obj-file.fusion_kernel_module.o", b"code");
        write("module_0001.jit_f.fusion_kernel_module.ir-with-opt.ll", b"code");
        std::fs::create_dir(folder.path().join("module_0001.jit_f")).expect("a folder");
        write("module_0001.jit_f/module.mlir", b"text");
        tidy.look(true);
        let left =
            ["module_0001.jit_f.after_optimizations.hlo.pb", "module_0001.jit_f.target_arguments.pb", "notes.txt"];
        assert_eq!(names(folder.path()), left);
    }

    #[test]
    fn beyond_the_bound_the_worst_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        for (number, needs) in [(1, 20), (2, 90), (3, 10), (4, 50)] {
            let name = format!("module_000{number}.jit_f.after_optimizations.hlo.pb");
            std::fs::write(folder.path().join(name), program(needs, 1000)).expect("written");
        }
        let mut tidy = Tidy::new(folder.path(), Bytes(2100));
        tidy.look(true);
        assert_eq!(tidy.dropped, 2);
        let left = ["module_0002.jit_f.after_optimizations.hlo.pb", "module_0004.jit_f.after_optimizations.hlo.pb"];
        assert_eq!(names(folder.path()), left);
        let mut tidy = Tidy::new(folder.path(), Bytes(1));
        tidy.look(true);
        assert_eq!(names(folder.path()), left[..1], "the worst stays whatever its size");
    }
}
