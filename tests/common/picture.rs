//! Compares pictures of the window with the reviewed ones, and writes new ones as small PNG files.

use std::fs;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use egui_kittest::{Harness, SnapshotOptions, SnapshotResults};
use image::ImageEncoder as _;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};

/// Tolerance: maximum difference of a pixel (squared perceptual colour distance, 0 to 35,215), and number of pixels
/// that may exceed it. Pictures are rendered on the CPU in `f32`: another CPU or compiler may round antialiased edges
/// differently by one or two of 255 levels, a distance below 2. A line that moves by a pixel, or text of another grey,
/// exceeds both limits.
const DISTANCE: f32 = 2.0;
const PIXELS: usize = 10;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots")
}

/// Compares a window with `tests/snapshots/NAME.png`; with `UPDATE_SNAPSHOTS=1`, rewrites the file if it differs.
pub fn compare<State>(results: &mut SnapshotResults, harness: &mut Harness<'_, State>, name: &str) {
    let options = SnapshotOptions::new().threshold(DISTANCE).max_failed_pixels(PIXELS).output_path(folder());
    let path = folder().join(format!("{name}.png"));
    let before = fs::read(&path).ok();
    results.add(harness.try_snapshot_options(name, &options));
    if fs::read(&path).ok() != before {
        shrink(&path);
    }
}

/// Recompresses a picture losslessly: no alpha channel, best compression.
fn shrink(path: &Path) {
    let picture = image::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())).to_rgb8();
    let file = fs::File::create(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let best = PngEncoder::new_with_quality(BufWriter::new(file), CompressionType::Best, FilterType::Adaptive);
    let (width, height) = picture.dimensions();
    let written = best.write_image(picture.as_raw(), width, height, image::ExtendedColorType::Rgb8);
    written.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}
