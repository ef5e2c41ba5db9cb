//! The allocator's settings, from the dict of them.

use super::keys as key;
use super::records::Records;
use super::value::{Shared, Value};
use crate::model::{AllocatorSettings, StringId};

/// Most settings kept as text.
const MAX_SHOWN: usize = 64;

/// The settings in a map.
pub fn read(records: &Records, row: u32) -> AllocatorSettings {
    let mut settings = AllocatorSettings::default();
    let Some(map) = records.maps.get(row as usize) else { return settings };
    for &(name, value) in &map.items {
        match name.text() {
            Some(key::EXPANDABLE_SEGMENTS) => settings.expandable_segments = flag(value),
            Some(key::MAX_SPLIT_SIZE) => settings.max_split_size = value.unsigned(),
            Some(key::GARBAGE_COLLECTION_THRESHOLD) => settings.garbage_collection_threshold = float(value),
            Some(key::ROUNDUP_POWER2_DIVISIONS) => settings.roundup_power2_divisions = divisions(records, value),
            _ => {}
        }
        if settings.all.len() < MAX_SHOWN
            && let Some(name) = name.text()
        {
            let name = records.snapshot.strings.get(StringId(name)).to_owned();
            settings.all.push((name, words(records, value)));
        }
    }
    settings
}

fn flag(value: Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(flag),
        _ => None,
    }
}

fn float(value: Value) -> Option<f64> {
    match value {
        Value::Float(number) => Some(number),
        other => other.unsigned().map(|number| number as f64),
    }
}

/// (MiB, divisions), ascending, without those that divide nothing.
fn divisions(records: &Records, value: Value) -> Vec<(u64, u64)> {
    let Value::Shared(Shared::Map(row)) = value else { return Vec::new() };
    let Some(map) = records.maps.get(row as usize) else { return Vec::new() };
    let mib = |name: Value| match name {
        Value::Shared(Shared::Text(text)) => records.snapshot.strings.get(StringId(text)).parse().ok(),
        number => number.unsigned(),
    };
    let row = |&(name, count): &(Value, Value)| Some((mib(name)?, count.unsigned()?)).filter(|&(_, count)| count > 1);
    let mut divisions: Vec<(u64, u64)> = map.items.iter().filter_map(row).collect();
    divisions.sort_unstable();
    divisions
}

/// A value as text.
fn words(records: &Records, value: Value) -> String {
    match value {
        Value::None => "None".to_owned(),
        Value::Bool(flag) => if flag { "True" } else { "False" }.to_owned(),
        Value::Int(number) => number.to_string(),
        Value::Big(number) => number.to_string(),
        Value::OutOfRange => "out of range".to_owned(),
        Value::Float(number) => number.to_string(),
        Value::Shared(Shared::Text(text)) => records.snapshot.strings.get(StringId(text)).to_owned(),
        Value::Shared(Shared::Map(_)) => {
            let divisions = divisions(records, value);
            let words: Vec<String> = divisions.iter().map(|(mib, count)| format!("{mib}:{count}")).collect();
            if words.is_empty() { "none".to_owned() } else { words.join(", ") }
        }
        Value::Shared(_) => "not shown".to_owned(),
    }
}
