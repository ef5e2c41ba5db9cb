//! XProf's `memory_viewer` as JSON (`PreprocessResult`): the results for one memory space of one module.

use std::collections::HashMap;

use serde_json::Value;

use super::value::{self, double, get, int, list, mib, text};
use crate::decode::decoder::{Context, DecodeError, Decoder, Family, Reads};
use crate::decode::xla_report::assemble::{Assembler, Named};
use crate::model::{
    Allocation, BufferId, Bytes, Category, MemorySpace, Metadata, Profile, ReportedPeak, ReportedSpace, Shape,
    SourceLine,
};
use crate::source::Input;

/// `memory_viewer` as JSON.
pub struct MemoryViewerDecoder;

/// Frames of one stack beyond this number are left out.
const MAX_FRAMES: usize = 128;

impl Decoder for MemoryViewerDecoder {
    fn format(&self) -> &'static str {
        "XProf memory viewer (JSON)"
    }

    fn reads(&self) -> Reads {
        Reads { family: Family::Run, words: "XProf's memory viewer", patterns: &["*memory_viewer*.json"] }
    }

    fn recognises(&self, input: &Input) -> bool {
        value::has_key(
            input.head(),
            &["heapSizes", "maxHeap", "totalBufferAllocationMib", "indefiniteLifetimes", "allocationTimeline"],
        )
    }

    fn decode(&self, input: &Input, context: Context<'_>) -> Result<Profile, DecodeError> {
        let bytes = input.load(context.progress)?;
        let root = value::parse(&bytes)?;
        let (color, said) = color_of(input.file_name());
        if !said {
            context
                .reporter
                .info("XProf's JSON does not say which memory space it is about; it is shown as HBM, XProf's first");
        }
        let name = text(&root, "moduleName").to_owned();
        let mut reading = Reading { assembler: Assembler::new(&name), color, buffers: HashMap::new() };
        let peak = reading.read(&root);
        let mut program = reading.assembler.finish();
        if program.allocations.is_empty() && peak.curve.is_empty() && text(&root, "moduleName").is_empty() {
            return Err(DecodeError::Empty("a memory viewer's result without memory".to_owned()));
        }
        if peak.folded > Bytes::ZERO {
            context.reporter.info(format!(
                "Buffers under 16 KiB, {} at the peak, are not named in XProf's JSON",
                peak.folded.exact()
            ));
        }
        program.reported = vec![ReportedSpace {
            color,
            allocated: Some(mib(&root, "totalBufferAllocationMib")),
            always_live: Some(mib(&root, "indefiniteBufferAllocationMib")),
            parameters: Some(mib(&root, "entryComputationParametersMib")),
            live_out: Some(mib(&root, "maybeLiveOutMib")),
            non_reusable: Some(mib(&root, "nonReusableMib")),
            peak: Some(peak),
        }];
        Ok(Profile { name, programs: vec![program], ..Profile::default() })
    }
}

/// The memory space, and whether it is in the file name: `….msN.json`, or `memory_space=N` of a saved URL.
fn color_of(file_name: &str) -> (MemorySpace, bool) {
    let number = |at: usize| {
        let rest = &file_name[at..];
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse::<i64>().ok()
    };
    for key in [".ms", "memory_space=", "memory_space_"] {
        if let Some(color) = file_name.rfind(key).and_then(|at| number(at + key.len())) {
            return (MemorySpace(color), true);
        }
    }
    (MemorySpace::HBM, file_name.ends_with(".memory_viewer.json"))
}

struct Reading {
    assembler: Assembler,
    color: MemorySpace,
    buffers: HashMap<i64, BufferId>,
}

