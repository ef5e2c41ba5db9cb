//! What an instruction that computes does with the dimensions of its operands.

use super::mark::{Mark, add, bitcast, carried, reshaped};
use crate::model::{DimensionNumbers, Opcode, OpcodeTable, ShapeNode};

/// How an instruction's dimensions come from those of its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Each from the same dimension of the operands of the same rank.
    Same,
    /// The same, of one element: which, the program finds out as it runs.
    Chosen,
    /// From the dimensions that `dimensions` gives.
    Broadcast,
    /// Permuted.
    Transpose,
    /// In row-major order.
    Reshape,
    /// As they lie in memory.
    Bitcast,
    /// Without those that are summed over.
    Reduce,
    /// A matrix product.
    Dot,
    /// A matrix product of rows in groups.
    RaggedDot,
    /// A convolution, as which the TPU's compiler writes matrix products, too.
    Convolution,
    /// Rows of an array, by index.
    Gather,
    /// An array with rows written.
    Scatter,
    /// A kernel: dimensions of the same size.
    Kernel,
    /// Numbered or random elements, whose dimensions only the program's text gives.
    Numbered,
    /// From none.
    Made,
}

/// The kinds of a program's opcodes, by opcode.
#[must_use]
pub fn kinds(opcodes: &OpcodeTable) -> Vec<Kind> {
    (0..=u8::MAX)
        .map(|row| match opcodes.name(Opcode(row)) {
            "dynamic-slice" => Kind::Chosen,
            "broadcast" => Kind::Broadcast,
            "transpose" => Kind::Transpose,
            "reshape" | "dynamic-reshape" => Kind::Reshape,
            "bitcast" => Kind::Bitcast,
            "reduce" => Kind::Reduce,
            "dot" => Kind::Dot,
            "ragged-dot" => Kind::RaggedDot,
            "convolution" => Kind::Convolution,
            "gather" => Kind::Gather,
            "scatter" => Kind::Scatter,
            "custom-call" => Kind::Kernel,
            "iota" | "rng" | "rng-bit-generator" => Kind::Numbered,
            "" | "constant" | "partition-id" | "replica-id" | "get-dimension-size" => Kind::Made,
            _ => Kind::Same,
        })
        .collect()
}

/// An operand: its array and the marks in it.
pub type Operand<'a> = (&'a ShapeNode, &'a [Mark]);

/// Numbers of dimensions, as places.
fn places(list: &[i64]) -> impl Iterator<Item = usize> + '_ {
    list.iter().filter_map(|&number| usize::try_from(number).ok())
}

/// The marks of a result, as they are found.
#[derive(Default)]
struct Found {
    marks: Vec<Mark>,
    /// Whether marks of an operand were lost that may be in the result.
    is_lost: bool,
}

impl Found {
    /// Adds an operand's marks, where `to` gives the result's dimension for one of the operand's.
    fn carry(&mut self, from: Operand<'_>, result: &ShapeNode, to: impl Fn(usize) -> Option<usize>) {
        for &mark in from.1.iter().filter(|mark| mark.is_known()) {
            let dimension = mark.dimension as usize;
            let sizes = |place: usize| Some((*from.0.dimensions.get(dimension)?, *result.dimensions.get(place)?));
            let Some(place) = to(dimension) else { continue };
            match sizes(place).and_then(|sizes| carried(mark, sizes, place)) {
                Some(mark) => add(&mut self.marks, mark),
                None => self.is_lost = true,
            }
        }
    }
}

/// Whether a dimension of an operand is known to follow.
fn follows(operand: &Operand<'_>) -> bool {
    operand.1.iter().any(Mark::is_known)
}

