//! `*.target_arguments.txt` and `.pb`: the TPU that a program was compiled for, and the number of chips. The text form
//! is written under `--xla_dump_hlo_as_text`, the binary form under `--xla_dump_hlo_as_proto`.

use super::tpu;
use crate::decode::decoder::{Context, DecodeError, Decoder, Family, Reads};
use crate::decode::wire::{LEN, Reader, Result as WireResult, VARINT, WireError, field, text};
use crate::model::{Device, Profile, Topology, TpuGeneration};
use crate::source::Input;

/// Target arguments of libtpu.
pub struct TargetArgumentsDecoder;

/// Largest size of the binary form in bytes; real ones take a few dozen.
const MAX_BINARY: u64 = 4096;

/// `tpu_topology_args` of the target arguments.
const TOPOLOGY: (u32, u32) = (6, LEN);

/// `TPU_VERSION_…` by its number in the binary form.
const VERSIONS: &[(i64, &str)] =
    &[(1, "JELLYFISH"), (2, "DRAGONFISH"), (3, "PUFFERFISH"), (4, "VIPERFISH"), (5, "GHOSTLITE"), (6, "6acc60406")];

/// What the file says.
#[derive(Debug, Default, PartialEq)]
struct Target {
    version: Option<String>,
    variant: String,
    chip_config: String,
    chips_per_host: Option<u64>,
    hosts: Option<u64>,
}

impl Decoder for TargetArgumentsDecoder {
    fn format(&self) -> &'static str {
        "XLA target arguments"
    }

    fn reads(&self) -> Reads {
        Reads {
            family: Family::XlaDump,
            words: "the device that a dump was compiled for",
            patterns: &["*.target_arguments.txt", "*.target_arguments.pb"],
        }
    }

    fn recognises(&self, input: &Input) -> bool {
        let head = input.head();
        let is_text = memchr::memmem::find(head, b"tpu_topology_args {").is_some()
            && memchr::memmem::find(head, b"version: TPU_VERSION_").is_some();
        is_text || (input.size() <= MAX_BINARY && is_binary(head))
    }

    fn decode(&self, input: &Input, context: Context<'_>) -> Result<Profile, DecodeError> {
        let bytes = input.load(context.progress)?;
        let target = if is_binary(&bytes) {
            of_binary(&bytes)
                .map_err(|WireError { offset, what }| DecodeError::Damaged { what: what.into(), offset })?
        } else {
            of_text(&String::from_utf8_lossy(&bytes))
        };
        let Some(version) = target.version else {
            return Err(DecodeError::Empty("target arguments without a TPU version".to_owned()));
        };
        let devices_per_chip = if target.chip_config.starts_with("megacore") { Some(1) } else { None };
        // The variant tells the chips of one version apart.
        let variant = if target.variant.is_empty() { String::new() } else { format!(" {}", target.variant) };
        let evidence = format!("from {version}{variant} in {}", input.file_name());
        let mut device = match TpuGeneration::by_version(&version, &target.variant, devices_per_chip) {
            Some(generation) => tpu(generation, &evidence),
            None => {
                context.reporter.info(format!("{version} is a TPU this program does not know"));
                Device { evidence: Some(evidence), ..Device::default() }
            }
        };
        device.topology = target
            .chips_per_host
            .zip(target.hosts)
            .map(|(chips_per_host, hosts)| Topology { chips_per_host, hosts })
            .filter(|topology| topology.chips() > 0);
        Ok(Profile { device, ..Profile::default() })
    }
}

/// The text form: protobuf text, one field a line.
fn of_text(text: &str) -> Target {
    let mut target = Target::default();
    let mut block = "";
    let mut bounds: [(&str, Option<u64>); 2] = [("chips_per_host_bounds {", None), ("host_bounds {", None)];
    for line in text.lines().map(str::trim) {
        if line.ends_with('{') {
            block = line;
            if let Some(known) = bounds.iter_mut().find(|known| known.0 == line) {
                known.1 = Some(1);
            }
        } else if line == "}" {
            block = "";
        }
        let Some((key, value)) = line.split_once(": ") else { continue };
        let value = value.trim().trim_matches('"');
        match key {
            "version" => target.version = Some(value.to_owned()),
            "variant" => value.clone_into(&mut target.variant),
            "chip_config_name" => value.clone_into(&mut target.chip_config),
            "x" | "y" | "z" => {
                let product = bounds.iter_mut().find(|known| known.0 == block).and_then(|known| known.1.as_mut());
                if let (Some(product), Ok(bound)) = (product, value.parse::<u64>()) {
                    *product = product.saturating_mul(bound.max(1));
                }
            }
            _ => {}
        }
    }
    [target.chips_per_host, target.hosts] = bounds.map(|known| known.1);
    target
}

