//! A hash by which a session notices that a profile has changed. It is no protection against somebody who wants to
//! deceive.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::source::{Progress, Tree};

/// FNV-1a with 64 bits: the same on every machine and in every version.
struct Fnv(u64);

impl Fnv {
    const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// `fnv1a64:` and 16 digits: the hash of a file's bytes, or of the paths and sizes of a folder's files.
///
/// # Errors
/// If it cannot be read.
pub fn content_hash(path: &Path) -> io::Result<String> {
    let mut hash = Fnv::new();
    if path.is_dir() {
        let tree = Tree::folder(path, &Progress::default()).map_err(io::Error::other)?;
        let mut files: Vec<(String, u64)> =
            tree.members.into_iter().map(|member| (member.path, member.bytes)).collect();
        files.sort();
        for (name, bytes) in files {
            hash.add(name.as_bytes());
            hash.add(&bytes.to_le_bytes());
        }
    } else {
        let mut file = File::open(path)?;
        let mut buffer = vec![0; 1 << 18];
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                read => hash.add(&buffer[..read]),
            }
        }
    }
    Ok(format!("fnv1a64:{:016x}", hash.0))
}