impl Reading {
    fn read(&mut self, root: &Value) -> ReportedPeak {
        let objects = list(root, "maxHeap");
        // Objects know most of a buffer, then blocks, then the lists of allocations.
        for object in objects.iter().filter(|object| int(object, "logicalBufferId") >= 0) {
            if !is_folded(object) {
                self.object(object);
            }
        }
        let blocks = list(root, "bufferBlocks");
        for block in blocks.iter().filter(|block| int(block, "logicalBufferId") >= 0) {
            self.block(block);
        }
        let always_live = self.indefinite(list(root, "indefiniteLifetimes"));
        self.containers(root, blocks);
        let mut peak = ReportedPeak {
            bytes: mib(root, "peakHeapMib"),
            unpadded: mib(root, "peakUnpaddedHeapMib"),
            event: u32::try_from(int(root, "peakHeapSizePosition")).unwrap_or(0),
            always_live,
            ..ReportedPeak::default()
        };
        let sizes = list(root, "heapSizes").iter().map(|v| value::mib_to_bytes(value::as_double(v)).0);
        let unpadded = list(root, "unpaddedHeapSizes").iter().map(|v| value::mib_to_bytes(value::as_double(v)).0);
        peak.curve = sizes.zip(unpadded.chain(std::iter::repeat(0))).collect();
        for object in objects {
            if is_folded(object) {
                peak.folded += mib(object, "logicalBufferSizeMib");
            } else if let Some(&buffer) = self.buffers.get(&int(object, "logicalBufferId"))
                && !peak.always_live.contains(&buffer)
                && !self.is_indefinite(buffer)
            {
                peak.heap.push(buffer);
            }
        }
        for (id, span) in get(root, "logicalBufferSpans").as_object().into_iter().flatten() {
            let Ok(number) = id.parse::<i64>() else { continue };
            let place = |key| u32::try_from(int(span, key)).unwrap_or(0);
            let (start, limit) = (place("start"), place("limit"));
            let buffer = self.spanned(number, start, root);
            peak.spans.push((buffer, start, limit));
        }
        peak.spans.sort_unstable();
        peak
    }

    fn is_indefinite(&mut self, buffer: BufferId) -> bool {
        let program = self.assembler.program();
        program.buffers.allocation_of(buffer).is_some_and(|id| program.allocations[id.index()].is_indefinite())
    }

    fn add(&mut self, number: i64, size: Bytes, named: Named) -> BufferId {
        if let Some(&buffer) = self.buffers.get(&number) {
            return buffer;
        }
        let buffer = self.assembler.buffer(number, size, self.color, named);
        self.buffers.insert(number, buffer);
        buffer
    }

    /// A row of the heap at the peak.
    fn object(&mut self, object: &Value) {
        let named = Named {
            name: text(object, "instructionName").to_owned(),
            shape: Shape::parse(text(object, "shapeString")),
            opcode: text(object, "opCode").to_owned(),
            metadata: metadata(object),
        };
        self.add(int(object, "logicalBufferId"), mib(object, "logicalBufferSizeMib"), named);
    }

    /// A rectangle of the timeline.
    fn block(&mut self, block: &Value) {
        let named = Named {
            name: text(block, "name").to_owned(),
            shape: Shape::parse(text(block, "shapeString")),
            opcode: String::new(),
            metadata: metadata(block),
        };
        self.add(int(block, "logicalBufferId"), Bytes(double(block, "size").max(0.0) as u64), named);
    }

    /// Allocations that live throughout; returns the largest buffer of each, as XProf chooses it.
    fn indefinite(&mut self, allocations: &[Value]) -> Vec<BufferId> {
        let mut largest = Vec::new();
        for described in allocations {
            let attributes: Vec<&str> = list(described, "attributes").iter().filter_map(Value::as_str).collect();
            let is_parameter = attributes.contains(&"entry computation parameter");
            let maybe_live_out = attributes.contains(&"may-be live out");
            let row = self.assembler.allocation(Allocation {
                index: int(described, "id"),
                size: mib(described, "sizeMib"),
                color: self.color,
                is_parameter,
                maybe_live_out,
                is_constant: !is_parameter && !maybe_live_out,
                ..Allocation::default()
            });
            let mut best: Option<(Bytes, BufferId)> = None;
            for logical in list(described, "logicalBuffers") {
                let index: Vec<String> =
                    list(logical, "shapeIndex").iter().map(|n| value::as_int(n).to_string()).collect();
                let name = text(logical, "hloName");
                let name = if index.is_empty() { name.to_owned() } else { format!("{name}{{{}}}", index.join(",")) };
                let size = mib(logical, "sizeMib");
                let named = Named { name, shape: Shape::parse(text(logical, "shape")), ..Named::default() };
                let buffer = self.add(int(logical, "id"), size, named);
                self.assembler.assign(row, buffer, 0);
                if size > best.map_or(Bytes::ZERO, |(size, _)| size) {
                    best = Some((size, buffer));
                }
            }
            largest.extend(best.map(|(_, buffer)| buffer));
        }
        largest
    }