/// Whether bytes are the binary form: a whole message that holds a topology with a version and the bounds of a host.
fn is_binary(bytes: &[u8]) -> bool {
    of_binary(bytes).is_ok_and(|target| target.version.is_some() && target.chips_per_host.is_some())
}

/// The binary form, read off pairs of both forms.
fn of_binary(bytes: &[u8]) -> WireResult<Target> {
    let mut target = Target::default();
    let mut reader = Reader::new(bytes, 0);
    while let Some(tag) = reader.tag()? {
        if field(tag) == TOPOLOGY {
            topology(&mut reader.message()?, &mut target)?;
        } else {
            reader.skip(tag)?;
        }
    }
    Ok(target)
}

fn topology(reader: &mut Reader<'_>, target: &mut Target) -> WireResult<()> {
    const VERSION: (u32, u32) = (1, VARINT);
    const VARIANT: (u32, u32) = (2, LEN);
    const CHIP_CONFIG_NAME: (u32, u32) = (4, LEN);
    const CHIPS_PER_HOST_BOUNDS: (u32, u32) = (5, LEN);
    const HOST_BOUNDS: (u32, u32) = (6, LEN);
    while let Some(tag) = reader.tag()? {
        match field(tag) {
            VERSION => {
                let number = reader.int()?;
                let name = VERSIONS.iter().find(|known| known.0 == number).map(|known| known.1);
                target.version = Some(format!("TPU_VERSION_{}", name.map_or(number.to_string(), str::to_owned)));
            }
            VARIANT => target.variant = text(reader.bytes()?),
            CHIP_CONFIG_NAME => target.chip_config = text(reader.bytes()?),
            CHIPS_PER_HOST_BOUNDS => target.chips_per_host = Some(product(&mut reader.message()?)?),
            HOST_BOUNDS => target.hosts = Some(product(&mut reader.message()?)?),
            _ => reader.skip(tag)?,
        }
    }
    Ok(())
}

/// Product of the bounds x, y and z (fields 1 to 3); a bound that is not there is 1.
fn product(reader: &mut Reader<'_>) -> WireResult<u64> {
    let mut product = 1u64;
    while let Some(tag) = reader.tag()? {
        match field(tag) {
            (1..=3, VARINT) => product = product.saturating_mul(reader.varint()?.max(1)),
            _ => reader.skip(tag)?,
        }
    }
    Ok(product)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A v4 of 2x2 chips a host and four hosts in both forms, as libtpu 0.0.52 writes them.
    const BINARY: &[u8] = b"\x12\x04\x0a\x00\x18\x01\x18\x01\x20\x002%\x08\x03\x18\x01\"\x07default*\x06\x08\x02\x10\x02\x18\x012\x06\x08\x01\x10\x01\x18\x04:\x00H\x01X\x01`\x01";
    const TEXT: &str = "replica_count: 1\ntpu_topology_args {\n  version: TPU_VERSION_PUFFERFISH\n  chip_config_name: \"default\"\n  chips_per_host_bounds {\n    x: 2\n    y: 2\n    z: 1\n  }\n  host_bounds {\n    x: 1\n    y: 1\n    z: 4\n  }\n  wrap {\n  }\n}\n";

    #[test]
    fn both_forms_say_the_same() {
        let expected = Target {
            version: Some("TPU_VERSION_PUFFERFISH".to_owned()),
            variant: String::new(),
            chip_config: "default".to_owned(),
            chips_per_host: Some(4),
            hosts: Some(4),
        };
        assert_eq!(of_binary(BINARY).as_ref(), Ok(&expected));
        assert_eq!(of_text(TEXT), expected);
    }

    #[test]
    fn other_bytes_are_not_the_binary_form() {
        assert!(is_binary(BINARY));
        for length in 0..BINARY.len() - 8 {
            assert!(!is_binary(&BINARY[..length]), "{length} bytes");
        }
        assert!(!is_binary(b"2 chips of a text"));
        assert!(!is_binary(TEXT.as_bytes()));
    }
}
