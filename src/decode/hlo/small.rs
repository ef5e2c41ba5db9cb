//! The small, nested messages of a module, decoded with prost: aliases, donors, shardings, stack frames.

use prost::Message;

use super::directory::Directory;
use super::fields::module;
use super::region::Region;
use crate::decode::reporter::Reporter;
use crate::model::{BufferDonor, DeviceOrder, InputOutputAlias, Program, Sharding, ShardingKind, SourceLine};

/// Generated types of `proto/hlo.proto`.
#[expect(clippy::pedantic, missing_docs, reason = "generated code")]
pub mod proto {
    include!(concat!(env!("OUT_DIR"), "/highwater.hlo.rs"));
}

/// Most frames of a stack; deeper ones are from damaged or cyclic tables.
const MAX_FRAMES: usize = 128;

/// Source locations of a module. All ids in it are 1-based, 0 is none.
#[derive(Debug, Default)]
pub struct StackFrames(proto::StackFrameIndexProto);

impl StackFrames {
    /// The frames from an id outwards, innermost first.
    pub fn walk(&self, mut id: i32) -> Vec<SourceLine> {
        let mut frames = Vec::new();
        while frames.len() < MAX_FRAMES {
            let Some(frame) = one_based(&self.0.stack_frames, id) else { break };
            if let Some(place) = one_based(&self.0.file_locations, frame.file_location_id) {
                frames.push(SourceLine {
                    file: one_based(&self.0.file_names, place.file_name_id).cloned().unwrap_or_default(),
                    function: one_based(&self.0.function_names, place.function_name_id).cloned().unwrap_or_default(),
                    line: place.line,
                    column: place.column,
                });
            }
            id = frame.parent_frame_id;
        }
        frames
    }
}

fn one_based<T>(items: &[T], id: i32) -> Option<&T> {
    usize::try_from(id).ok()?.checked_sub(1).and_then(|i| items.get(i))
}

/// The small fields of a module.
#[derive(Debug, Default)]
pub struct Small {
    /// The fields as one message: a module without its large fields.
    module: proto::HloModuleProto,
}

impl Small {
    /// Decodes the small fields that the directory found.
    pub fn read(module: &Region, directory: &Directory, reporter: &Reporter) -> Self {
        let mut small = Self::default();
        let bytes = |&(_, start, end): &(u32, usize, usize)| module.get(start..end).unwrap_or(&[]);
        for field in &directory.small {
            let result = match field.0 {
                module::INPUT_OUTPUT_ALIAS => {
                    small.module.input_output_alias.get_or_insert_default().merge(bytes(field))
                }
                module::SPMD_OUTPUT_SHARDING => {
                    small.module.spmd_output_sharding.get_or_insert_default().merge(bytes(field))
                }
                module::SPMD_PARAMETERS_SHARDINGS => {
                    proto::OpSharding::decode(bytes(field)).map(|s| small.module.spmd_parameters_shardings.push(s))
                }
                module::DEVICE_ASSIGNMENT => small.module.device_assignment.get_or_insert_default().merge(bytes(field)),
                module::STACK_FRAME_INDEX => small.module.stack_frame_index.get_or_insert_default().merge(bytes(field)),
                module::BUFFER_DONOR => small.module.buffer_donor.get_or_insert_default().merge(bytes(field)),
                module::FRONTEND_ATTRIBUTES => {
                    small.module.frontend_attributes.get_or_insert_default().merge(bytes(field))
                }
                _ => Ok(()),
            };
            if let Err(error) = result {
                let at = module.reader_at(field.1).offset();
                reporter.damaged(format!("a field of the module could not be read: {error}"), Some(at));
            }
        }
        small
    }

    /// The stack frames, which the details of single rows need later.
    pub fn take_frames(&mut self) -> StackFrames {
        StackFrames(self.module.stack_frame_index.take().unwrap_or_default())
    }

