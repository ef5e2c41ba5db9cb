//! Parts of the gradient of a weight, which devices hand on to each other and add up while they compute them.

use std::collections::VecDeque;

use super::label::Labels;
use super::like_weights::like_weights;
use super::product::{is_kernel, is_product};
use super::{Value, computed, node_at, opcode, operand, root};
use crate::model::{NO_ROW, Opcode, Program, Shape};

/// Most values looked at behind an exchange.
const MOST_LOOKED_AT: usize = 32;

/// The words for what a kernel makes of the tokens of each expert and the gradients of what it made of them.
const OF_EXPERTS: &str = "gradient of the weights of experts";

/// The label of the gradient of a matrix for each of several experts, which a kernel makes of two arrays with a row for each
/// token: it has the width of either.
pub(super) fn gradient_of_experts(program: &Program, value: &Value) -> Option<&'static str> {
    let made = computed(program, value.clone());
    let [_, height, width] = node_at(program, made.at, &made.index)?.dimensions[..] else { return None };
    if !is_kernel(program, made.at) {
        return None;
    }
    let places = 0..program.instructions.operands_of(made.at).len();
    let arrays = places.filter_map(|place| operand(program, made.at, place)).filter_map(|at| program.shape_of(at));
    let rows: Vec<(i64, i64)> = arrays
        .map(Shape::root)
        .filter(|node| node.element_type.is_float())
        .filter_map(|node| if let [rows, own] = node.dimensions[..] { Some((rows, own)) } else { None })
        .collect();
    let of = |size: i64| rows.iter().filter(move |row| row.1 == size).map(|row| row.0);
    of(height).any(|tokens| of(width).any(|others| others == tokens)).then_some(OF_EXPERTS)
}

impl Labels {
    /// The label of an array of the backward pass that has the dimensions of a weight: a part of its gradient where it is
    /// made of products, else only what it is like, as the weight itself that is handed on has them too.
    pub(super) fn like_a_weight(&self, program: &Program, value: &Value) -> Option<String> {
        let weight = like_weights(program, node_at(program, value.at, &value.index)?)?;
        Some(if self.is_of_products(program, value) {
            format!("part of the gradient of {weight}")
        } else {
            format!("shaped like {weight}, backward pass")
        })
    }

    /// Whether a product is behind a value, through loops and through what comes from other devices.
    fn is_of_products(&self, program: &Program, value: &Value) -> bool {
        let mut waiting = VecDeque::from([value.clone()]);
        let mut seen: Vec<Value> = Vec::new();
        while let Some(value) = waiting.pop_front().filter(|_| seen.len() < MOST_LOOKED_AT) {
            let value = computed(program, value);
            if seen.contains(&value) {
                continue;
            }
            seen.push(value.clone());
            match opcode(program, value.at) {
                Opcode::PARAMETER => {
                    // What the step before has made of it, and what the loop began with.
                    let inside = program.computation_of(value.at);
                    let end = inside.and_then(|inside| root(program, inside));
                    let is_loop = inside
                        .and_then(|inside| self.loops.caller(inside))
                        .is_some_and(|caller| opcode(program, caller) == Opcode::WHILE);
                    waiting.extend(end.filter(|_| is_loop).map(|at| Value { at, index: value.index.clone() }));
                }
                Opcode::WHILE => {
                    let end = super::body(program, value.at).and_then(|body| root(program, body));
                    waiting.extend(end.map(|at| Value { at, index: value.index.clone() }));
                }
                _ if is_product(program, value.at) => return true,
                _ => {
                    let places = 0..program.instructions.operands_of(value.at).len();
                    let operands = places.filter_map(|place| operand(program, value.at, place));
                    waiting.extend(operands.filter(|at| at.0 != NO_ROW).map(Value::whole));
                }
            }
        }
        false
    }
}
