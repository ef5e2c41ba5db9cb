//! XProf's and TensorFlow's traces (`*.xplane.pb`, XSpace): HLO modules, allocator events of the host, devices, and
//! when modules ran.

mod device;
mod fields;
mod memory;
mod modules;
mod plane;
mod steps;

use super::decoder::{Context, DecodeError, Decoder, Family, Reads};
use super::wire::{LEN, Reader, VARINT, field};
use crate::model::Profile;
use crate::source::Input;
use plane::{Plane, message_or_rest};

pub use memory::tensorflow_type;

/// Display name of the format.
pub const FORMAT: &str = "XSpace trace";

/// XSpace.
pub struct XSpaceDecoder;

impl Decoder for XSpaceDecoder {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn reads(&self) -> Reads {
        Reads { family: Family::Run, words: "trace: allocator history and its programs", patterns: &["*.xplane.pb"] }
    }

    fn recognises(&self, input: &Input) -> bool {
        recognises(input.head())
    }

    fn decode(&self, input: &Input, context: Context<'_>) -> Result<Profile, DecodeError> {
        let bytes = input.load(context.progress)?;
        let reporter = context.reporter;
        let mut profile = Profile::default();
        let mut hosts: Vec<String> = Vec::new();
        let mut planes = 0usize;
        let (mut has_device, mut has_cpu_client) = (false, false);
        let mut reader = Reader::new(&bytes, 0);
        let mut walk = |reader: &mut Reader<'_>| -> Result<(), DecodeError> {
            while let Some(tag) = reader.tag().map_err(damaged)? {
                context.progress.check()?;
                match field(tag) {
                    (fields::space::PLANES, LEN) => {
                        planes += 1;
                        let before = reader.offset();
                        let message = message_or_rest(reader).map_err(damaged)?;
                        let plane = Plane::read(message, reporter);
                        match plane.name.as_str() {
                            "/host:metadata" => {
                                profile.modules.extend(modules::read(&plane, &bytes, reporter));
                                device::read_host(&plane, &mut profile);
                            }
                            "/host:CPU" => {
                                has_cpu_client |= device::has_cpu_client(&plane);
                                profile.runtime.extend(memory::read(&plane, context.progress, reporter)?);
                            }
                            name if name.starts_with("/device:") => {
                                has_device = true;
                                device::read(&plane, input.file_name(), &mut profile, reporter);
                            }
                            // Runtimes of devices write on planes of the host too.
                            name if name.starts_with("/host:TPU") || name == "/host:CUPTI" => has_device = true,
                            "" => reporter.warn("a plane without a name", Some(before)),
                            _ => {}
                        }
                    }
                    (fields::space::HOSTNAMES, LEN) => hosts.push(super::wire::text(reader.bytes().map_err(damaged)?)),
                    (fields::space::ERRORS | fields::space::WARNINGS, LEN) => {
                        let said = super::wire::text(reader.bytes().map_err(damaged)?);
                        reporter.warn(format!("the profiler reported: {said}"), None);
                    }
                    _ => reader.skip(tag).map_err(damaged)?,
                }
            }
            Ok(())
        };
        let result = walk(&mut reader);
        match result {
            Err(error @ DecodeError::Damaged { .. }) if planes == 0 => return Err(error),
            Err(DecodeError::Damaged { what, offset }) => {
                reporter.damaged(format!("the rest of the trace is left out: {what}"), Some(offset));
            }
            Err(error) => return Err(error),
            Ok(()) => {}
        }
        if planes == 0 {
            return Err(DecodeError::Empty("there is no plane in the trace".to_owned()));
        }
        if profile.modules.is_empty() && profile.runtime.is_empty() {
            reporter.info(
                "This trace has neither HLO modules nor allocator events; trace with host_tracer_level 2 or higher, \
                 or look at the compiler's dump instead",
            );
        }
        if has_cpu_client && !has_device {
            profile.device = device::host(input.file_name());
        }
        device::take_limit(&mut profile, input.file_name());
        profile.name = hosts.first().cloned().unwrap_or_default();
        Ok(profile)
    }
}

/// Whether the bytes begin with a plane that has a plane's name.
fn recognises(head: &[u8]) -> bool {
    let mut reader = Reader::new(head, 0);
    // Errors, warnings and host names may come first in a file that another writer made.
    for _ in 0..64 {
        let Ok(Some(tag)) = reader.tag() else { return false };
        match field(tag) {
            (fields::space::PLANES, LEN) => {
                let Ok((bytes, _)) = reader.bytes_or_rest() else { return false };
                return is_plane(bytes);
            }
            (fields::space::ERRORS..=fields::space::HOSTNAMES, LEN) => {
                let Ok(bytes) = reader.bytes() else { return false };
                if std::str::from_utf8(bytes).is_err() {
                    return false;
                }
            }
            _ => return false,
        }
    }
    false
}

fn is_plane(bytes: &[u8]) -> bool {
    let mut reader = Reader::new(bytes, 0);
    for _ in 0..8 {
        let Ok(Some(tag)) = reader.tag() else { return false };
        match field(tag) {
            (fields::plane::ID, VARINT) => {
                if reader.varint().is_err() {
                    return false;
                }
            }
            (fields::plane::NAME, LEN) => {
                let Ok(name) = reader.bytes() else { return false };
                return name.starts_with(b"/host:")
                    || name.starts_with(b"/device:")
                    || name == b"Task Environment"
                    || name.starts_with(b"#Chip");
            }
            _ => return false,
        }
    }
    false
}

fn damaged(error: super::wire::WireError) -> DecodeError {
    DecodeError::Damaged { what: error.what.to_owned(), offset: error.offset }
}
