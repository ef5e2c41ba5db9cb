//! A picture that is magnified by the wheel, at the pointer, and moved.

use egui::{Pos2, Rect, Ui, Vec2};

/// Most a picture is magnified.
const MOST: f32 = 40.0;

/// How much a picture is magnified, and how far it is moved, in points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Magnifier {
    /// Factor of all lengths, at least 1.
    pub factor: f32,
    /// Where the upper left corner of the picture lies, from that of its room.
    shift: Vec2,
}

impl Default for Magnifier {
    fn default() -> Self {
        Self { factor: 1.0, shift: Vec2::ZERO }
    }
}

impl Magnifier {
    /// Whether the picture is as large as its room.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        *self == Self::default()
    }

    /// Its bits, for keys of pictures.
    #[must_use]
    pub fn key(&self) -> [u32; 3] {
        [self.factor, self.shift.x, self.shift.y].map(f32::to_bits)
    }

    /// Where a part of the whole picture lies.
    #[must_use]
    pub fn place(&self, room: Rect, part: Rect) -> Rect {
        let at = |point: Pos2| room.min + self.shift + (point - room.min) * self.factor;
        Rect::from_min_max(at(part.min), at(part.max))
    }

    /// Magnifies by `by` around a point that stays where it is.
    pub fn zoom(&mut self, room: Rect, around: Pos2, by: f32) {
        if !by.is_finite() || by <= 0.0 {
            return;
        }
        let factor = (self.factor * by).clamp(1.0, MOST);
        let from = around - room.min;
        self.shift = from - (from - self.shift) * (factor / self.factor);
        self.factor = factor;
        self.keep(room);
    }

    /// Moves the picture.
    pub fn drag(&mut self, room: Rect, by: Vec2) {
        self.shift += by;
        self.keep(room);
    }

    /// Moves the picture so that a place is seen.
    pub fn reveal(&mut self, room: Rect, place: Rect) {
        let by = |low: f32, high: f32, least: f32, most: f32| (least - low).max(0.0) - (high - most).max(0.0);
        let x = by(place.left(), place.right(), room.left(), room.right());
        let y = by(place.top(), place.bottom(), room.top(), room.bottom());
        self.drag(room, Vec2::new(x, y));
    }

    /// Wheel and pinch over the room magnify at the pointer, a sideways wheel and the middle button move.
    pub fn take(&mut self, ui: &Ui, room: Rect) {
        if !ui.rect_contains_pointer(room) {
            return;
        }
        let (at, scroll, pinch) = ui.input(|i| (i.pointer.hover_pos(), i.smooth_scroll_delta(), i.zoom_delta()));
        let Some(at) = at else { return };
        if scroll.y != 0.0 {
            self.zoom(room, at, (scroll.y / 200.0).exp2());
        }
        if pinch != 1.0 {
            self.zoom(room, at, pinch);
        }
        let (held, delta) = ui.input(|i| (i.pointer.middle_down(), i.pointer.delta()));
        let by = Vec2::new(scroll.x, 0.0) + if held { delta } else { Vec2::ZERO };
        if by != Vec2::ZERO {
            self.drag(room, by);
        }
    }

    /// The picture never leaves its room.
    fn keep(&mut self, room: Rect) {
        let least = room.size() * (1.0 - self.factor);
        self.shift = self.shift.clamp(least.min(Vec2::ZERO), Vec2::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_under_the_pointer_stays_and_the_picture_fills_its_room() {
        let room = Rect::from_min_size(Pos2::new(10.0, 20.0), Vec2::new(400.0, 200.0));
        let mut magnifier = Magnifier::default();
        let at = Pos2::new(110.0, 70.0);
        let part = Rect::from_center_size(at, Vec2::splat(4.0));
        magnifier.zoom(room, at, 3.0);
        assert_eq!(magnifier.place(room, part).center(), at);
        assert!(magnifier.place(room, room).contains_rect(room));
        magnifier.drag(room, Vec2::splat(-10_000.0));
        assert!(magnifier.place(room, room).contains_rect(room), "it does not leave its room");
        magnifier.zoom(room, at, 0.01);
        assert!(magnifier.is_whole(), "{magnifier:?}");
    }
}
