//! Behaviour of every chart: accessible name, keyboard cursor, fitting.

use std::cell::RefCell;
use std::rc::Rc;

use egui::{Key, Modifiers, Pos2, Rect, Vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use highwater::model::UnitSystem;
use highwater::ui::chart::{Chart, Fit, Line, Peak, Reach, Span, Tone, Window, XAxis};
use highwater::ui::widget::theme::{Look, Theme};

use crate::gui;

const GIB: u64 = 1 << 30;

/// What a chart of 400 steps reported in its last frame.
#[derive(Default)]
struct Seen {
    x: Option<Span>,
    at: Option<f64>,
    chosen: Option<f64>,
    top: f64,
}

fn chart(limit: u64) -> (Harness<'static>, Rc<RefCell<Seen>>) {
    let seen = Rc::new(RefCell::new(Seen::default()));
    let own = Rc::clone(&seen);
    let harness = gui::bare([600.0, 300.0], false, Look::default(), move |ui| {
        let theme = Theme::of(ui.ctx());
        let mut seen = own.borrow_mut();
        let rect = Rect::from_min_size(Pos2::new(80.0, 40.0), Vec2::new(400.0, 200.0));
        let reach = Reach::steps(400);
        let mut x = reach.visible(seen.x);
        reach.wheel(ui, rect, &mut x);
        reach.keys(ui, rect, &mut x, 200.0);
        seen.x = reach.chosen(x);
        let y = Fit::of(ui.ctx()).bytes(8 * GIB, || 4 * GIB, Some(limit));
        seen.top = y.hi;
        let window = Window { rect, x, y };
        let words = "peak 8.00 GiB".to_owned();
        let shown = Chart::new("Live bytes", &theme, window, XAxis::Steps("step"), UnitSystem::Binary)
            .limit(Some(limit))
            .peak([Peak { x: 100.5, y: (8 * GIB) as f64, words, is_before: false }])
            .start(100.5)
            .events(&|at, forward| Some(if forward { at + 50.0 } else { at - 50.0 }))
            .show(ui);
        seen.at = shown.at;
        if shown.is_chosen {
            seen.chosen = shown.at;
        }
        shown.readout(ui, &[Line::new("step", "here").toned(Tone::Title)]);
    });
    (harness, seen)
}

fn name(harness: &Harness<'_>) -> String {
    harness.get_by_role(egui::Role::Image).accesskit_node().label().unwrap_or_default()
}

#[test]
fn its_name_says_peak_limit_and_both_ranges() {
    let (mut harness, _) = chart(16 * GIB);
    harness.run_ok();
    let said = "Live bytes, peak 8.00 GiB at step 100, capacity 16 GiB, step 0 to 399, 0 B to 17.3 GiB";
    assert_eq!(name(&harness), said);
}

#[test]
fn keys_move_its_cursor_and_enter_chooses() {
    let (mut harness, seen) = chart(16 * GIB);
    harness.run_ok();
    harness.get_by_role(egui::Role::Image).focus();
    harness.run_ok();
    harness.key_press(Key::ArrowRight);
    harness.run_ok();
    assert_eq!(seen.borrow().at, Some(101.5), "an arrow moves by a pixel, which is a step here");
    harness.key_press_modifiers(Modifiers::SHIFT, Key::ArrowRight);
    harness.run_ok();
    assert_eq!(seen.borrow().at, Some(201.5), "with Shift by a tick");
    harness.key_press(Key::Comma);
    harness.run_ok();
    assert_eq!(seen.borrow().at, Some(151.5), "a comma goes to the event before");
    assert!(name(&harness).ends_with("; step here"), "{}", name(&harness));
    assert_eq!(seen.borrow().chosen, None);
    harness.key_press(Key::Enter);
    harness.run_ok();
    assert_eq!(seen.borrow().chosen, Some(151.5));
}

#[test]
fn zero_fits_to_everything_and_shift_zero_to_what_is_visible() {
    let (mut harness, seen) = chart(16 * GIB);
    harness.run_ok();
    harness.key_press(Key::W);
    harness.run_ok();
    let zoomed = seen.borrow().x.expect("zoomed");
    assert!(zoomed.len() < 400.0 && zoomed.lo < 200.0 && zoomed.hi > 200.0);
    let all = seen.borrow().top;
    assert!(all > (16 * GIB) as f64);
    harness.key_press_modifiers(Modifiers::SHIFT, Key::Num0);
    harness.run_ok();
    let visible = seen.borrow().top;
    assert!(visible > (4 * GIB) as f64 && visible < (5 * GIB) as f64, "{visible}");
    assert_eq!(seen.borrow().x, Some(zoomed), "what is visible stays");
    harness.key_press(Key::Num0);
    harness.run_ok();
    assert_eq!((seen.borrow().x, seen.borrow().top), (None, all));
}
