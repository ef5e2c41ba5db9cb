//! Comparing a picture of the window with the one that was looked at, and writing it small.

use std::fs;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use egui_kittest::{Harness, SnapshotOptions, SnapshotResults};
use image::ImageEncoder as _;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};

/// How far a pixel may be off (squared distance of colours as the eye sees them, 0 to 35,215), and how many may be off
/// further. The pictures are drawn by the program's own painter on the processor, in `f32`: another processor or
/// compiler rounds some antialiased edges by a level or two of 255, which is a distance below 2. A line that moves by a
/// pixel, or a text of another grey, is more than both.
const DISTANCE: f32 = 2.0;
const PIXELS: usize = 10;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots")
}

/// Compares what a window shows with `tests/snapshots/NAME.png`; with `UPDATE_SNAPSHOTS=1` writes it where it differs.
pub fn compare<State>(results: &mut SnapshotResults, harness: &mut Harness<'_, State>, name: &str) {
    let options = SnapshotOptions::new().threshold(DISTANCE).max_failed_pixels(PIXELS).output_path(folder());
    let path = folder().join(format!("{name}.png"));
    let before = fs::read(&path).ok();
    results.add(harness.try_snapshot_options(name, &options));
    if fs::read(&path).ok() != before {
        shrink(&path);
    }
}

/// Writes a picture again as small as it gets without losing anything: no transparency, the best packing.
fn shrink(path: &Path) {
    let picture = image::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())).to_rgb8();
    let file = fs::File::create(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let best = PngEncoder::new_with_quality(BufWriter::new(file), CompressionType::Best, FilterType::Adaptive);
    let (width, height) = picture.dimensions();
    let written = best.write_image(picture.as_raw(), width, height, image::ExtendedColorType::Rgb8);
    written.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}
