//! One input: its origin, its first bytes for format detection, and its full contents, loaded on demand.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use flate2::bufread::MultiGzDecoder;

use super::bytes::{Filling, SharedBytes};
use super::error::SourceError;
use super::progress::{Progress, Stage};
use super::unpack::{self, AtCut};

/// Number of leading bytes a decoder sees during format detection.
pub const HEAD_BYTES: usize = 64 << 10;

/// Largest input read into memory, in bytes. The README states the same figure.
pub const MAX_IN_MEMORY: u64 = 4 << 30;

/// A compressed file may unpack to this many bytes plus [`MAX_RATIO`] times its size; beyond that it is taken for a
/// decompression bomb. Real dumps compress about 10:1, highly repetitive text about 100:1.
const UNPACKED_BASE: u64 = 64 << 20;

/// See [`UNPACKED_BASE`].
const MAX_RATIO: u64 = 200;

/// Files of at least this many bytes are read by two threads.
#[cfg(unix)]
const PARALLEL_FROM: usize = 8 << 20;

/// Bytes read between checks for cancellation.
const STEP: usize = 4 << 20;

/// How an input is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// Uncompressed.
    None,
    /// Gzip.
    Gzip,
    /// Zstandard.
    Zstd,
}

#[derive(Debug)]
enum Origin {
    Path(PathBuf),
    Memory(SharedBytes),
}

/// An input file or byte buffer.
#[derive(Debug)]
pub struct Input {
    name: String,
    origin: Origin,
    packing: Packing,
    head: Vec<u8>,
    all: OnceLock<SharedBytes>,
    /// Where the compressed file was found to end early.
    cut: OnceLock<u64>,
}

