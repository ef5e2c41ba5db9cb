//! Pictures: PNG files.

use std::path::Path;

/// Writes an image of `size` (width, height) pixels, four bytes each (RGBA).
///
/// # Errors
/// If the file cannot be written; the error is a sentence.
pub fn write_png(path: &Path, size: [usize; 2], rgba: &[u8]) -> Result<(), String> {
    let [width, height] = size.map(|side| u32::try_from(side).unwrap_or(u32::MAX));
    image::save_buffer_with_format(path, rgba, width, height, image::ExtendedColorType::Rgba8, image::ImageFormat::Png)
        .map_err(|error| error.to_string())
}
