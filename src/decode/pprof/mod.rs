//! pprof files of `jax.profiler.save_device_memory_profile`: live arrays and executables on the devices, with the
//! Python stacks that allocated them. Other pprof files are accepted if they have a sample type in bytes.

mod fields;

use std::collections::HashMap;

use super::decoder::{Context, DecodeError, Decoder, Family, Reads};
use super::wire::{LEN, Reader, Result as WireResult, VARINT, field, text};
use crate::model::{Bytes, LiveEntry, LiveSet, Profile, SourceLine};
use crate::source::Input;
use fields::{function, location, pair, profile, sample};

/// pprof.
pub struct PprofDecoder;

/// Frames of one stack beyond this number are left out.
const MAX_STACK: usize = 1024;

impl Decoder for PprofDecoder {
    fn format(&self) -> &'static str {
        "pprof device memory profile"
    }

    fn reads(&self) -> Reads {
        Reads { family: Family::Run, words: "device memory profile", patterns: &["*.prof", "*.pprof"] }
    }

    fn recognises(&self, input: &Input) -> bool {
        recognises(input.head())
    }

    fn decode(&self, input: &Input, context: Context<'_>) -> Result<Profile, DecodeError> {
        let bytes = input.load(context.progress)?;
        let mut tables = Tables::default();
        if let Err(error) = tables.read(Reader::new(&bytes, 0)) {
            if tables.samples.is_empty() {
                return Err(DecodeError::Damaged { what: error.what.to_owned(), offset: error.offset });
            }
            context
                .reporter
                .damaged(format!("the rest of the profile is left out: {}", error.what), Some(error.offset));
        }
        let live = tables.live_set(context)?;
        Ok(Profile { live: Some(live), ..Profile::default() })
    }
}

/// Whether the bytes begin with sample types (two small numbers each) and something else follows.
fn recognises(head: &[u8]) -> bool {
    let mut reader = Reader::new(head, 0);
    let mut types = 0;
    while let Ok(Some(tag)) = reader.tag() {
        match field(tag) {
            (profile::SAMPLE_TYPE, LEN) => {
                let Ok(bytes) = reader.bytes() else { return false };
                let mut pair = Reader::new(bytes, 0);
                let mut numbers = 0;
                while let Ok(Some(tag)) = pair.tag() {
                    if !matches!(field(tag), (pair::FIRST | pair::SECOND, VARINT)) || pair.varint().is_err() {
                        return false;
                    }
                    numbers += 1;
                }
                if pair.remaining() > 0 || !(1..=2).contains(&numbers) {
                    return false;
                }
                types += 1;
                if types > 16 {
                    return false;
                }
            }
            (profile::SAMPLE, LEN) => {
                // A sample: locations, values, labels.
                let Ok((bytes, _)) = reader.bytes_or_rest() else { return false };
                let mut sample = Reader::new(bytes, 0);
                return types > 0
                    && sample.tag().ok().flatten().is_some_and(|tag| {
                        matches!(field(tag), (sample::LOCATION_ID | sample::VALUE, VARINT | LEN) | (sample::LABEL, LEN))
                    });
            }
            (profile::MAPPING..=profile::STRING_TABLE, LEN) => return types > 0,
            _ => return false,
        }
    }
    false
}

#[derive(Debug, Default)]
struct Sample {
    locations: Vec<u64>,
    values: Vec<i64>,
    /// (key, text) of labels.
    labels: Vec<(i64, i64)>,
}

#[derive(Debug, Default)]
struct Tables {
    /// (type, unit) as string numbers.
    sample_types: Vec<(i64, i64)>,
    samples: Vec<Sample>,
    /// Lines of a location: (function, line), innermost first.
    locations: HashMap<u64, Vec<(u64, i64)>>,
    /// (name, file) as string numbers.
    functions: HashMap<u64, (i64, i64)>,
    strings: Vec<String>,
}

impl Tables {
    fn read(&mut self, mut reader: Reader<'_>) -> WireResult<()> {
        while let Some(tag) = reader.tag()? {
            match field(tag) {
                (profile::SAMPLE_TYPE, LEN) => self.sample_types.push(pair(reader.message()?)?),
                (profile::SAMPLE, LEN) => self.samples.push(sample(reader.message()?)?),
                (profile::LOCATION, LEN) => {
                    let (id, lines) = location(reader.message()?)?;
                    self.locations.insert(id, lines);
                }
                (profile::FUNCTION, LEN) => {
                    let (id, function) = function(reader.message()?)?;
                    self.functions.insert(id, function);
                }
                (profile::STRING_TABLE, LEN) => self.strings.push(text(reader.bytes()?)),
                _ => reader.skip(tag)?,
            }
        }
        Ok(())
    }

    fn string(&self, number: i64) -> &str {
        usize::try_from(number).ok().and_then(|number| self.strings.get(number)).map_or("", String::as_str)
    }

