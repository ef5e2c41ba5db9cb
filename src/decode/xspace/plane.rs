//! One plane of an XSpace: its name tables and the offsets of its parts, which are decoded on demand.

use std::collections::HashMap;

use super::fields::{event, line, metadata, metadata_entry, plane, stat};
use crate::decode::reporter::Reporter;
use crate::decode::wire::{FIXED64, LEN, Reader, Result, VARINT, WireError, field, text};

/// Names of events and statistics by number.
pub type NamesById = HashMap<i64, String, foldhash::fast::RandomState>;

/// A plane, walked over once.
#[derive(Debug, Default)]
pub struct Plane<'a> {
    /// `/host:CPU`, `/device:TPU:0`, …
    pub name: String,
    /// Its lines.
    pub lines: Vec<Reader<'a>>,
    /// Entries of the map of event metadata.
    pub event_metadata: Vec<Reader<'a>>,
    /// Names of statistics.
    pub stat_names: NamesById,
    /// Statistics of the plane itself.
    pub stats: Vec<Reader<'a>>,
}

/// Reads a sub-message; one that the end of the file cuts gives what is there.
pub fn message_or_rest<'a>(reader: &mut Reader<'a>) -> Result<Reader<'a>> {
    let (bytes, _) = reader.bytes_or_rest()?;
    Ok(Reader::new(bytes, reader.offset() - bytes.len() as u64))
}

impl<'a> Plane<'a> {
    /// Walks over a plane. What is damaged is reported; what came before it stays.
    pub fn read(mut reader: Reader<'a>, reporter: &Reporter) -> Self {
        let mut plane = Self::default();
        if let Err(error) = plane.walk(&mut reader) {
            reporter.damaged(format!("plane '{}' stops here: {}", plane.name, error.what), Some(error.offset));
        }
        plane
    }

    fn walk(&mut self, reader: &mut Reader<'a>) -> Result<()> {
        while let Some(tag) = reader.tag()? {
            match field(tag) {
                (plane::NAME, LEN) => self.name = text(reader.bytes()?),
                (plane::LINES, LEN) => self.lines.push(message_or_rest(reader)?),
                (plane::EVENT_METADATA, LEN) => self.event_metadata.push(message_or_rest(reader)?),
                (plane::STAT_METADATA, LEN) => {
                    let (id, name) = named_entry(message_or_rest(reader)?)?;
                    self.stat_names.insert(id, name);
                }
                (plane::STATS, LEN) => self.stats.push(message_or_rest(reader)?),
                _ => reader.skip(tag)?,
            }
        }
        Ok(())
    }

    /// Names of the events, by number.
    pub fn event_names(&self) -> NamesById {
        self.event_metadata.iter().filter_map(|&entry| named_entry(entry).ok()).collect()
    }

    /// Name of a statistic.
    pub fn stat_name(&self, id: i64) -> &str {
        self.stat_names.get(&id).map_or("", String::as_str)
    }

    /// The plane's own statistics.
    pub fn own_stats(&self) -> impl Iterator<Item = (&str, Value<'a>)> {
        self.stats.iter().filter_map(|&stat| {
            let (id, value) = stat_value(stat).ok()?;
            Some((self.stat_name(id), value))
        })
    }

    /// A value as text: a string, or the name that a reference leads to.
    pub fn text_of(&self, value: Value<'a>) -> String {
        match value {
            Value::Text(bytes) => text(bytes),
            Value::Reference(id) => self.stat_name(id as i64).to_owned(),
            Value::Unsigned(number) => number.to_string(),
            Value::Signed(number) => number.to_string(),
            Value::Double(number) => number.to_string(),
            Value::Bytes(_) | Value::None => String::new(),
        }
    }
}

/// An entry of a map from number to something that has a number (1) and a name (2).
fn named_entry(mut entry: Reader<'_>) -> Result<(i64, String)> {
    let (mut key, mut name) = (0, String::new());
    while let Some(tag) = entry.tag()? {
        match field(tag) {
            (metadata_entry::KEY, VARINT) => key = entry.int()?,
            (metadata_entry::VALUE, LEN) => {
                let mut value = message_or_rest(&mut entry)?;
                while let Some(tag) = value.tag()? {
                    match field(tag) {
                        (metadata::ID, VARINT) => {
                            let id = value.int()?;
                            if key == 0 {
                                key = id;
                            }
                        }
                        (metadata::NAME, LEN) => {
                            name = text(value.bytes()?);
                            // What follows may be large and is not needed here.
                            return Ok((key, name));
                        }
                        _ => value.skip(tag)?,
                    }
                }
            }
            _ => entry.skip(tag)?,
        }
    }
    Ok((key, name))
}

