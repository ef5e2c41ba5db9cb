//! Dimension numbers of an instruction, read from its record on demand.

use super::fields::{convolution, dot, gather, instruction, scatter};
use crate::decode::wire::{LEN, Reader, Result, VARINT, field};
use crate::model::{ConvolutionNumbers, DimensionNumbers, DotNumbers, GatherNumbers, ScatterNumbers};

/// Reads them from an instruction's record; `in_order` says that its fields come in the order of their numbers.
///
/// # Errors
/// A damaged field.
pub fn read(mut record: Reader<'_>, in_order: bool) -> Result<DimensionNumbers> {
    let mut found = DimensionNumbers::default();
    while let Some(tag) = record.tag()? {
        if in_order && tag >> 3 > instruction::SCATTER_DIMENSION_NUMBERS {
            break;
        }
        match field(tag) {
            (instruction::DIMENSIONS, LEN | VARINT) => record.numbers(tag, |number| found.dimensions.push(number))?,
            (instruction::CONVOLUTION_DIMENSION_NUMBERS, LEN) => {
                read_convolution(record.message()?, &mut found.convolution)?;
            }
            (instruction::DOT_DIMENSION_NUMBERS, LEN) => read_dot(record.message()?, &mut found.dot)?,
            (instruction::GATHER_DIMENSION_NUMBERS, LEN) => read_gather(record.message()?, &mut found.gather)?,
            (instruction::SCATTER_DIMENSION_NUMBERS, LEN) => read_scatter(record.message()?, &mut found.scatter)?,
            _ => record.skip(tag)?,
        }
    }
    Ok(found)
}

fn read_dot(mut message: Reader<'_>, into: &mut DotNumbers) -> Result<()> {
    while let Some(tag) = message.tag()? {
        let list = match field(tag).0 {
            dot::LHS_CONTRACTING => &mut into.lhs_contracting,
            dot::RHS_CONTRACTING => &mut into.rhs_contracting,
            dot::LHS_BATCH => &mut into.lhs_batch,
            dot::RHS_BATCH => &mut into.rhs_batch,
            _ => {
                message.skip(tag)?;
                continue;
            }
        };
        message.numbers(tag, |number| list.push(number))?;
    }
    Ok(())
}

fn read_convolution(mut message: Reader<'_>, into: &mut ConvolutionNumbers) -> Result<()> {
    while let Some(tag) = message.tag()? {
        match field(tag) {
            (convolution::KERNEL_OUTPUT_FEATURE, VARINT) => into.kernel_output_feature = message.int()?,
            (convolution::INPUT_BATCH, VARINT) => into.input_batch = message.int()?,
            (convolution::OUTPUT_BATCH, VARINT) => into.output_batch = message.int()?,
            (convolution::OUTPUT_FEATURE, VARINT) => into.output_feature = message.int()?,
            (convolution::KERNEL_SPATIAL, LEN | VARINT) => message.numbers(tag, |n| into.kernel_spatial.push(n))?,
            (convolution::INPUT_SPATIAL, LEN | VARINT) => message.numbers(tag, |n| into.input_spatial.push(n))?,
            (convolution::OUTPUT_SPATIAL, LEN | VARINT) => message.numbers(tag, |n| into.output_spatial.push(n))?,
            _ => message.skip(tag)?,
        }
    }
    Ok(())
}

fn read_gather(mut message: Reader<'_>, into: &mut GatherNumbers) -> Result<()> {
    while let Some(tag) = message.tag()? {
        match field(tag) {
            (gather::OFFSET, LEN | VARINT) => message.numbers(tag, |n| into.offset.push(n))?,
            (gather::COLLAPSED_SLICE, LEN | VARINT) => message.numbers(tag, |n| into.collapsed.push(n))?,
            (gather::INDEX_VECTOR, VARINT) => into.index_vector = message.int()?,
            (gather::OPERAND_BATCHING, LEN | VARINT) => message.numbers(tag, |n| into.operand_batching.push(n))?,
            _ => message.skip(tag)?,
        }
    }
    Ok(())
}

fn read_scatter(mut message: Reader<'_>, into: &mut ScatterNumbers) -> Result<()> {
    while let Some(tag) = message.tag()? {
        match field(tag) {
            (scatter::UPDATE_WINDOW, LEN | VARINT) => message.numbers(tag, |n| into.update_window.push(n))?,
            (scatter::INSERTED_WINDOW, LEN | VARINT) => message.numbers(tag, |n| into.inserted_window.push(n))?,
            (scatter::INPUT_BATCHING, LEN | VARINT) => message.numbers(tag, |n| into.input_batching.push(n))?,
            _ => message.skip(tag)?,
        }
    }
    Ok(())
}
