//! Builds the profile from the tiles and facts read, and identifies the device.

use crate::decode::Reporter;
use crate::model::{Device, DeviceKind, Fact, NoteCode, Profile, TileMemory};

/// A profile of what was found.
pub fn profile_of(tiles: Option<TileMemory>, facts: Vec<Fact>, reporter: &Reporter) -> Profile {
    if let Some(tiles) = &tiles
        && tiles.must_fit().is_none()
    {
        let text = "There are no bytes by tile (memory.byTile), so it is unknown whether the program fits";
        reporter.warn_about(NoteCode::NoTileBytes, text);
    }
    Profile { device: tiles.as_ref().map(device_of).unwrap_or_default(), tiles, facts, ..Profile::default() }
}

/// The device of a target.
fn device_of(tiles: &TileMemory) -> Device {
    let target = &tiles.target;
    let is_cpu = target.kind.as_deref() == Some("CPU");
    let generation = match (target.bytes_per_tile, target.tiles_per_ipu) {
        (Some(262_144), 1216) => Some("Mk1"),
        (Some(638_976), 1472) => Some("Mk2"),
        _ => None,
    };
    let model = if target.kind.as_deref() == Some("IPU_MODEL") { " (model)" } else { "" };
    let name = match (is_cpu, generation, target.ipus) {
        (true, ..) => "CPU".to_owned(),
        (_, Some(generation), 1) => format!("{generation} IPU{model}"),
        (_, Some(generation), ipus) => format!("{ipus} × {generation} IPU{model}"),
        (_, None, 1) => format!("IPU{model}"),
        (_, None, ipus) => format!("{ipus} × IPU{model}"),
    };
    Device {
        name: Some(name),
        kind: Some(if is_cpu { DeviceKind::Cpu } else { DeviceKind::Ipu }),
        evidence: target.evidence.clone().or_else(|| Some("it is a Poplar profile".to_owned())),
        ..Device::default()
    }
}