impl Input {
    /// Opens a file and reads and decompresses its first [`HEAD_BYTES`].
    ///
    /// # Errors
    /// If it cannot be read, is a folder, or is empty.
    pub fn open(path: &Path) -> Result<Self, SourceError> {
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder").into());
        }
        let mut raw = Vec::new();
        file.take(HEAD_BYTES as u64).read_to_end(&mut raw)?;
        Self::with_head(path.display().to_string(), Origin::Path(path.to_owned()), raw)
    }

    /// Wraps bytes already in memory: standard input, dropped bytes, pasted text.
    ///
    /// # Errors
    /// If `bytes` is empty.
    pub fn from_bytes(name: impl Into<String>, bytes: SharedBytes) -> Result<Self, SourceError> {
        let raw = bytes[..bytes.len().min(HEAD_BYTES)].to_vec();
        Self::with_head(name.into(), Origin::Memory(bytes), raw)
    }

    /// Reads all of a stream into memory.
    ///
    /// # Errors
    /// If reading fails, the stream is empty or longer than [`MAX_IN_MEMORY`], or `progress` was cancelled.
    pub fn from_reader(name: impl Into<String>, reader: impl Read, progress: &Progress) -> Result<Self, SourceError> {
        progress.begin(Stage::Reading, 0);
        let bytes = read_all(reader, 0, MAX_IN_MEMORY, progress)?;
        Self::from_bytes(name, bytes)
    }

    fn with_head(name: String, origin: Origin, raw: Vec<u8>) -> Result<Self, SourceError> {
        if raw.is_empty() {
            return Err(SourceError::Empty);
        }
        let (packing, head) = if raw.starts_with(&[0x1f, 0x8b]) {
            let mut head = Vec::new();
            // A truncated or damaged file may still have a readable head; `load` reports the error.
            let _ = MultiGzDecoder::new(&raw[..]).take(HEAD_BYTES as u64).read_to_end(&mut head);
            (Packing::Gzip, head)
        } else if raw.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            (Packing::Zstd, zstd_head(&origin))
        } else {
            (Packing::None, raw)
        };
        Ok(Self { name, origin, packing, head, all: OnceLock::new(), cut: OnceLock::new() })
    }

    /// The path, or a label for an input in memory.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file's path; `None` for an input in memory.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.origin {
            Origin::Path(path) => Some(path),
            Origin::Memory(_) => None,
        }
    }

    /// The last component of the name.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.name.rsplit(['/', '\\']).next().unwrap_or(&self.name)
    }

    /// How it is compressed.
    #[must_use]
    pub const fn packing(&self) -> Packing {
        self.packing
    }

    /// Up to the first [`HEAD_BYTES`], decompressed.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Size in bytes: decompressed once loaded, otherwise as stored.
    #[must_use]
    pub fn size(&self) -> u64 {
        if let Some(bytes) = self.all.get() {
            return bytes.len() as u64;
        }
        match &self.origin {
            Origin::Memory(bytes) => bytes.len() as u64,
            Origin::Path(path) => path.metadata().map_or(0, |metadata| metadata.len()),
        }
    }

    /// Where the compressed file ends early, once it has been read to there: how many bytes of it there are.
    #[must_use]
    pub fn cut_at(&self) -> Option<u64> {
        self.cut.get().copied()
    }

    /// A stream of the decompressed bytes, for formats that do not need all of them in memory. Where a compressed file
    /// is cut, it fails.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn reader(&self) -> Result<Box<dyn Read + Send + '_>, SourceError> {
        self.stream(AtCut::Fail)
    }

    /// As [`Self::reader`], but where a compressed file is cut the stream ends, and [`Self::cut_at`] says so.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn reader_to_cut(&self) -> Result<Box<dyn Read + Send + '_>, SourceError> {
        self.stream(AtCut::End)
    }

    fn stream(&self, at_cut: AtCut) -> Result<Box<dyn Read + Send + '_>, SourceError> {
        if self.cut.get().is_none()
            && let Some(bytes) = self.all.get()
        {
            return Ok(Box::new(&bytes[..]));
        }
        let (origin, cut) = (&self.origin, &self.cut);
        Ok(match (origin, self.packing) {
            (Origin::Memory(bytes), Packing::None) => Box::new(&bytes[..]),
            (Origin::Memory(bytes), Packing::Gzip) => Box::new(unpack::gzip(&bytes[..], cut, at_cut)),
            (Origin::Memory(bytes), Packing::Zstd) => Box::new(unpack::zstd(&bytes[..], cut, at_cut)?),
            (Origin::Path(path), Packing::None) => Box::new(File::open(path)?),
            (Origin::Path(path), Packing::Gzip) => {
                Box::new(unpack::gzip(BufReader::new(File::open(path)?), cut, at_cut))
            }
            (Origin::Path(path), Packing::Zstd) => {
                Box::new(unpack::zstd(BufReader::new(File::open(path)?), cut, at_cut)?)
            }
        })
    }

    /// All bytes, decompressed; read on the first call and cached. Of a compressed file that is cut, what there is;
    /// [`Self::cut_at`] says so.
    ///
    /// # Errors
    /// If reading fails, the data is damaged or too large, or `progress` was cancelled.
    pub fn load(&self, progress: &Progress) -> Result<SharedBytes, SourceError> {
        if let Some(bytes) = self.all.get() {
            return Ok(bytes.clone());
        }
        let bytes = match (&self.origin, self.packing) {
            (Origin::Memory(bytes), Packing::None) => bytes.clone(),
            (Origin::Memory(bytes), Packing::Gzip) => self.unzip(bytes, progress)?,
            (_, Packing::Zstd) => {
                let (hint, limit) = (self.zstd_size(), unpacked_limit(self.size()));
                progress.begin(Stage::Reading, hint);
                read_all(self.reader_to_cut()?, hint.min(limit), limit, progress)?
            }
            (Origin::Path(path), Packing::None) => {
                let file = File::open(path)?;
                let size = file.metadata()?.len();
                if size > MAX_IN_MEMORY {
                    return Err(SourceError::TooLarge { size, limit: MAX_IN_MEMORY });
                }
                read_file(file, size, progress)?
            }
            (Origin::Path(path), Packing::Gzip) => {
                let file = File::open(path)?;
                let size = file.metadata()?.len();
                let packed = read_file(file, size, progress)?;
                self.unzip(&packed, progress)?
            }
        };
        Ok(self.all.get_or_init(|| bytes).clone())
    }

    /// Bytes that a Zstandard file unpacks to, as its first frame says; 0 where it does not. Only a hint.
    fn zstd_size(&self) -> u64 {
        /// The most that the head of a frame takes.
        const FRAME_HEAD: u64 = 18;
        let mut head = Vec::new();
        let read = match &self.origin {
            Origin::Memory(bytes) => (&bytes[..]).take(FRAME_HEAD).read_to_end(&mut head),
            Origin::Path(path) => File::open(path).and_then(|file| file.take(FRAME_HEAD).read_to_end(&mut head)),
        };
        read.ok().and_then(|_| zstd::zstd_safe::get_frame_content_size(&head).ok().flatten()).unwrap_or(0)
    }

    /// Decompresses gzip. The size in the trailer is only a hint: it is unverified and modulo 4 GiB.
    fn unzip(&self, packed: &[u8], progress: &Progress) -> Result<SharedBytes, SourceError> {
        let hint = packed.last_chunk::<4>().map_or(0, |trailer| u64::from(u32::from_le_bytes(*trailer)));
        let limit = unpacked_limit(packed.len() as u64);
        progress.begin(Stage::Reading, hint);
        read_all(unpack::gzip(packed, &self.cut, AtCut::End), hint.min(limit), limit, progress)
    }
}

