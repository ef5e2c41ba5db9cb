//! Generates Poplar profiles of any size in every form: JSON, CBOR, lowered variables, execution, `profile.pop`. The
//! contents are synthetic and consistent with each other; the layout is the documented one.
#![allow(dead_code, reason = "each user needs its own part")]

use std::io::{self, Write};
use std::path::Path;

/// Parameters of a generated profile.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Number of IPUs.
    pub ipus: u64,
    /// Number of tiles per IPU.
    pub tiles_per_ipu: u64,
    /// Bytes of memory per tile.
    pub bytes_per_tile: u64,
    /// Share of the memory that a typical tile uses.
    pub fill: f64,
    /// Tiles with an additional large constant, for imbalance.
    pub hot_tiles: Vec<u64>,
    /// Number of exchanges.
    pub exchanges: u64,
    /// Number of compute sets, including those with cycle estimates.
    pub compute_sets: u64,
    /// Whether to write the estimates, which are by far the largest arrays.
    pub estimates: bool,
    /// Number of layers of the model.
    pub layers: u64,
}

impl Spec {
    /// A small profile of one Mk2 IPU.
    pub fn mk2() -> Self {
        Self {
            ipus: 1,
            tiles_per_ipu: 1472,
            bytes_per_tile: 638_976,
            fill: 0.62,
            hot_tiles: Vec::new(),
            exchanges: 16,
            compute_sets: 48,
            estimates: false,
            layers: 6,
        }
    }

    /// Total number of tiles.
    pub fn tiles(&self) -> u64 {
        self.ipus * self.tiles_per_ipu
    }
}

/// Category, share of the tile, whether it is always live, share in interleaved memory.
const CATEGORIES: &[(&str, f64, bool, f64)] = &[
    ("variable", 0.42, false, 0.5),
    ("constant", 0.03, true, 0.0),
    ("stack", 0.02, true, 0.0),
    ("message", 0.08, false, 0.0),
    ("vertexCode", 0.09, true, 0.0),
    ("vertexInstanceState", 0.05, true, 0.0),
    ("vertexFieldData", 0.03, true, 0.0),
    ("vectorListDescriptor", 0.005, true, 0.0),
    ("copyDescriptor", 0.005, true, 0.0),
    ("controlCode", 0.05, true, 0.0),
    ("internalExchangeCode", 0.12, true, 0.0),
    ("hostExchangeCode", 0.01, true, 0.0),
    ("globalExchangeCode", 0.02, true, 0.0),
    ("instrumentationResults", 0.01, true, 0.0),
    ("rearrangement", 0.06, false, 0.0),
];

