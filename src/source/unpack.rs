//! Unpacks gzip and Zstandard, and tells a stream that ends early from a damaged one.

use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use super::error::SourceError;

/// Base-2 logarithm of the largest accepted Zstandard window in bytes; the `zstd` command has the same limit.
const ZSTD_WINDOW_LOG: u32 = 27;

/// What happens where a compressed stream ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AtCut {
    /// The unpacked data ends there too.
    End,
    /// Reading fails.
    Fail,
}

/// Unpacked gzip.
pub(super) fn gzip<'a>(packed: impl BufRead + Send + 'a, cut: &'a OnceLock<u64>, at_cut: AtCut) -> Unpacker<'a> {
    let packed = Counted::new(packed);
    let taken = Arc::clone(&packed.taken);
    Unpacker { inner: Box::new(MultiGzDecoder::new(packed)), format: "gzip", taken, unpacked: 0, cut, at_cut }
}

/// Unpacked Zstandard.
///
/// # Errors
/// If the decompressor cannot be started.
pub(super) fn zstd<'a>(
    packed: impl BufRead + Send + 'a,
    cut: &'a OnceLock<u64>,
    at_cut: AtCut,
) -> io::Result<Unpacker<'a>> {
    let packed = Counted::new(packed);
    let taken = Arc::clone(&packed.taken);
    let mut inner = zstd::stream::read::Decoder::with_buffer(packed)?;
    inner.window_log_max(ZSTD_WINDOW_LOG)?;
    Ok(Unpacker { inner: Box::new(inner), format: "zstd", taken, unpacked: 0, cut, at_cut })
}

/// A stream of unpacked bytes. Its errors say at which byte of the compressed stream they occurred.
pub(super) struct Unpacker<'a> {
    inner: Box<dyn Read + Send + 'a>,
    format: &'static str,
    /// Compressed bytes taken.
    taken: Arc<AtomicU64>,
    unpacked: u64,
    /// Where the compressed stream ended early is recorded here.
    cut: &'a OnceLock<u64>,
    at_cut: AtCut,
}

impl Read for Unpacker<'_> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let (format, offset) = match self.inner.read(space) {
            Ok(count) => {
                self.unpacked += count as u64;
                return Ok(count);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                let offset = self.taken.load(Ordering::Relaxed);
                let (format, why) = (self.format, error.to_string());
                return Err(io::Error::other(SourceError::Packed { format, why, offset, stream: "compressed" }));
            }
            Err(_) => (self.format, self.taken.load(Ordering::Relaxed)),
        };
        let offset = *self.cut.get_or_init(|| offset);
        match self.at_cut {
            AtCut::End if self.unpacked > 0 => Ok(0),
            _ => Err(io::Error::other(SourceError::Cut { format, offset })),
        }
    }
}

/// Counts the bytes taken from a reader.
struct Counted<R> {
    inner: R,
    taken: Arc<AtomicU64>,
}

impl<R> Counted<R> {
    fn new(inner: R) -> Self {
        Self { inner, taken: Arc::default() }
    }
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(space)?;
        self.taken.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.inner.consume(count);
        self.taken.fetch_add(count as u64, Ordering::Relaxed);
    }
}