/// The most bytes that `packed` compressed bytes may unpack to.
pub(super) fn unpacked_limit(packed: u64) -> u64 {
    MAX_IN_MEMORY.min(packed.saturating_mul(MAX_RATIO).saturating_add(UNPACKED_BASE))
}

/// The first decompressed bytes of a Zstandard file. Its first block may be longer than [`HEAD_BYTES`] when compressed,
/// so this reads from the origin.
fn zstd_head(origin: &Origin) -> Vec<u8> {
    let mut head = Vec::new();
    let limit = HEAD_BYTES as u64;
    // A truncated or damaged file may still have a readable head; `load` reports the error.
    let cut = OnceLock::new();
    let _ = match origin {
        Origin::Memory(bytes) => {
            unpack::zstd(&bytes[..], &cut, AtCut::End).and_then(|reader| reader.take(limit).read_to_end(&mut head))
        }
        Origin::Path(path) => File::open(path)
            .and_then(|file| unpack::zstd(BufReader::new(file), &cut, AtCut::End)?.take(limit).read_to_end(&mut head)),
    };
    head
}

/// Reads a file. Large files are read in two halves in parallel, as most of the time goes into faulting in pages.
fn read_file(mut file: File, size: u64, progress: &Progress) -> Result<SharedBytes, SourceError> {
    progress.begin(Stage::Reading, size);
    let mut filling = Filling::new(usize::try_from(size).unwrap_or(0));
    #[cfg(unix)]
    {
        let whole = filling.whole();
        if whole.len() >= PARALLEL_FROM {
            let half = whole.len() / 2;
            let (front, back) = whole.split_at_mut(half);
            let (front_read, back_read) = std::thread::scope(|scope| {
                let other = scope.spawn(|| read_part(&file, back, half as u64, progress));
                let front_read = read_part(&file, front, 0, progress);
                (front_read, other.join().unwrap_or(Ok(0)))
            });
            let front_read = front_read?;
            // If the file was truncated meanwhile, it may end inside the first half.
            let count = if front_read < half { front_read } else { half + back_read? };
            filling.whole_filled(count);
            io::Seek::seek(&mut file, io::SeekFrom::Start(count as u64))?;
        }
    }
    fill(&mut filling, file, MAX_IN_MEMORY, progress)?;
    Ok(filling.finish())
}