    /// Heap allocations: the containers of the timeline, and what is left of the sum.
    fn containers(&mut self, root: &Value, blocks: &[Value]) {
        let mut rows: Vec<(u64, u64, u32)> = Vec::new();
        let mut left = mib(root, "totalBufferAllocationMib").saturating_sub(mib(root, "indefiniteBufferAllocationMib"));
        let bytes = |block: &Value, key| double(block, key).clamp(0.0, 1.8e19) as u64;
        for block in blocks.iter().filter(|block| int(block, "logicalBufferId") < 0) {
            let (offset, size) = (bytes(block, "offset"), bytes(block, "size"));
            left = left.saturating_sub(Bytes(size));
            let row = self.assembler.allocation(Allocation {
                index: -1 - rows.len() as i64,
                size: Bytes(size),
                color: self.color,
                is_thread_local: Category::from_name(text(block, "category")) == Some(Category::ThreadLocal),
                ..Allocation::default()
            });
            rows.push((offset, offset.saturating_add(size), row));
        }
        let rest = (left > Bytes::ZERO).then(|| {
            self.assembler.allocation(Allocation {
                index: -1 - rows.len() as i64,
                size: left,
                color: self.color,
                ..Allocation::default()
            })
        });
        let mut placed = std::collections::HashSet::new();
        for block in blocks {
            let Some(&buffer) = self.buffers.get(&int(block, "logicalBufferId")) else { continue };
            let offset = bytes(block, "offset");
            let Some(&(start, _, row)) = rows.iter().find(|(start, end, _)| (*start..*end).contains(&offset)) else {
                continue;
            };
            if placed.insert(buffer) && !self.is_indefinite(buffer) {
                self.assembler.assign(row, buffer, offset - start);
            }
        }
        // Temporaries at the peak whose place XProf does not print.
        let mut unplaced: Vec<BufferId> = self.buffers.values().copied().collect();
        unplaced.sort_unstable();
        if let Some(row) = rows.first().map(|row| row.2).or(rest) {
            for buffer in unplaced {
                if self.assembler.program().buffers.allocation_of(buffer).is_none() {
                    self.assembler.assign(row, buffer, 0);
                }
            }
        }
    }

    /// The buffer of a span; where nothing else names it, the event at its begin does.
    fn spanned(&mut self, number: i64, start: u32, root: &Value) -> BufferId {
        let name = list(root, "hloInstructionNames").get(start as usize).and_then(Value::as_str).unwrap_or("");
        let named = Named { name: format!("{name} (buffer {number})"), ..Named::default() };
        self.add(number, Bytes::ZERO, named)
    }
}

/// Whether a row stands for everything under 16 KiB.
fn is_folded(object: &Value) -> bool {
    text(object, "instructionName").is_empty() && text(object, "label").starts_with("small (<")
        || int(object, "logicalBufferId") < 0
}

fn metadata(object: &Value) -> Metadata {
    let info = get(object, "sourceInfo");
    let file = text(info, "fileName");
    let source = (!file.is_empty()).then(|| SourceLine {
        file: file.to_owned(),
        line: i32::try_from(int(info, "lineNumber")).unwrap_or(0),
        ..SourceLine::default()
    });
    let stack = text(info, "stackFrame").lines().take(MAX_FRAMES).filter_map(frame).collect();
    Metadata { op_name: text(object, "tfOpName").to_owned(), op_type: String::new(), source, stack }
}

/// `file:line:column`.
fn frame(line: &str) -> Option<SourceLine> {
    let (rest, column) = line.trim().rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    Some(SourceLine {
        file: file.to_owned(),
        function: String::new(),
        line: line.parse().ok()?,
        column: column.parse().unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_space_stands_in_the_name() {
        assert_eq!(color_of("x.memory_viewer.ms3.json"), (MemorySpace::CMEM, true));
        assert_eq!(color_of("x.memory_viewer.json"), (MemorySpace::HBM, true));
        assert_eq!(color_of("data?tag=memory_viewer&memory_space=1"), (MemorySpace::VMEM, true));
        assert_eq!(color_of("unknown.bin"), (MemorySpace::HBM, false));
    }

    #[test]
    fn frames_of_a_stack() {
        let found = frame("/home/a:b/m.py:61:15").expect("a frame");
        assert_eq!((found.file.as_str(), found.line, found.column), ("/home/a:b/m.py", 61, 15));
    }
}