/// The value of a statistic (`XStat`).
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    /// Nothing.
    None,
    /// A fraction.
    Double(f64),
    /// A number.
    Unsigned(u64),
    /// A number that may be negative.
    Signed(i64),
    /// A text.
    Text(&'a [u8]),
    /// Bytes.
    Bytes(Reader<'a>),
    /// A name in the table of statistics.
    Reference(u64),
}

impl Value<'_> {
    /// As a whole number; negative ones stay so.
    pub const fn number(self) -> i64 {
        match self {
            Self::Unsigned(number) | Self::Reference(number) => number as i64,
            Self::Signed(number) => number,
            Self::Double(number) => number as i64,
            Self::None | Self::Text(_) | Self::Bytes(_) => 0,
        }
    }

    /// As a fraction.
    pub const fn double(self) -> f64 {
        match self {
            Self::Double(number) => number,
            other => other.number() as f64,
        }
    }
}

/// (number of its name, value) of a statistic.
pub fn stat_value(mut stat: Reader<'_>) -> Result<(i64, Value<'_>)> {
    let (mut id, mut value) = (0, Value::None);
    while let Some(tag) = stat.tag()? {
        match field(tag) {
            (stat::METADATA_ID, VARINT) => id = stat.int()?,
            (stat::DOUBLE_VALUE, FIXED64) => value = Value::Double(f64::from_bits(stat.fixed64()?)),
            (stat::UINT64_VALUE, VARINT) => value = Value::Unsigned(stat.varint()?),
            (stat::INT64_VALUE, VARINT) => value = Value::Signed(stat.int()?),
            (stat::STR_VALUE, LEN) => value = Value::Text(stat.bytes()?),
            (stat::BYTES_VALUE, LEN) => value = Value::Bytes(message_or_rest(&mut stat)?),
            (stat::REF_VALUE, VARINT) => value = Value::Reference(stat.varint()?),
            _ => stat.skip(tag)?,
        }
    }
    Ok((id, value))
}

/// An event of a line (`XEvent`).
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// Number of its name.
    pub metadata: i64,
    /// Begin after that of the line, in picoseconds.
    pub offset_ps: i64,
    /// Duration in picoseconds.
    pub duration_ps: i64,
    /// The whole message, for its statistics.
    pub message: Reader<'a>,
}

impl<'a> Event<'a> {
    /// Each statistic of the event.
    pub fn stats(&self, mut each: impl FnMut(i64, Value<'a>)) -> Result<()> {
        let mut reader = self.message;
        while let Some(tag) = reader.tag()? {
            match field(tag) {
                (event::STATS, LEN) => {
                    let (id, value) = stat_value(reader.message()?)?;
                    each(id, value);
                }
                _ => reader.skip(tag)?,
            }
        }
        Ok(())
    }
}

/// Name of a line, and each of its events.
pub fn events<'a>(
    mut line: Reader<'a>,
    mut each: impl FnMut(Event<'a>),
) -> std::result::Result<String, (String, WireError)> {
    let mut name = String::new();
    let mut walk = || -> Result<()> {
        while let Some(tag) = line.tag()? {
            match field(tag) {
                (line::NAME, LEN) => name = text(line.bytes()?),
                (line::EVENTS, LEN) => {
                    let message = line.message()?;
                    each(event(message)?);
                }
                _ => line.skip(tag)?,
            }
        }
        Ok(())
    };
    match walk() {
        Ok(()) => Ok(name),
        Err(error) => Err((name, error)),
    }
}

/// Name of a line, without reading its events.
pub fn line_name(mut line: Reader<'_>) -> String {
    while let Ok(Some(tag)) = line.tag() {
        match field(tag) {
            (line::NAME, LEN) => return line.bytes().map(text).unwrap_or_default(),
            _ => {
                if line.skip(tag).is_err() {
                    break;
                }
            }
        }
    }
    String::new()
}

fn event(message: Reader<'_>) -> Result<Event<'_>> {
    let mut event = Event { metadata: 0, offset_ps: 0, duration_ps: 0, message };
    let mut reader = message;
    while let Some(tag) = reader.tag()? {
        match field(tag) {
            (event::METADATA_ID, VARINT) => event.metadata = reader.int()?,
            (event::OFFSET_PS, VARINT) => event.offset_ps = reader.int()?,
            (event::DURATION_PS, VARINT) => event.duration_ps = reader.int()?,
            // Statistics come last and are read where they are wanted.
            (event::STATS, LEN) => break,
            _ => reader.skip(tag)?,
        }
    }
    Ok(event)
}
