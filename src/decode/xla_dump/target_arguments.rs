//! `*.target_arguments.txt`: for which TPU a program was compiled, as protobuf text.

use super::tpu;
use crate::decode::decoder::{Context, DecodeError, Decoder, Family, Reads};
use crate::model::{Device, Profile, TpuGeneration};
use crate::source::Input;

/// Target arguments of libtpu.
pub struct TargetArgumentsDecoder;

impl Decoder for TargetArgumentsDecoder {
    fn format(&self) -> &'static str {
        "XLA target arguments"
    }

    fn reads(&self) -> Reads {
        Reads {
            family: Family::XlaDump,
            words: "the device that a dump was compiled for",
            patterns: &["*.target_arguments.txt"],
        }
    }

    fn recognises(&self, input: &Input) -> bool {
        let head = input.head();
        memchr::memmem::find(head, b"tpu_topology_args {").is_some()
            && memchr::memmem::find(head, b"version: TPU_VERSION_").is_some()
    }

    fn decode(&self, input: &Input, context: Context<'_>) -> Result<Profile, DecodeError> {
        let bytes = input.load(context.progress)?;
        let text = String::from_utf8_lossy(&bytes);
        let mut version = None;
        let mut variant = String::new();
        let mut chip_config = String::new();
        for line in text.lines() {
            let Some((key, value)) = line.trim().split_once(": ") else { continue };
            let value = value.trim().trim_matches('"');
            match key {
                "version" => version = Some(value.to_owned()),
                "variant" => variant = value.to_owned(),
                "chip_config_name" => chip_config = value.to_owned(),
                _ => {}
            }
        }
        let Some(version) = version else {
            return Err(DecodeError::Empty("target arguments without a TPU version".to_owned()));
        };
        let devices_per_chip = if chip_config.starts_with("megacore") { Some(1) } else { None };
        let evidence = format!("from {} in {}", version, input.file_name());
        let device = match TpuGeneration::by_version(&version, &variant, devices_per_chip) {
            Some(generation) => tpu(generation, &evidence),
            None => {
                context.reporter.info(format!("{version} is a TPU this program does not know"));
                Device { evidence: Some(evidence), ..Device::default() }
            }
        };
        Ok(Profile { device, ..Profile::default() })
    }
}