/// A hash of two numbers, uniform over 0..1.
fn noise(a: u64, b: u64) -> f64 {
    let mut x = a.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ b.wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    x = (x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 32;
    (x >> 11) as f64 / (1u64 << 53) as f64
}

impl Spec {
    /// Bytes of a category on a tile: (not interleaved, interleaved).
    pub fn category(&self, category: usize, tile: u64) -> (u64, u64) {
        let (name, share, _, interleaved) = CATEGORIES[category];
        let place = tile % self.tiles_per_ipu;
        let stage = 1.0 - 0.25 * noise(tile / self.tiles_per_ipu, 7);
        // The last twentieth of an IPU's tiles does I/O and uses little memory.
        let busy = if place * 20 >= self.tiles_per_ipu * 19 { 0.1 } else { 1.0 };
        let wave = 0.92 + 0.08 * ((place / 46) as f64 * 0.9).sin();
        let mut bytes = self.bytes_per_tile as f64 * self.fill * share * stage * busy * wave;
        bytes *= 0.95 + 0.1 * noise(tile, category as u64);
        if name == "constant" && self.hot_tiles.contains(&tile) {
            bytes += self.bytes_per_tile as f64 * (0.35 + 0.2 * noise(tile, 99));
        }
        let all = bytes as u64 / 4 * 4;
        let part = (all as f64 * interleaved) as u64 / 8 * 8;
        (all - part, part)
    }

    /// Bytes of a tile: (without gaps, with gaps, interleaved, always live).
    pub fn tile(&self, tile: u64) -> (u64, u64, u64, u64) {
        let (mut plain, mut interleaved, mut always) = (0, 0, 0);
        for (index, category) in CATEGORIES.iter().enumerate() {
            let (a, b) = self.category(index, tile);
            plain += a;
            interleaved += b;
            always += if category.2 { a + b } else { 0 };
        }
        // Interleaved memory starts after a third of the tile; unused memory below it is a gap.
        let start = self.bytes_per_tile / 3;
        let high = if interleaved > 0 { plain.max(start) + interleaved } else { plain };
        (plain + interleaved, high + (noise(tile, 5) * 900.0) as u64, interleaved, always)
    }

    /// Sums over all tiles of (without gaps, with gaps, always live), and bytes of the fullest tile with gaps.
    pub fn sums(&self) -> (u64, u64, u64, (u64, u64)) {
        let mut sums = (0, 0, 0, (0, 0));
        for tile in 0..self.tiles() {
            let (total, high, _, always) = self.tile(tile);
            sums.0 += total;
            sums.1 += high;
            sums.2 += always;
            if high > sums.3.1 {
                sums.3 = (tile, high);
            }
        }
        sums
    }

    /// Bytes of a step that are not always live.
    pub fn step(&self, step: u64) -> u64 {
        let (total, _, always, _) = self.sums();
        self.step_of(step, total - always)
    }

    /// As [`Self::step`], given the total of bytes not always live, for callers that ask for many steps.
    fn step_of(&self, step: u64, not_always: u64) -> u64 {
        let steps = self.steps();
        // Rises through the forward pass, falls through the backward pass.
        let height = 1.0 - (step as f64 * 2.0 / steps.max(1) as f64 - 1.0).abs();
        (not_always as f64 * (0.2 + 0.75 * height) * (0.9 + 0.1 * noise(step, 3))) as u64
    }

    /// Number of steps of the liveness curve.
    pub fn steps(&self) -> u64 {
        self.layers * 2 * 4
    }
}

/// Writes a tree as JSON or CBOR.
pub struct Tree<W: Write> {
    out: W,
    cbor: bool,
    first: Vec<bool>,
}

impl<W: Write> Tree<W> {
    /// A writer of a tree to a stream.
    pub const fn new(out: W, cbor: bool) -> Self {
        Self { out, cbor, first: Vec::new() }
    }

    /// The output stream.
    #[expect(clippy::unnecessary_wraps, reason = "as the writers beside it")]
    pub fn finish(self) -> io::Result<W> {
        Ok(self.out)
    }

    fn separate(&mut self) -> io::Result<()> {
        if let Some(first) = self.first.last_mut()
            && !std::mem::replace(first, false)
            && !self.cbor
        {
            self.out.write_all(b",")?;
        }
        Ok(())
    }

    fn head(&mut self, major: u8, value: u64) -> io::Result<()> {
        let bytes = value.to_be_bytes();
        match value {
            0..24 => self.out.write_all(&[major << 5 | value as u8]),
            24..0x100 => self.out.write_all(&[major << 5 | 0x18, bytes[7]]),
            0x100..0x1_0000 => self.out.write_all(&[major << 5 | 0x19, bytes[6], bytes[7]]),
            0x1_0000..0x1_0000_0000 => {
                self.out.write_all(&[major << 5 | 0x1a])?;
                self.out.write_all(&bytes[4..])
            }
            _ => {
                self.out.write_all(&[major << 5 | 0x1b])?;
                self.out.write_all(&bytes)
            }
        }
    }

    /// Writes a number.
    pub fn number(&mut self, value: u64) -> io::Result<()> {
        self.separate()?;
        if self.cbor { self.head(0, value) } else { write!(self.out, "{value}") }
    }

    /// Writes a string.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        self.separate()?;
        self.raw_text(text)
    }

    fn raw_text(&mut self, text: &str) -> io::Result<()> {
        if self.cbor {
            self.head(3, text.len() as u64)?;
            self.out.write_all(text.as_bytes())
        } else {
            write!(self.out, "\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
        }
    }

    /// Writes a Boolean.
    pub fn truth(&mut self, value: bool) -> io::Result<()> {
        self.separate()?;
        if self.cbor { self.out.write_all(&[if value { 0xf5 } else { 0xf4 }]) } else { write!(self.out, "{value}") }
    }

    /// Writes a key, to be followed by its value.
    pub fn key(&mut self, key: &str) -> io::Result<()> {
        self.separate()?;
        self.raw_text(key)?;
        if !self.cbor {
            self.out.write_all(b":")?;
        }
        // The value after a key is not a further member.
        if let Some(first) = self.first.last_mut() {
            *first = true;
        }
        Ok(())
    }

    /// Writes an object.
    pub fn object(&mut self, inside: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        self.container(b"{", b"}", 0xbf, inside)
    }

    /// Writes an array.
    pub fn array(&mut self, inside: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        self.container(b"[", b"]", 0x9f, inside)
    }

    fn container(
        &mut self,
        open: &[u8],
        close: &[u8],
        cbor: u8,
        inside: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        self.separate()?;
        let begin = [cbor];
        self.out.write_all(if self.cbor { &begin } else { open })?;
        self.first.push(true);
        inside(self)?;
        self.first.pop();
        if let Some(first) = self.first.last_mut() {
            *first = false;
        }
        self.out.write_all(if self.cbor { &[0xff] } else { close })
    }

    /// Writes a member with a number.
    pub fn member(&mut self, key: &str, value: u64) -> io::Result<()> {
        self.key(key)?;
        self.number(value)
    }

    /// Writes a member with an array of numbers.
    pub fn row(&mut self, key: &str, values: impl Iterator<Item = u64>) -> io::Result<()> {
        self.key(key)?;
        self.array(|tree| {
            for value in values {
                tree.number(value)?;
            }
            Ok(())
        })
    }

    /// Writes a member with an array of arrays of numbers.
    pub fn rows(&mut self, key: &str, rows: u64, tiles: u64, value: impl Fn(u64, u64) -> u64) -> io::Result<()> {
        self.key(key)?;
        self.array(|tree| {
            for row in 0..rows {
                tree.array(|tree| {
                    for tile in 0..tiles {
                        tree.number(value(row, tile))?;
                    }
                    Ok(())
                })?;
            }
            Ok(())
        })
    }
}

const PARTS: [&str; 4] = ["ExchangePre", "matmul/Convolve", "Reduce", "activation"];

/// Writes the graph profile.
pub fn write_graph<W: Write>(tree: &mut Tree<W>, spec: &Spec) -> io::Result<()> {
    let tiles = spec.tiles();
    tree.object(|tree| {
        tree.key("target")?;
        tree.object(|tree| {
            tree.key("type")?;
            tree.text("IPU")?;
            tree.member("numIPUs", spec.ipus)?;
            tree.member("tilesPerIPU", spec.tiles_per_ipu)?;
            tree.member("numTiles", tiles)?;
            tree.member("bytesPerTile", spec.bytes_per_tile)?;
            tree.member("clockFrequency", 1_330_000_000)
        })?;
        tree.key("graph")?;
        tree.object(|tree| {
            tree.member("numVars", tiles * 30)?;
            tree.member("numVertices", tiles * 200)?;
            tree.member("numComputeSets", spec.compute_sets)
        })?;
        tree.key("vertexTypes")?;
        tree.object(|tree| {
            tree.key("names")?;
            tree.array(|tree| {
                for name in
                    ["poplin::ConvPartial1x1Out<half,float,true>", "popops::Reduce<float>", "popops::Cast<float,half>"]
                {
                    tree.text(name)?;
                }
                Ok(())
            })
        })?;
        tree.key("computeSets")?;
        tree.object(|tree| {
            tree.key("names")?;
            tree.array(|tree| {
                for cs in 0..spec.compute_sets {
                    tree.text(&format!("layer_{}/{}", cs / 4 % spec.layers.max(1), PARTS[cs as usize % 4]))?;
                }
                Ok(())
            })?;
            if spec.estimates {
                tree.rows("estimatedCyclesByTile", spec.compute_sets, tiles, |cs, tile| {
                    1000 + (cs * 31 + tile * 7) % 9000
                })?;
            }
            Ok(())
        })?;
        tree.key("exchanges")?;
        tree.object(|tree| {
            tree.rows("codeBytesByTile", spec.exchanges, tiles, |exchange, tile| {
                40 + (exchange * 17 + tile * 13) % 400
            })?;
            if spec.estimates {
                tree.rows("bytesReceivedByTile", spec.exchanges, tiles, |e, tile| (e * 19 + tile * 5) % 4096)?;
                tree.rows("bytesSentByTile", spec.exchanges, tiles, |e, tile| (e * 23 + tile * 3) % 4096)?;
                tree.rows("estimatedCyclesByTile", spec.exchanges, tiles, |e, tile| 100 + (e * 7 + tile) % 5000)?;
            }
            Ok(())
        })?;
        tree.key("programs")?;
        tree.array(|tree| write_programs(tree, spec))?;
        tree.key("memory")?;
        tree.object(|tree| write_memory(tree, spec))
    })
}

/// Writes the programs: steps first, then a sequence for each layer, then the whole.
fn write_programs<W: Write>(tree: &mut Tree<W>, spec: &Spec) -> io::Result<()> {
    let program = |tree: &mut Tree<W>, kind: &str, name: &str, children: &[u64], payload: Option<(&str, u64)>| {
        tree.object(|tree| {
            tree.key("type")?;
            tree.text(kind)?;
            tree.key("name")?;
            tree.text(name)?;
            if !children.is_empty() {
                tree.row("children", children.iter().copied())?;
            }
            payload.map_or(Ok(()), |(key, value)| tree.member(key, value))
        })
    };
    let passes = spec.layers * 2;
    for step in 0..spec.steps() {
        let (pass, part) = (step / 4, step as usize % 4);
        let (way, layer) = if pass < spec.layers { ("fwd", pass) } else { ("bwd", passes - 1 - pass) };
        let name = format!("{way}/layer_{layer}/{}", PARTS[part]);
        if part == 0 {
            program(tree, "DoExchange", &name, &[], Some(("exchange", step % spec.exchanges.max(1))))?;
        } else {
            program(tree, "OnTileExecute", &name, &[], Some(("computeset", step % spec.compute_sets.max(1))))?;
        }
    }
    let all: Vec<u64> = (0..spec.steps()).collect();
    program(tree, "Sequence", "main", &all, None)?;
    program(tree, "Repeat", "train", &[spec.steps()], Some(("count", 100)))
}

fn write_memory<W: Write>(tree: &mut Tree<W>, spec: &Spec) -> io::Result<()> {
    let tiles = spec.tiles();
    let sums = spec.sums();
    let not_always = sums.0 - sums.2;
    tree.key("byTile")?;
    tree.object(|tree| {
        tree.row("total", (0..tiles).map(|tile| spec.tile(tile).0))?;
        tree.row("totalIncludingGaps", (0..tiles).map(|tile| spec.tile(tile).1))?;
        tree.row("nonInterleaved", (0..tiles).map(|tile| spec.tile(tile).0 - spec.tile(tile).2))?;
        tree.row("interleaved", (0..tiles).map(|tile| spec.tile(tile).2))?;
        tree.row("overflowed", (0..tiles).map(|_| 0))
    })?;
    tree.key("byCategory")?;
    tree.object(|tree| {
        for (index, (name, .., interleaved)) in CATEGORIES.iter().enumerate() {
            tree.key(name)?;
            tree.object(|tree| {
                tree.key("nonInterleaved")?;
                tree.object(|tree| {
                    tree.row("nonOverlapped", (0..tiles).map(|tile| spec.category(index, tile).0))?;
                    if *name == "variable" {
                        tree.row("overlapped", (0..tiles).map(|tile| spec.category(index, tile).0 / 8))?;
                    }
                    Ok(())
                })?;
                if *interleaved > 0.0 {
                    tree.key("interleaved")?;
                    tree.object(|tree| tree.row("nonOverlapped", (0..tiles).map(|tile| spec.category(index, tile).1)))?;
                }
                Ok(())
            })?;
        }
        Ok(())
    })?;
    tree.key("byVertexType")?;
    tree.object(|tree| {
        for (kind, part) in ["codeBytes", "vertexDataBytes", "descriptorBytes"].iter().enumerate() {
            tree.rows(part, 3, tiles, |vertex, tile| 100 + (vertex * 37 + tile * 3 + kind as u64 * 11) % 900)?;
        }
        Ok(())
    })?;
    if spec.estimates {
        tree.key("byComputeSet")?;
        tree.object(|tree| {
            for (kind, part) in ["codeBytes", "vertexDataBytes"].iter().enumerate() {
                tree.rows(part, spec.compute_sets, tiles, |cs, tile| {
                    100 + (cs * 37 + tile * 3 + kind as u64 * 11) % 900
                })?;
            }
            Ok(())
        })?;
    }
    tree.key("liveness")?;
    tree.object(|tree| {
        tree.key("alwaysLive")?;
        tree.object(|tree| tree.row("bytesByTile", (0..tiles).map(|tile| spec.tile(tile).3)))?;
        tree.key("notAlwaysLive")?;
        tree.object(|tree| {
            tree.row("maxBytesByTile", (0..tiles).map(|tile| spec.tile(tile).0 - spec.tile(tile).3))?;
            tree.key("byProgram")?;
            tree.array(|tree| {
                tree.object(|tree| {
                    tree.member("bytes", 0)?;
                    tree.key("children")?;
                    tree.array(|tree| {
                        for step in 0..spec.steps() {
                            tree.object(|tree| {
                                tree.member("bytes", spec.step_of(step, not_always))?;
                                tree.row("children", std::iter::empty())
                            })?;
                        }
                        Ok(())
                    })
                })
            })
        })
    })
}

/// Writes a lowered-variables report with a few variables on each tile.
pub fn write_variables<W: Write>(tree: &mut Tree<W>, spec: &Spec) -> io::Result<()> {
    tree.object(|tree| {
        tree.member("numTiles", spec.tiles())?;
        tree.key("targetMemoryInfo")?;
        tree.object(|tree| {
            tree.member("tileMemory", spec.bytes_per_tile)?;
            tree.member("interleavedMemoryStart", spec.bytes_per_tile / 3)?;
            tree.row("memoryElementOffsets", (0..13).map(|element| element * 16_384))
        })?;
        tree.key("vars")?;
        tree.array(|tree| {
            let mut id = 0;
            for tile in 0..spec.tiles() {
                let mut offset = 0;
                for (index, (category, _, always, _)) in CATEGORIES.iter().enumerate() {
                    let bytes = spec.category(index, tile).0;
                    tree.object(|tree| {
                        tree.member("var", id)?;
                        tree.key("info")?;
                        tree.object(|tree| {
                            tree.key("allocated")?;
                            tree.truth(true)?;
                            tree.member("tile", tile)?;
                            tree.key("name")?;
                            tree.text(&format!("model/{category}"))?;
                            tree.member("sizeBytes", bytes)?;
                            tree.member("offset", offset)?;
                            tree.key("category")?;
                            tree.text(category)?;
                            tree.key("alwaysLive")?;
                            tree.truth(*always)
                        })
                    })?;
                    id += 1;
                    offset += bytes + 16;
                }
            }
            Ok(())
        })
    })
}

/// Writes an execution profile with several runs of the program's steps.
pub fn write_execution<W: Write>(tree: &mut Tree<W>, spec: &Spec, runs: u64) -> io::Result<()> {
    tree.object(|tree| {
        tree.key("profilerMode")?;
        tree.text("NONE")?;
        tree.row("programTrace", (0..runs).flat_map(|_| 0..spec.steps()))?;
        tree.key("simulation")?;
        tree.object(|tree| tree.member("cycles", 123_456))
    })
}

/// Writes a `profile.pop` with the publicly known tables.
pub fn write_pop(path: &Path, spec: &Spec) -> rusqlite::Result<()> {
    let mut connection = rusqlite::Connection::open(path)?;
    connection.execute_batch(
        "CREATE TABLE memory_by_tile(tile integer primary key, total integer, total_including_gaps integer);
         CREATE TABLE var_categories(id integer primary key, name text);
         CREATE TABLE vars_string_table(id integer primary key, string text);
         CREATE TABLE vars_info(id integer primary key, name integer, tile integer, category integer, size_bytes integer);
         CREATE TABLE programs(id integer primary key, type text, name text);
         CREATE TABLE steps(id integer primary key, type text, program integer, compute_set integer);
         CREATE TABLE nobody_knows(k integer, v blob);",
    )?;
    let all = connection.transaction()?;
    for (index, (name, ..)) in CATEGORIES.iter().enumerate() {
        all.execute("INSERT INTO var_categories VALUES (?1, ?2)", (index, name))?;
        all.execute("INSERT INTO vars_string_table VALUES (?1, ?2)", (index, format!("model/{name}")))?;
    }
    let mut id = 0u64;
    for tile in 0..spec.tiles() {
        let (total, high, ..) = spec.tile(tile);
        all.execute("INSERT INTO memory_by_tile VALUES (?1, ?2, ?3)", (tile as i64, total as i64, high as i64))?;
        for index in 0..CATEGORIES.len() {
            let (a, b) = spec.category(index, tile);
            let mut insert = all.prepare_cached("INSERT INTO vars_info VALUES (?1, ?2, ?3, ?4, ?5)")?;
            insert.execute((id as i64, index as i64, tile as i64, index as i64, (a + b) as i64))?;
            id += 1;
        }
    }
    all.execute("INSERT INTO programs VALUES (0, 'OnTileExecute', 'layer_0/matmul')", [])?;
    for step in 0..5 {
        all.execute("INSERT INTO steps VALUES (?1, 'OnTileExecute', 0, 0)", [step])?;
    }
    all.execute("INSERT INTO nobody_knows VALUES (1, x'14bb')", [])?;
    all.commit()
}