    /// Fills in what the program keeps of the rest.
    pub fn fill(self, program: &mut Program) {
        let module = self.module;
        let aliases = module.input_output_alias.unwrap_or_default().entries;
        program.aliases = aliases
            .into_iter()
            .map(|entry| InputOutputAlias {
                output_index: entry.output_shape_index.into(),
                parameter: entry.parameter_number,
                parameter_index: entry.parameter_shape_index.into(),
                must: entry.kind == 2,
            })
            .collect();
        let donors = module.buffer_donor.unwrap_or_default().entries;
        program.donors = donors
            .into_iter()
            .map(|entry| BufferDonor {
                parameter: entry.parameter_number,
                parameter_index: entry.parameter_shape_index.into(),
            })
            .collect();
        program.parameter_shardings = module.spmd_parameters_shardings.iter().map(|s| sharding(s, 0)).collect();
        program.output_sharding = module.spmd_output_sharding.as_ref().map(|s| sharding(s, 0));
        if let Some(assignment) = module.device_assignment {
            program.replicas = u32::try_from(assignment.replica_count).unwrap_or(0);
            program.partitions = u32::try_from(assignment.computation_count).unwrap_or(0);
        }
        let mut attributes: Vec<_> = module.frontend_attributes.unwrap_or_default().map.into_iter().collect();
        attributes.sort();
        program.attributes = attributes;
    }
}

/// Converts `OpSharding`. An empty message means replicated.
pub fn sharding(message: &proto::OpSharding, depth: usize) -> Sharding {
    let kind = match message.r#type {
        0 => ShardingKind::Replicated,
        1 => ShardingKind::Maximal,
        2 => ShardingKind::Tuple,
        3 => ShardingKind::Tiled,
        4 => ShardingKind::Manual,
        _ => ShardingKind::Unknown,
    };
    let mut tiles = message.tile_assignment_dimensions.clone();
    let mut kind = kind;
    let mut order = order(message);
    if let (true, Some(named)) = (tiles.is_empty(), &message.named_sharding) {
        tiles = named_tiles(named);
        order = named_order(named);
        if kind == ShardingKind::Replicated && tiles.iter().any(|&parts| parts > 1) {
            kind = ShardingKind::Tiled;
        }
    }
    let elements = if depth < 8 {
        message.tuple_shardings.iter().map(|element| sharding(element, depth + 1)).collect()
    } else {
        Vec::new()
    };
    let copies = message.replicate_on_last_tile_dim || !message.last_tile_dims.is_empty();
    Sharding { kind, tiles, replicate_on_last: copies, order, elements }
}

/// The devices of the shards: a list, or in the form of `IotaTileAssignment`.
fn order(message: &proto::OpSharding) -> DeviceOrder {
    match (&message.tile_assignment_devices[..], &message.iota_reshape_dims[..]) {
        ([], []) => DeviceOrder::Unknown,
        ([], dimensions) => DeviceOrder::Arranged {
            dimensions: dimensions.to_vec(),
            transposed: message
                .iota_transpose_perm
                .iter()
                .map(|&place| usize::try_from(place).unwrap_or(usize::MAX))
                .collect(),
        },
        (devices, _) => DeviceOrder::Listed(devices.to_vec()),
    }
}

/// The devices of the shards of a mesh: those of the axes that divide a dimension, in the order of the dimensions, then
/// copies along all other axes. Unknown for meshes of chosen devices and for parts of axes.
fn named_order(named: &proto::NamedShardingProto) -> DeviceOrder {
    let Some(mesh) = named.mesh.as_ref().filter(|mesh| mesh.device_ids.is_empty()) else { return DeviceOrder::Unknown };
    let mut transposed = Vec::new();
    for axis in named.dim_shardings.iter().flat_map(|dimension| &dimension.axes) {
        match usize::try_from(axis.mesh_axis_index) {
            Ok(place) if axis.sub_axis_info.is_none() && !transposed.contains(&place) => transposed.push(place),
            _ => return DeviceOrder::Unknown,
        }
    }
    let others: Vec<usize> = (0..mesh.axes.len()).filter(|place| !transposed.contains(place)).collect();
    transposed.extend(others);
    DeviceOrder::Arranged { dimensions: mesh.axes.iter().map(|axis| axis.size).collect(), transposed }
}

/// Parts of each dimension from the mesh axes that divide it.
fn named_tiles(named: &proto::NamedShardingProto) -> Vec<i64> {
    let axes = named.mesh.as_ref().map_or(&[][..], |mesh| &mesh.axes);
    let size = |axis: &proto::named_sharding_proto::AxisRef| {
        if let Some(sub) = &axis.sub_axis_info {
            return sub.size;
        }
        usize::try_from(axis.mesh_axis_index).ok().and_then(|i| axes.get(i)).map_or(1, |axis| axis.size)
    };
    named.dim_shardings.iter().map(|d| d.axes.iter().fold(1i64, |n, axis| n.saturating_mul(size(axis)))).collect()
}