/// The marks of one array of the result. `operands` has `None` for what is no array.
#[must_use]
pub fn marks(
    kind: Kind,
    numbers: &dyn Fn() -> DimensionNumbers,
    operands: &[Option<Operand<'_>>],
    result: &ShapeNode,
) -> Vec<Mark> {
    let mut found = Found::default();
    let marked = || operands.iter().flatten().filter(|operand| !operand.1.is_empty()).copied();
    let first = operands.first().copied().flatten();
    match kind {
        Kind::Made => return Vec::new(),
        Kind::Numbered => return vec![Mark::UNKNOWN],
        Kind::Same => {
            for operand in marked() {
                if operand.0.dimensions.len() == result.dimensions.len() {
                    found.carry(operand, result, Some);
                } else {
                    found.is_lost |= follows(&operand);
                }
            }
        }
        // One sample of a loop over them follows nothing.
        Kind::Chosen => {
            if let Some(operand) = first {
                let is_one = |place: usize| result.dimensions.get(place) == Some(&1);
                found.carry(operand, result, |dimension| (!is_one(dimension)).then_some(dimension));
            }
        }
        Kind::Broadcast => {
            let to: Vec<usize> = places(&numbers().dimensions).collect();
            if let Some(operand) = first {
                found.carry(operand, result, |dimension| to.get(dimension).copied());
            }
        }
        Kind::Transpose => {
            let from: Vec<usize> = places(&numbers().dimensions).collect();
            if let Some(operand) = first {
                found.carry(operand, result, |dimension| from.iter().position(|&other| other == dimension));
            }
        }
        Kind::Reshape | Kind::Bitcast => {
            if let Some(operand) = first {
                found.marks = match kind {
                    Kind::Bitcast => bitcast(operand.1, operand.0, result),
                    _ => reshaped(operand.1, &operand.0.dimensions, &result.dimensions),
                };
                found.is_lost = found.marks.is_empty() && follows(&operand);
            }
        }
        Kind::Reduce => {
            let summed: Vec<usize> = places(&numbers().dimensions).collect();
            for operand in marked() {
                found.carry(operand, result, |dimension| without(dimension, &summed));
            }
        }
        Kind::Dot => dot(&mut found, &numbers(), operands, result),
        Kind::RaggedDot => {
            if let Some(operand) = first {
                found.carry(operand, result, |dimension| (dimension == 0).then_some(0));
            }
        }
        Kind::Convolution => convolution(&mut found, &numbers(), operands, result),
        Kind::Gather => gather(&mut found, &numbers(), operands, result),
        Kind::Scatter => scatter(&mut found, &numbers(), operands, result),
        Kind::Kernel => {
            for operand in marked() {
                kernel(&mut found, operand, operands, result);
            }
            found.is_lost |= found.marks.is_empty() && marked().any(|operand| follows(&operand));
        }
    }
    let is_unknown = |operand: Operand<'_>| operand.1.contains(&Mark::UNKNOWN);
    if (found.is_lost && found.marks.is_empty()) || marked().any(is_unknown) {
        add(&mut found.marks, Mark::UNKNOWN);
    }
    found.marks
}

/// The place of a dimension once others are left out; `None` for one of those.
fn without(dimension: usize, left_out: &[usize]) -> Option<usize> {
    let before = left_out.iter().filter(|&&other| other < dimension).count();
    (!left_out.contains(&dimension)).then(|| dimension - before)
}

fn dot(found: &mut Found, numbers: &DimensionNumbers, operands: &[Option<Operand<'_>>], result: &ShapeNode) {
    let numbers = &numbers.dot;
    let batch = numbers.lhs_batch.len();
    let sides = [(&numbers.lhs_batch, &numbers.lhs_contracting), (&numbers.rhs_batch, &numbers.rhs_contracting)];
    let mut free_before = 0;
    for (operand, (own_batch, contracting)) in operands.iter().zip(sides) {
        let Some(operand) = *operand else { continue };
        let own_batch: Vec<usize> = places(own_batch).collect();
        let mut left_out: Vec<usize> = places(contracting).collect();
        left_out.extend(&own_batch);
        found.carry(operand, result, |dimension| {
            let of_batch = own_batch.iter().position(|&other| other == dimension);
            of_batch.or_else(|| without(dimension, &left_out).map(|place| batch + free_before + place))
        });
        free_before += operand.0.dimensions.len().saturating_sub(left_out.len());
    }
}

fn convolution(found: &mut Found, numbers: &DimensionNumbers, operands: &[Option<Operand<'_>>], result: &ShapeNode) {
    let numbers = &numbers.convolution;
    let place = |number: i64| usize::try_from(number).ok();
    // A window over all of a dimension sums over it, one that makes it larger is of the other operand.
    let output = |operand: Operand<'_>, space: &[i64], dimension: usize| {
        let at = places(space).position(|other| other == dimension)?;
        let to = place(*numbers.output_spatial.get(at)?)?;
        let (before, after) = (operand.0.dimensions.get(dimension)?, result.dimensions.get(to)?);
        (before == after || (*after > 1 && after < before)).then_some(to)
    };
    if let Some(Some(input)) = operands.first().copied() {
        found.carry(input, result, |dimension| {
            if place(numbers.input_batch) == Some(dimension) {
                return place(numbers.output_batch);
            }
            output(input, &numbers.input_spatial, dimension)
        });
    }
    if let Some(Some(kernel)) = operands.get(1).copied() {
        found.carry(kernel, result, |dimension| {
            if place(numbers.kernel_output_feature) == Some(dimension) {
                return place(numbers.output_feature);
            }
            // A window as large as the result is a dimension of a matrix product.
            let to = output(kernel, &numbers.kernel_spatial, dimension)?;
            (kernel.0.dimensions.get(dimension) == result.dimensions.get(to)).then_some(to)
        });
    }
}

fn gather(found: &mut Found, numbers: &DimensionNumbers, operands: &[Option<Operand<'_>>], result: &ShapeNode) {
    let numbers = &numbers.gather;
    let offset: Vec<usize> = places(&numbers.offset).collect();
    let by_index: Vec<usize> = (0..result.dimensions.len()).filter(|place| !offset.contains(place)).collect();
    if let Some(Some(operand)) = operands.first().copied() {
        let left_out: Vec<usize> = places(&numbers.collapsed).chain(places(&numbers.operand_batching)).collect();
        found.carry(operand, result, |dimension| without(dimension, &left_out).and_then(|at| offset.get(at).copied()));
    }
    let indices = operands.get(1).copied().flatten();
    let first = operands.first().copied().flatten();
    // As many rows as there are: all of them in another order, of which no part is left that had one.
    if let (Some(rows), &[taken], [to]) = (first, &numbers.collapsed[..], &by_index[..])
        && !indices.is_some_and(|indices| follows(&indices))
        && let (Ok(taken), Ok(dimension)) = (usize::try_from(taken), u32::try_from(*to))
        && rows.0.dimensions.get(taken) == result.dimensions.get(*to)
    {
        for mark in rows.1.iter().filter(|mark| mark.is_known() && mark.dimension as usize == taken) {
            add(&mut found.marks, Mark { dimension, inner: 1, ..*mark });
        }
        return;
    }
    // Rows of what follows, chosen by what does not.
    found.is_lost |= first.is_some_and(|first| follows(&first)) && !indices.is_some_and(|indices| follows(&indices));
    if let Some(indices) = indices {
        let vector = usize::try_from(numbers.index_vector).unwrap_or(usize::MAX);
        found
            .carry(indices, result, |dimension| without(dimension, &[vector]).and_then(|at| by_index.get(at).copied()));
    }
}

fn scatter(found: &mut Found, numbers: &DimensionNumbers, operands: &[Option<Operand<'_>>], result: &ShapeNode) {
    let numbers = &numbers.scatter;
    // The operands, the indices, and as many updates.
    let arrays = operands.len().saturating_sub(1) / 2;
    let alike = |operand: &Operand<'_>| operand.0.dimensions == result.dimensions;
    for operand in operands.iter().take(arrays).flatten().filter(|operand| alike(operand)) {
        found.carry(*operand, result, Some);
    }
    let windows: Vec<usize> = places(&numbers.update_window).collect();
    let inserted: Vec<usize> = places(&numbers.inserted_window).chain(places(&numbers.input_batching)).collect();
    let of_windows: Vec<usize> = (0..result.dimensions.len()).filter(|place| !inserted.contains(place)).collect();
    for updates in operands.iter().skip(arrays + 1).flatten() {
        // Rows that follow, put wherever the indices say.
        found.is_lost |= updates.1.iter().any(|mark| mark.is_known() && !windows.contains(&(mark.dimension as usize)));
        found.carry(*updates, result, |dimension| {
            let at = windows.iter().position(|&other| other == dimension)?;
            of_windows.get(at).copied()
        });
    }
}

fn kernel(found: &mut Found, operand: Operand<'_>, operands: &[Option<Operand<'_>>], result: &ShapeNode) {
    let size = |dimension: usize| operand.0.dimensions.get(dimension).copied();
    // Put together of slices; in a product of matrices, the other dimension is that of the other matrix.
    let mut others = operand.0.dimensions.iter().zip(&result.dimensions).filter(|(own, other)| own != other);
    let is_of_another = |size: &i64| {
        let mut all = operands.iter().flatten().filter(|other| !std::ptr::eq(other.0, operand.0));
        all.any(|other| other.0.dimensions.contains(size))
    };
    let are_slices = match (others.next(), others.next()) {
        (None, _) => true,
        (Some((_, size)), None) => !is_of_another(size),
        _ => false,
    };
    if operand.0.dimensions.len() == result.dimensions.len() && are_slices {
        found.carry(operand, result, Some);
        return;
    }
    found.carry(operand, result, |dimension| {
        let is_alike = |place: usize| result.dimensions.get(place).copied() == size(dimension);
        if is_alike(dimension) {
            return Some(dimension);
        }
        if size(dimension) == Some(1) {
            return None;
        }
        let mut alike = (0..result.dimensions.len()).filter(|&place| is_alike(place));
        let only = alike.next()?;
        alike.next().is_none().then_some(only)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ConvolutionNumbers, DotNumbers, ElementType, GatherNumbers, ScatterNumbers};

    fn array(dimensions: &[i64]) -> ShapeNode {
        ShapeNode::array(ElementType::F32, dimensions.to_vec())
    }

    fn mark(dimension: u32, inner: i64, size: i64) -> Mark {
        Mark { inner, ..Mark::whole(dimension, size) }
    }

    /// Marks of a result of some dimensions, from operands with their marks.
    fn found(kind: Kind, numbers: &DimensionNumbers, operands: &[(&[i64], &[Mark])], result: &[i64]) -> Vec<Mark> {
        let nodes: Vec<ShapeNode> = operands.iter().map(|operand| array(operand.0)).collect();
        let operands: Vec<Option<Operand<'_>>> =
            nodes.iter().zip(operands).map(|(node, operand)| Some((node, operand.1))).collect();
        marks(kind, &|| numbers.clone(), &operands, &array(result))
    }

    #[test]
    fn a_matrix_product_keeps_what_it_does_not_sum_over() {
        let dot =
            DotNumbers { lhs_batch: vec![1], rhs_batch: vec![0], lhs_contracting: vec![2], rhs_contracting: vec![1] };
        let numbers = DimensionNumbers { dot, ..DimensionNumbers::default() };
        // [positions, heads, width] by [heads, width, keys].
        let product = |left: &[Mark], right: &[Mark]| {
            found(Kind::Dot, &numbers, &[(&[64, 12, 32], left), (&[12, 32, 99], right)], &[12, 64, 99])
        };
        assert_eq!(product(&[mark(0, 1, 64)], &[]), [mark(1, 1, 64)]);
        assert_eq!(product(&[], &[mark(2, 1, 99)]), [mark(2, 1, 99)]);
        assert_eq!(product(&[mark(1, 1, 12)], &[]), [mark(0, 1, 12)]);
        assert_eq!(product(&[mark(2, 1, 32)], &[]), [], "summed over");
    }

    #[test]
    fn a_product_written_as_a_convolution_sums_over_windows_of_all_of_a_dimension() {
        let convolution = ConvolutionNumbers {
            input_batch: 2,
            input_spatial: vec![0],
            kernel_output_feature: 2,
            kernel_spatial: vec![0],
            output_batch: 0,
            output_feature: 1,
            output_spatial: vec![2],
        };
        let numbers = DimensionNumbers { convolution, ..DimensionNumbers::default() };
        // The gradient of a weight: the batch is the window.
        let batch = &[mark(0, 1, 8)][..];
        let gradient =
            found(Kind::Convolution, &numbers, &[(&[8, 64, 512], batch), (&[8, 64, 1024], batch)], &[512, 1024, 1]);
        assert_eq!(gradient, []);
        // A window of one leaves the batch in space.
        let product =
            found(Kind::Convolution, &numbers, &[(&[8, 64, 512], batch), (&[1, 64, 1024], &[])], &[512, 1024, 8]);
        assert_eq!(product, [mark(2, 1, 8)]);
    }

    #[test]
    fn rows_come_from_their_indices() {
        let gather = GatherNumbers { offset: vec![2], collapsed: vec![0], index_vector: 2, operand_batching: vec![] };
        let numbers = DimensionNumbers { gather, ..DimensionNumbers::default() };
        let tokens = &[mark(0, 1, 4)][..];
        let rows = found(Kind::Gather, &numbers, &[(&[32_000, 64], &[]), (&[4, 128, 1], tokens)], &[4, 128, 64]);
        assert_eq!(rows, [mark(0, 1, 4)]);
        let chosen = found(Kind::Gather, &numbers, &[(&[512, 64], &[mark(0, 128, 4)]), (&[9, 9, 1], &[])], &[9, 9, 64]);
        assert_eq!(chosen, [Mark::UNKNOWN], "rows of samples that something else chooses");
        let gather = GatherNumbers { offset: vec![1], collapsed: vec![0], index_vector: 1, operand_batching: vec![] };
        let numbers = DimensionNumbers { gather, ..DimensionNumbers::default() };
        let shuffled = |rows: i64| {
            found(Kind::Gather, &numbers, &[(&[512, 64], &[mark(0, 128, 4)]), (&[rows, 1], &[])], &[rows, 64])
        };
        assert_eq!(shuffled(512), [mark(0, 1, 4)], "all rows in another order");
        assert_eq!(shuffled(9), [Mark::UNKNOWN]);
    }

    #[test]
    fn rows_that_are_put_anywhere_may_be_anywhere() {
        let scatter = ScatterNumbers { update_window: vec![1], inserted_window: vec![0], input_batching: vec![] };
        let numbers = DimensionNumbers { scatter, ..DimensionNumbers::default() };
        let put = |updates: &[Mark]| {
            let operands: [(&[i64], &[Mark]); 3] = [(&[1542, 64], &[]), (&[512, 1], &[]), (&[512, 64], updates)];
            found(Kind::Scatter, &numbers, &operands, &[1542, 64])
        };
        assert_eq!(put(&[mark(0, 128, 4)]), [Mark::UNKNOWN]);
        assert_eq!(put(&[mark(1, 1, 64)]), [mark(1, 1, 64)]);
    }

    #[test]
    fn sums_views_and_kernels_keep_the_rest() {
        let numbers = DimensionNumbers { dimensions: vec![1], ..DimensionNumbers::default() };
        let batch = &[mark(0, 1, 8)][..];
        assert_eq!(found(Kind::Reduce, &numbers, &[(&[8, 16, 32], batch)], &[8, 32]), batch);
        assert_eq!(found(Kind::Reduce, &numbers, &[(&[16, 8], &[mark(1, 1, 8)])], &[16]), []);
        assert_eq!(found(Kind::Broadcast, &numbers, &[(&[8], batch)], &[4, 8]), [mark(1, 1, 8)]);
        assert_eq!(found(Kind::Kernel, &numbers, &[(&[8, 16], batch)], &[16, 3, 8]), [mark(2, 1, 8)]);
        assert_eq!(found(Kind::Kernel, &numbers, &[(&[8, 16], batch)], &[3, 3]), [Mark::UNKNOWN]);
        let unknown = found(Kind::Same, &numbers, &[(&[8, 16], batch), (&[8, 16], &[Mark::UNKNOWN])], &[8, 16]);
        assert_eq!(unknown, [mark(0, 1, 8), Mark::UNKNOWN]);
        assert_eq!(found(Kind::Chosen, &numbers, &[(&[8, 16], batch)], &[1, 16]), [], "one sample of a loop");
    }
}
