//! Live memory grouped by class, category, name scope, opcode, element type or source file: the group of each buffer,
//! and each group's curve.

use std::collections::HashMap;

use super::class::Class;
use super::grouping::GroupedCurves;
use super::map::MemoryMap;
use super::names::scope;
use super::program::{ProgramAnalysis, SpaceAnalysis, category};
use super::pyramid::{MaxPyramid, MinPyramid};
use crate::model::{BufferId, Category, Program};

/// Grouping of stacked areas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Grouping {
    /// Class (a guess).
    #[default]
    Class,
    /// XProf's category.
    Category,
    /// First folded name scope.
    Scope,
    /// Kind of instruction.
    Opcode,
    /// Element type.
    Type,
    /// File of the source line.
    Source,
}

impl Grouping {
    /// All groupings.
    pub const ALL: [Self; 6] = [Self::Class, Self::Category, Self::Scope, Self::Opcode, Self::Type, Self::Source];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Class => "Class",
            Self::Category => "Category",
            Self::Scope => "Name scope",
            Self::Opcode => "Op kind",
            Self::Type => "Element type",
            Self::Source => "Source file",
        }
    }

    /// Its word in reports; the same as in filters.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Class => "class",
            Self::Category => "category",
            Self::Scope => "scope",
            Self::Opcode => "op",
            Self::Type => "dtype",
            Self::Source => "source",
        }
    }
}

/// Most groups; the rest are merged into "other".
const MAX_GROUPS: usize = 8;

/// Stacked curves with the names of their groups.
#[derive(Debug)]
pub struct StackedCurves {
    /// Names, in the order in which they are stacked; the last may be "other".
    pub names: Vec<String>,
    /// Group by buffer.
    pub group_of: Vec<u8>,
    /// The curves.
    pub curves: GroupedCurves,
    /// Highest values of the total.
    pub pyramid: MaxPyramid,
    lows: MinPyramid,
    /// The most bytes that each group ever holds.
    pub most: Vec<u64>,
}

impl StackedCurves {
    /// Groups the live memory of a memory space.
    #[must_use]
    pub fn new(
        model: &Program,
        analysis: &ProgramAnalysis,
        space: &SpaceAnalysis,
        map: &MemoryMap,
        grouping: Grouping,
    ) -> Self {
        let (names, group_of) = match grouping {
            Grouping::Class => {
                let classes = analysis.classes(model);
                let names = Class::ALL.iter().map(|class| class.name().to_owned()).collect();
                let group_of =
                    (0..model.buffers.len()).map(|row| classes.of(BufferId::from_index(row)).place() as u8).collect();
                (names, group_of)
            }
            Grouping::Category => {
                let names = Category::ALL.iter().map(|c| c.name().to_owned()).collect();
                let group_of =
                    (0..model.buffers.len()).map(|row| category(model, BufferId::from_index(row)) as u8).collect();
                (names, group_of)
            }
            _ => named_groups(model, map, grouping),
        };
        let group = |buffer: BufferId| group_of.get(buffer.index()).map_or(0, |&g| g as usize);
        let curves = GroupedCurves::new(model, analysis, space, map, names.len(), &group);
        let (pyramid, lows) = (MaxPyramid::new(&curves.total), MinPyramid::new(&curves.total));
        let most =
            curves.groups.iter().map(|curve| curve.changes().map(|(_, bytes)| bytes).max().unwrap_or(0)).collect();
        Self { names, group_of, curves, pyramid, lows, most }
    }

    /// The highest total at points `from..to` and the first point with it; `None` for an empty range.
    #[must_use]
    pub fn highest(&self, from: u32, to: u32) -> Option<(u64, u32)> {
        self.pyramid.max_in(&self.curves.total, from, to)
    }

    /// The lowest total at points `from..to`; 0 for an empty range.
    #[must_use]
    pub fn lowest(&self, from: u32, to: u32) -> u64 {
        self.lows.min_in(from, to).unwrap_or(0)
    }
}

/// Groups by a name: the largest (bytes times time) keep theirs, the rest is "other".
fn named_groups(program: &Program, map: &MemoryMap, grouping: Grouping) -> (Vec<String>, Vec<u8>) {
    let name_of = |buffer: BufferId| -> String {
        let Some(instruction) = program.buffers.instruction_of(buffer) else { return "unnamed".to_owned() };
        match grouping {
            Grouping::Opcode | Grouping::Category | Grouping::Class => program.opcode_name(instruction).to_owned(),
            Grouping::Type => program
                .buffer_node(buffer)
                .map_or_else(|| "unknown".to_owned(), |node| node.element_type.name().to_owned()),
            Grouping::Source => {
                let source = program.text.metadata(instruction).source;
                let file = source.as_ref().map_or("", |source| source.file.as_str());
                let file = file.rsplit(['/', '\\']).next().unwrap_or(file);
                if file.is_empty() { "no source".to_owned() } else { file.to_owned() }
            }
            Grouping::Scope => {
                let op_name = program.text.op_name(instruction);
                if let Some((name, _)) = scope::argument(&op_name) {
                    return if name.is_empty() { "unnamed".to_owned() } else { name.to_owned() };
                }
                let path = scope::path(&op_name);
                let inner = path.len().saturating_sub(1);
                let folded: Vec<String> = path[..inner.min(2)].iter().map(|part| scope::fold(part)).collect();
                if folded.is_empty() { "no scope".to_owned() } else { folded.join("/") }
            }
        }
    };
    let mut index: HashMap<String, usize> = HashMap::new();
    let mut names: Vec<(String, u128)> = Vec::new();
    let mut group_of = vec![u32::MAX; program.buffers.len()];
    for item in &map.boxes {
        let name = name_of(item.buffer);
        let group = *index.entry(name.clone()).or_insert_with(|| {
            names.push((name, 0));
            names.len() - 1
        });
        names[group].1 += u128::from(item.size) * u128::from(item.end - item.start + 1);
        group_of[item.buffer.index()] = group as u32;
    }
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by(|&a, &b| names[b].1.cmp(&names[a].1).then_with(|| names[a].0.cmp(&names[b].0)));
    let mut slot = vec![0u8; names.len()];
    let kept = if order.len() > MAX_GROUPS + 1 { MAX_GROUPS } else { order.len() };
    for (rank, &group) in order.iter().enumerate() {
        slot[group] = rank.min(kept) as u8;
    }
    let mut list: Vec<String> = order.iter().take(kept).map(|&group| names[group].0.clone()).collect();
    if kept < order.len() {
        list.push("other".to_owned());
    }
    let other = list.len().saturating_sub(1) as u8;
    let group_of = group_of.into_iter().map(|g| slot.get(g as usize).copied().unwrap_or(other)).collect();
    (list, group_of)
}
