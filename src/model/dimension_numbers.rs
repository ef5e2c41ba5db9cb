//! Which dimensions of an instruction belong to which of its operands.

/// The dimension numbers of an instruction, as
/// [`HloInstructionProto`](https://github.com/openxla/xla/blob/main/xla/service/hlo.proto) and `xla_data.proto` name
/// them; empty where the instruction has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DimensionNumbers {
    /// `dimensions`: of a broadcast, for each dimension of the operand that of the result; of a transpose, for each
    /// dimension of the result that of the operand; of a reduction, those reduced.
    pub dimensions: Vec<i64>,
    /// Of a matrix product.
    pub dot: DotNumbers,
    /// Of a convolution.
    pub convolution: ConvolutionNumbers,
    /// Of a gather.
    pub gather: GatherNumbers,
    /// Of a scatter.
    pub scatter: ScatterNumbers,
}

/// `DotDimensionNumbers`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DotNumbers {
    /// Dimensions of the left operand that are summed over.
    pub lhs_contracting: Vec<i64>,
    /// Those of the right operand.
    pub rhs_contracting: Vec<i64>,
    /// Dimensions of the left operand that the result begins with.
    pub lhs_batch: Vec<i64>,
    /// Those of the right operand.
    pub rhs_batch: Vec<i64>,
}

/// `ConvolutionDimensionNumbers`; a dimension 0 is left out of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConvolutionNumbers {
    /// Batch of the input.
    pub input_batch: i64,
    /// Space of the input.
    pub input_spatial: Vec<i64>,
    /// Output features of the kernel.
    pub kernel_output_feature: i64,
    /// Space of the kernel.
    pub kernel_spatial: Vec<i64>,
    /// Batch of the output.
    pub output_batch: i64,
    /// Features of the output.
    pub output_feature: i64,
    /// Space of the output.
    pub output_spatial: Vec<i64>,
}

/// `GatherDimensionNumbers`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GatherNumbers {
    /// Dimensions of the result that come from the operand.
    pub offset: Vec<i64>,
    /// Dimensions of the operand of which one element is taken.
    pub collapsed: Vec<i64>,
    /// Dimension of the indices that holds one index.
    pub index_vector: i64,
    /// Dimensions of the operand that go with those of the indices.
    pub operand_batching: Vec<i64>,
}

/// `ScatterDimensionNumbers`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScatterNumbers {
    /// Dimensions of the updates that are windows of the result.
    pub update_window: Vec<i64>,
    /// Dimensions of the result in which a window has one element.
    pub inserted_window: Vec<i64>,
    /// Dimensions of the result that go with those of the indices.
    pub input_batching: Vec<i64>,
}