    /// The column of bytes: the one with that unit, else the last.
    fn columns(&self) -> Option<(Option<usize>, usize)> {
        let unit = |i: &usize| self.string(self.sample_types[*i].1);
        let bytes = (0..self.sample_types.len()).find(|i| unit(i).eq_ignore_ascii_case("bytes"))?;
        Some(((0..self.sample_types.len()).find(|i| unit(i).eq_ignore_ascii_case("count")), bytes))
    }

    fn live_set(&self, context: Context<'_>) -> Result<LiveSet, DecodeError> {
        let Some((count, bytes)) = self.columns() else {
            let units: Vec<&str> = self.sample_types.iter().map(|(_, unit)| self.string(*unit)).collect();
            return Err(DecodeError::Empty(format!(
                "a pprof file that counts {}, not bytes",
                if units.is_empty() { "nothing".to_owned() } else { units.join(", ") }
            )));
        };
        let mut set = LiveSet::default();
        // Rows of the frames of each location, made once.
        let mut frames: HashMap<u64, Vec<u32>> = HashMap::new();
        let mut unknown = 0usize;
        for sample in &self.samples {
            context.progress.check()?;
            let value = |column: usize| sample.values.get(column).copied().unwrap_or(0);
            let mut entry = LiveEntry {
                bytes: Bytes::from_wire(value(bytes)),
                count: count.map_or(1, |column| u64::try_from(value(column)).unwrap_or(0)),
                ..LiveEntry::default()
            };
            for &(key, text) in &sample.labels {
                let text = set.strings.intern(self.string(text));
                match self.string(key) {
                    "kind" => entry.kind = text,
                    "device" => entry.device = text,
                    _ => {}
                }
            }
            for location in sample.locations.iter().take(MAX_STACK) {
                let rows = frames.entry(*location).or_insert_with(|| {
                    let Some(lines) = self.locations.get(location) else {
                        unknown += 1;
                        return Vec::new();
                    };
                    lines
                        .iter()
                        .map(|(function, line)| {
                            let &(name, file) = self.functions.get(function).unwrap_or(&(0, 0));
                            set.frames.push(SourceLine {
                                file: self.string(file).to_owned(),
                                function: self.string(name).to_owned(),
                                line: i32::try_from(*line).unwrap_or(0),
                                column: 0,
                            });
                            set.frames.len() as u32 - 1
                        })
                        .collect()
                });
                if entry.stack.len() < MAX_STACK {
                    entry.stack.extend(rows.iter());
                }
            }
            set.entries.push(entry);
        }
        if unknown > 0 {
            context.reporter.warn(format!("{unknown} stack locations are not in the file"), None);
        }
        Ok(set)
    }
}

fn pair(mut reader: Reader<'_>) -> WireResult<(i64, i64)> {
    let mut pair = (0, 0);
    while let Some(tag) = reader.tag()? {
        match field(tag) {
            (pair::FIRST, VARINT) => pair.0 = reader.int()?,
            (pair::SECOND, VARINT) => pair.1 = reader.int()?,
            _ => reader.skip(tag)?,
        }
    }
    Ok(pair)
}

fn sample(mut reader: Reader<'_>) -> WireResult<Sample> {
    let mut sample = Sample::default();
    while let Some(tag) = reader.tag()? {
        match field(tag) {
            (sample::LOCATION_ID, VARINT | LEN) => reader.numbers(tag, |id| sample.locations.push(id as u64))?,
            (sample::VALUE, VARINT | LEN) => reader.numbers(tag, |value| sample.values.push(value))?,
            (sample::LABEL, LEN) => sample.labels.push(pair(reader.message()?)?),
            _ => reader.skip(tag)?,
        }
    }
    Ok(sample)
}

fn location(mut reader: Reader<'_>) -> WireResult<(u64, Vec<(u64, i64)>)> {
    let (mut id, mut lines) = (0, Vec::new());
    while let Some(tag) = reader.tag()? {
        match field(tag) {
            (location::ID, VARINT) => id = reader.varint()?,
            (location::LINE, LEN) => {
                let (function, line) = pair(reader.message()?)?;
                lines.push((function as u64, line));
            }
            _ => reader.skip(tag)?,
        }
    }
    Ok((id, lines))
}

fn function(mut reader: Reader<'_>) -> WireResult<(u64, (i64, i64))> {
    let (mut id, mut function) = (0, (0, 0));
    while let Some(tag) = reader.tag()? {
        match field(tag) {
            (function::ID, VARINT) => id = reader.varint()?,
            (function::NAME, VARINT) => function.0 = reader.int()?,
            (function::FILENAME, VARINT) => function.1 = reader.int()?,
            _ => reader.skip(tag)?,
        }
    }
    Ok((id, function))
}