/// Fills `space` from `offset` in the file; returns the number of bytes read.
#[cfg(unix)]
fn read_part(file: &File, space: &mut [u8], offset: u64, progress: &Progress) -> Result<usize, SourceError> {
    use std::os::unix::fs::FileExt as _;
    let mut done = 0;
    while done < space.len() {
        let end = space.len().min(done + STEP);
        match file.read_at(&mut space[done..end], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => {
                done += count;
                progress.advance(count as u64)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(done)
}

/// Reads to the end, at most `limit` bytes; `expected` is a guess.
pub(super) fn read_all(
    reader: impl Read,
    expected: u64,
    limit: u64,
    progress: &Progress,
) -> Result<SharedBytes, SourceError> {
    let mut filling = Filling::new(usize::try_from(expected).unwrap_or(0));
    fill(&mut filling, reader, limit, progress)?;
    Ok(filling.finish())
}

/// Reads the rest of a stream.
fn fill(filling: &mut Filling, mut reader: impl Read, limit: u64, progress: &Progress) -> Result<(), SourceError> {
    let mut read = |space: &mut [u8]| loop {
        match reader.read(space) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(SourceError::from(error)),
            Ok(count) => return Ok(count),
        }
    };
    loop {
        let count = if filling.is_full() {
            // Usually the end of the input; probe one byte before growing the buffer.
            let mut more = [0];
            let count = read(&mut more)?;
            if count == 0 {
                return Ok(());
            }
            filling.space(1)[..count].copy_from_slice(&more[..count]);
            filling.filled(1, count);
            count
        } else {
            let space = filling.space(STEP);
            let offered = space.len();
            let count = read(space)?;
            filling.filled(offered, count);
            count
        };
        if count == 0 {
            return Ok(());
        }
        if filling.len() as u64 > limit {
            return Err(SourceError::TooLarge { size: filling.len() as u64, limit });
        }
        progress.advance(count as u64)?;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn gz(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).expect("writing to memory");
        encoder.finish().expect("writing to memory")
    }

    #[test]
    fn gzip_is_decompressed_transparently() {
        let data: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
        let input = Input::from_bytes("x.gz", gz(&data).into()).expect("not empty");
        assert_eq!(input.packing(), Packing::Gzip);
        assert!(input.head().len() > HEAD_BYTES / 2 && data.starts_with(input.head()));
        let mut streamed = Vec::new();
        input.reader().expect("a stream").read_to_end(&mut streamed).expect("whole");
        assert!(streamed == data);
        assert!(input.load(&Progress::default()).expect("whole")[..] == data[..]);
        assert_eq!(input.size(), data.len() as u64);
    }

    #[test]
    fn cut_compressed_data_is_read_to_the_cut() {
        let data: Vec<u8> = (0..600_000u32).flat_map(|word| word.wrapping_mul(word).to_le_bytes()).collect();
        for (name, mut packed) in
            [("gzip", gz(&data)), ("zstd", zstd::stream::encode_all(&data[..], 1).expect("in memory"))]
        {
            packed.truncate(packed.len() / 2);
            let at = packed.len() as u64;
            let input = Input::from_bytes("x", packed.into()).expect("not empty");
            let error = input.reader().and_then(|mut reader| Ok(reader.read_to_end(&mut Vec::new())?));
            let error = error.expect_err("cut").to_string();
            assert!(error.contains(name) && error.contains("is cut"), "{error}");
            let mut streamed = Vec::new();
            input.reader_to_cut().expect("a stream").read_to_end(&mut streamed).expect("what there is");
            let bytes = input.load(&Progress::default()).expect("what there is");
            assert!(bytes.len() > data.len() / 4 && data.starts_with(&bytes) && streamed == bytes[..], "{name}");
            assert_eq!(input.cut_at(), Some(at), "{name}");
        }
    }

    #[test]
    fn damaged_compressed_data_is_not_taken_for_cut() {
        let data: Vec<u8> =
            (0..100_000u32).flat_map(|row| format!("row {row}: {} bytes\n", row / 7 * 4096).into_bytes()).collect();
        for (name, mut packed) in
            [("gzip", gz(&data)), ("zstd", zstd::stream::encode_all(&data[..], 1).expect("in memory"))]
        {
            let (middle, size) = (packed.len() / 2, packed.len());
            packed[middle..middle + 4000].fill(0xff);
            let input = Input::from_bytes("x", packed.into()).expect("not empty");
            let Err(SourceError::Packed { format, offset, .. }) = input.load(&Progress::default()) else {
                panic!("{name}: damaged")
            };
            assert_eq!(format, name);
            assert!(offset <= size as u64, "{name}: byte {offset} of {size}");
            assert_eq!(input.cut_at(), None, "{name}");
        }
        let mut corrupt = gz(b"short");
        let at = corrupt.len() - 4;
        corrupt[at..].copy_from_slice(&u32::MAX.to_le_bytes());
        let input = Input::from_bytes("x.gz", corrupt.into()).expect("not empty");
        let error = input.load(&Progress::default()).expect_err("damaged").to_string();
        assert!(error.contains("gzip data is damaged") && error.contains("of the compressed data"), "{error}");
    }

    #[test]
    fn empty_and_missing_inputs_are_errors() {
        assert!(matches!(Input::from_bytes("x", Vec::new().into()), Err(SourceError::Empty)));
        assert!(matches!(Input::open(Path::new("/nonexistent/x")), Err(SourceError::Io(_))));
    }

    #[test]
    fn cancelling_stops_reading() {
        let progress = Progress::default();
        progress.cancel();
        let result = Input::from_reader("-", io::repeat(1), &progress);
        assert!(matches!(result, Err(SourceError::Cancelled)));
    }
}
