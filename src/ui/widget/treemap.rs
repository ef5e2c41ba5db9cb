//! Squarified treemap layout: proportional areas with aspect ratios close to 1 (Bruls, Huizing, van Wijk 2000).

use egui::{Pos2, Rect, Vec2};

/// Divides a rectangle in proportion to `values`, which must be sorted largest first. Zero values get empty rectangles.
#[must_use]
pub fn squarify(values: &[f64], rect: Rect) -> Vec<Rect> {
    let total: f64 = values.iter().filter(|v| **v > 0.0).sum();
    let mut result = vec![Rect::from_min_size(rect.min, Vec2::ZERO); values.len()];
    if total <= 0.0 || rect.width() <= 0.0 || rect.height() <= 0.0 {
        return result;
    }
    let scale = f64::from(rect.width()) * f64::from(rect.height()) / total;
    let (mut x, mut y) = (f64::from(rect.left()), f64::from(rect.top()));
    let (mut width, mut height) = (f64::from(rect.width()), f64::from(rect.height()));
    let mut first = 0;
    while first < values.len() && values[first] > 0.0 {
        let side = width.min(height).max(1e-6);
        let mut end = first + 1;
        let mut sum = values[first] * scale;
        let mut worst = worst_ratio(sum, values[first] * scale, values[first] * scale, side);
        while end < values.len() && values[end] > 0.0 {
            let next = values[end] * scale;
            let ratio = worst_ratio(sum + next, values[first] * scale, next, side);
            if ratio > worst {
                break;
            }
            worst = ratio;
            sum += next;
            end += 1;
        }
        let thick = sum / side;
        let mut along = 0.0;
        for i in first..end {
            let len = values[i] * scale / thick.max(1e-9);
            result[i] = if width >= height { area(x, y + along, thick, len) } else { area(x + along, y, len, thick) };
            along += len;
        }
        if width >= height {
            x += thick;
            width -= thick;
        } else {
            y += thick;
            height -= thick;
        }
        first = end;
    }
    result
}

fn area(x: f64, y: f64, width: f64, height: f64) -> Rect {
    Rect::from_min_size(Pos2::new(x as f32, y as f32), Vec2::new(width as f32, height as f32))
}

/// Worst aspect ratio in a row of areas between `small` and `large` with total `sum` along a side of length `side`.
fn worst_ratio(sum: f64, large: f64, small: f64, side: f64) -> f64 {
    let (side, sum) = (side * side, sum * sum);
    (side * large / sum).max(sum / (side * small.max(1e-12)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn areas_are_proportional_and_inside(mut values in proptest::collection::vec(0.5f64..100.0, 1..40)) {
            values.sort_by(|a, b| b.total_cmp(a));
            let rect = Rect::from_min_size(Pos2::new(10.0, 20.0), Vec2::new(400.0, 250.0));
            let total: f64 = values.iter().sum();
            for (value, part) in values.iter().zip(squarify(&values, rect)) {
                let wanted = value / total * 100_000.0;
                let got = f64::from(part.width()) * f64::from(part.height());
                prop_assert!((got - wanted).abs() < wanted * 0.01 + 1.0, "{got} for {wanted}");
                prop_assert!(rect.expand(0.1).contains_rect(part));
            }
        }
    }
}
