//! Pictures: PNG, as files and as bytes.

use std::path::Path;

/// Writes an image of `size` (width, height) pixels, four bytes each (RGBA).
///
/// # Errors
/// If the file cannot be written; the error is a sentence.
pub fn write_png(path: &Path, size: [usize; 2], rgba: &[u8]) -> Result<(), String> {
    std::fs::write(path, png(size, rgba)?).map_err(|error| error.to_string())
}

/// The same as the bytes of a PNG file.
///
/// # Errors
/// If the picture has no pixels, or fewer bytes than it should; the error is a sentence.
pub fn png(size: [usize; 2], rgba: &[u8]) -> Result<Vec<u8>, String> {
    use image::ImageEncoder as _;
    let [width, height] = size.map(|side| u32::try_from(side).unwrap_or(u32::MAX));
    let mut bytes = Vec::new();
    let encoder = image::codecs::png::PngEncoder::new(&mut bytes);
    let written = encoder.write_image(rgba, width, height, image::ExtendedColorType::Rgba8);
    written.map(|()| bytes).map_err(|error| error.to_string())
}
