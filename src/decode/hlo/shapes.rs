//! Decodes `ShapeProto` to [`Shape`], and interns shapes and opcodes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::fast::RandomState;

use super::fields::{layout, shape, split, tile};
use crate::decode::wire::{LEN, Reader, Result, VARINT, WireError, field};
use crate::model::{ElementType, Layout, Opcode, OpcodeTable, Shape, ShapeId, ShapeNode};
use crate::source::Progress;

/// Tuples nested deeper than this are refused.
const MAX_DEPTH: u32 = 48;

/// Size of each thread's opcode cache.
const OPCODE_SLOTS: usize = 64;

/// Base-2 logarithm of the size of each thread's shape cache: programs have some hundred shapes.
const SHAPE_BITS: u32 = 9;

/// Nodes of a shape after each of which cancellation is looked for: a program may return a million arrays.
const CHECK_EVERY: usize = 4096;

/// Reads a shape.
///
/// # Errors
/// If bytes are damaged, tuples nested too deeply, or it was cancelled.
fn decode_shape(reader: Reader<'_>, layouts: &mut Layouts, progress: &Progress) -> Result<Shape> {
    let mut nodes = Vec::with_capacity(1);
    decode_node(reader, &mut nodes, (0, 0), layouts, progress)?;
    Ok(Shape { nodes })
}

/// Layouts by their bytes: the arrays of a program share a few.
type Layouts = HashMap<Box<[u8]>, Arc<Layout>, RandomState>;

fn decode_node(
    mut reader: Reader<'_>,
    nodes: &mut Vec<ShapeNode>,
    (parent, depth): (u32, u32),
    layouts: &mut Layouts,
    progress: &Progress,
) -> Result<()> {
    if nodes.len() % CHECK_EVERY == CHECK_EVERY - 1 && progress.check().is_err() {
        return Err(WireError { offset: reader.offset(), what: "cancelled" });
    }
    let here = nodes.len();
    nodes.push(ShapeNode { parent, ..ShapeNode::default() });
    while let Some(tag) = reader.tag()? {
        match field(tag) {
            (shape::ELEMENT_TYPE, VARINT) => {
                nodes[here].element_type = ElementType(u8::try_from(reader.varint()?).unwrap_or(0));
            }
            (shape::DIMENSIONS, VARINT | LEN) => {
                let dimensions = &mut nodes[here].dimensions;
                reader.numbers(tag, |n| dimensions.push(n))?;
            }
            (shape::IS_DYNAMIC_DIMENSION, VARINT | LEN) => {
                let dynamic = &mut nodes[here].dynamic;
                reader.numbers(tag, |n| dynamic.push(n != 0))?;
            }
            (shape::TUPLE_SHAPES, LEN) => {
                let offset = reader.offset();
                let element = reader.message()?;
                if depth >= MAX_DEPTH {
                    return Err(WireError { offset, what: "tuples nested too deeply" });
                }
                let child = nodes.len() as u32;
                nodes[here].children.push(child);
                decode_node(element, nodes, (here as u32, depth + 1), layouts, progress)?;
            }
            (shape::LAYOUT, LEN) => {
                let mut again = reader;
                let bytes = reader.bytes()?;
                // A message that is given twice is merged.
                if let Some(layout) = &mut nodes[here].layout {
                    decode_layout(again.message()?, Arc::make_mut(layout))?;
                } else if let Some(layout) = layouts.get(bytes) {
                    nodes[here].layout = Some(Arc::clone(layout));
                } else {
                    let mut layout = Layout::default();
                    decode_layout(again.message()?, &mut layout)?;
                    let layout = Arc::new(layout);
                    layouts.insert(bytes.into(), Arc::clone(&layout));
                    nodes[here].layout = Some(layout);
                }
            }
            _ => reader.skip(tag)?,
        }
    }
    let node = &mut nodes[here];
    if !node.dynamic.contains(&true) {
        node.dynamic = Vec::new();
    }
    if !node.children.is_empty() && !node.is_tuple() {
        // An array has no children; drop any in the file.
        node.children = Vec::new();
        nodes.truncate(here + 1);
    }
    nodes[here].subtree_len = (nodes.len() - here) as u32;
    Ok(())
}

