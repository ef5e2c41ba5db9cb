//! `*.stats.json` beside a dump: an object that names the device by JAX's `device_kind`.

use serde_json::Value;

use super::tpu;
use crate::decode::decoder::{Context, DecodeError, Decoder, Family, Reads};
use crate::model::{Device, DeviceKind, Profile, TpuGeneration};
use crate::source::Input;

/// Compile statistics.
pub struct CompileStatsDecoder;

impl Decoder for CompileStatsDecoder {
    fn format(&self) -> &'static str {
        "compile statistics"
    }

    fn reads(&self) -> Reads {
        Reads {
            family: Family::XlaDump,
            words: "statistics of a compilation, with the device",
            patterns: &["*.stats.json"],
        }
    }

    fn recognises(&self, input: &Input) -> bool {
        let head = input.head();
        head.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'{')
            && memchr::memmem::find(head, b"\"device_kind\"").is_some()
    }

    fn decode(&self, input: &Input, context: Context<'_>) -> Result<Profile, DecodeError> {
        let bytes = input.load(context.progress)?;
        let value: Value = serde_json::from_slice(&bytes).map_err(|error| DecodeError::Damaged {
            what: error.to_string(),
            offset: offset_of(&bytes, error.line(), error.column()),
        })?;
        let kind = value.get("device_kind").and_then(Value::as_str).unwrap_or_default();
        let evidence = format!("from device_kind \"{kind}\" in {}", input.file_name());
        let devices = value.get("devices").and_then(Value::as_u64);
        let chips = value.get("topology").and_then(Value::as_str).and_then(chips_of);
        let devices_per_chip = devices.zip(chips).and_then(|(devices, chips)| {
            (chips > 0 && devices % chips == 0).then(|| u32::try_from(devices / chips).ok())?
        });
        let device = if let Some(generation) = TpuGeneration::by_device_kind(kind, devices_per_chip) {
            tpu(generation, &evidence)
        } else {
            let known = kind.to_ascii_lowercase();
            let device_kind = if known == "cpu" {
                Some(DeviceKind::Cpu)
            } else if known.contains("nvidia") || known.contains("amd") {
                Some(DeviceKind::Gpu)
            } else {
                None
            };
            Device {
                name: (!kind.is_empty()).then(|| kind.to_owned()),
                kind: device_kind,
                evidence: Some(evidence),
                ..Device::default()
            }
        };
        Ok(Profile { device, ..Profile::default() })
    }
}

/// Chips of a topology such as `v5e:2x2`.
fn chips_of(topology: &str) -> Option<u64> {
    let (_, bounds) = topology.rsplit_once(':')?;
    bounds.split('x').map(|n| n.parse::<u64>().ok()).try_fold(1u64, |product, n| product.checked_mul(n?))
}

/// Byte offset of a 1-based line and column.
fn offset_of(bytes: &[u8], line: usize, column: usize) -> u64 {
    let start: usize = bytes.split_inclusive(|&b| b == b'\n').take(line.saturating_sub(1)).map(<[u8]>::len).sum();
    (start + column.saturating_sub(1)).min(bytes.len()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chips_are_counted() {
        assert_eq!(chips_of("v4:2x2x1"), Some(4));
        assert_eq!(chips_of("v5e:1x1"), Some(1));
        assert_eq!(chips_of("nonsense"), None);
    }
}