fn decode_layout(mut reader: Reader<'_>, layout: &mut Layout) -> Result<()> {
    while let Some(tag) = reader.tag()? {
        match field(tag) {
            (layout::MINOR_TO_MAJOR, VARINT | LEN) => {
                reader.numbers(tag, |n| layout.minor_to_major.push(u32::try_from(n).unwrap_or(u32::MAX)))?;
            }
            (layout::TILES, LEN) => {
                let mut tile = Vec::new();
                let mut message = reader.message()?;
                while let Some(tag) = message.tag()? {
                    match field(tag) {
                        (tile::DIMENSIONS, VARINT | LEN) => message.numbers(tag, |n| tile.push(n))?,
                        _ => message.skip(tag)?,
                    }
                }
                layout.tiles.push(tile);
            }
            (layout::ELEMENT_SIZE_IN_BITS, VARINT) => {
                layout.element_size_in_bits = u32::try_from(reader.varint()?).unwrap_or(0);
            }
            (layout::MEMORY_SPACE, VARINT) => layout.memory_space = reader.int()?,
            (layout::DYNAMIC_SHAPE_METADATA_PREFIX_BYTES, VARINT) => layout.dynamic_prefix_bytes = reader.int()?,
            (layout::TAIL_PADDING_ALIGNMENT_IN_ELEMENTS, VARINT) => layout.tail_padding_alignment = reader.int()?,
            (layout::SPLIT_CONFIGS, LEN) => {
                let mut message = reader.message()?;
                let (mut dimension, mut indices) = (0, Vec::new());
                while let Some(tag) = message.tag()? {
                    match field(tag) {
                        (split::DIMENSION, VARINT) => dimension = message.int()?,
                        (split::SPLIT_INDICES, VARINT | LEN) => message.numbers(tag, |n| indices.push(n))?,
                        _ => message.skip(tag)?,
                    }
                }
                layout.splits.push((dimension, indices));
            }
            _ => reader.skip(tag)?,
        }
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Tables {
    shape_ids: HashMap<Box<[u8]>, ShapeId, RandomState>,
    shapes: Vec<Shape>,
    layouts: Layouts,
    opcodes: OpcodeTable,
}

/// Shapes and opcodes of a module, shared by the threads that decode it. Row 0 of the shapes is an empty shape, used
/// for shapes that could not be read.
#[derive(Debug)]
pub struct Interner<'p> {
    tables: Mutex<Tables>,
    progress: &'p Progress,
}

impl<'p> Interner<'p> {
    /// Without shapes and opcodes yet; reading a shape ends once `progress` was cancelled.
    pub fn new(progress: &'p Progress) -> Self {
        Self { tables: Mutex::new(Tables { shapes: vec![Shape::default()], ..Tables::default() }), progress }
    }

    fn shape(&self, reader: Reader<'_>, bytes: &[u8]) -> Result<ShapeId> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&id) = tables.shape_ids.get(bytes) {
            return Ok(id);
        }
        let shape = decode_shape(reader, &mut tables.layouts, self.progress)?;
        let id = ShapeId::from_index(tables.shapes.len());
        tables.shapes.push(shape);
        tables.shape_ids.insert(bytes.into(), id);
        Ok(id)
    }

    fn opcode(&self, name: &[u8]) -> Opcode {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.opcodes.intern(&String::from_utf8_lossy(name))
    }

    /// The tables.
    pub fn finish(self) -> (Vec<Shape>, OpcodeTable) {
        let tables = self.tables.into_inner().unwrap_or_else(PoisonError::into_inner);
        (tables.shapes, tables.opcodes)
    }
}

/// One thread's view of an [`Interner`]: entries seen before need no lock, and those seen lately no look into a map.
pub struct LocalInterner<'a> {
    shared: &'a Interner<'a>,
    shapes: HashMap<&'a [u8], ShapeId, RandomState>,
    opcodes: HashMap<&'a [u8], Opcode, RandomState>,
    recent_shapes: Vec<(&'a [u8], ShapeId)>,
    recent_opcodes: [(&'a [u8], Opcode); OPCODE_SLOTS],
}

impl<'a> LocalInterner<'a> {
    /// A view for one thread.
    pub fn new(shared: &'a Interner<'a>) -> Self {
        Self {
            shared,
            shapes: HashMap::default(),
            opcodes: HashMap::default(),
            recent_shapes: vec![(&[], ShapeId(0)); 1 << SHAPE_BITS],
            recent_opcodes: [(&[], Opcode::UNKNOWN); OPCODE_SLOTS],
        }
    }

    /// Id of the shape whose bytes these are, which begin at `base` in the file.
    ///
    /// # Errors
    /// Damaged bytes.
    pub fn shape(&mut self, bytes: &'a [u8], base: u64) -> Result<ShapeId> {
        let slot = shape_slot(bytes);
        let (known, id) = self.recent_shapes[slot];
        if bytes == known && !bytes.is_empty() {
            return Ok(id);
        }
        let id = match self.shapes.get(bytes) {
            Some(&id) => id,
            None => {
                let id = self.shared.shape(Reader::new(bytes, base), bytes)?;
                self.shapes.insert(bytes, id);
                id
            }
        };
        self.recent_shapes[slot] = (bytes, id);
        Ok(id)
    }

    /// As [`Self::shape`], for short-lived bytes.
    ///
    /// # Errors
    /// Damaged bytes.
    pub fn shape_of_copy(&self, bytes: &[u8], base: u64) -> Result<ShapeId> {
        self.shared.shape(Reader::new(bytes, base), bytes)
    }

    /// The opcode with a name.
    pub fn opcode(&mut self, name: &'a [u8]) -> Opcode {
        // A few dozen names recur: use a small direct-mapped cache in front of the map.
        let slot = match name {
            [first, .., last] => (usize::from(*first) * 7 + usize::from(*last) * 3 + name.len()) % OPCODE_SLOTS,
            _ => 0,
        };
        let (known, opcode) = self.recent_opcodes[slot];
        if name == known {
            return opcode;
        }
        let opcode = match self.opcodes.get(name) {
            Some(&opcode) => opcode,
            None => {
                let opcode = self.shared.opcode(name);
                self.opcodes.insert(name, opcode);
                opcode
            }
        };
        self.recent_opcodes[slot] = (name, opcode);
        opcode
    }
}

/// The place of a shape in a cache, from its first and last bytes: types and dimensions, and the layout.
fn shape_slot(bytes: &[u8]) -> usize {
    let word = |chunk: Option<&[u8; 8]>| chunk.map_or(0, |chunk| u64::from_le_bytes(*chunk));
    let (first, last) = (word(bytes.first_chunk()), word(bytes.last_chunk()));
    let mixed = (first ^ last.rotate_left(29) ^ bytes.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (u64::BITS - SHAPE_BITS)) as usize
}
