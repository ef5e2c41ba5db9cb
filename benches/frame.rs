//! CPU time per frame of a view, including layout and tessellation, while the pointer moves and the wheel scrolls:
//! `cargo bench --bench frame -- FILE VIEW...`. FILE may also be a number of buffers such as 1000000, which shows a
//! synthetic program of that size.

#[path = "synthetic/mod.rs"]
mod synthetic;

use std::path::PathBuf;
use std::time::Instant;

use egui::{Event, Modifiers, MouseWheelSource, MouseWheelUnit, Pos2, RawInput, Rect, TouchPhase, Vec2};
use highwater::open::Target;
use highwater::ui::app::{App, DeepLink};
use highwater::ui::session::{Options, ThemeChoice};
use highwater::ui::view::VIEWS;

const SIZE: Vec2 = Vec2::new(1600.0, 1000.0);
const FRAMES: usize = 400;

fn main() {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with("--"));
    let Some(file) = words.next() else {
        println!("skipped: no file and view given");
        return;
    };
    let source = match file.parse::<usize>() {
        Ok(buffers) => Target::Bytes(format!("{buffers} buffers"), synthetic::program(buffers).into()),
        Err(_) => Target::Path(PathBuf::from(&file)),
    };
    let ctx = egui::Context::default();
    let options = Options { theme: ThemeChoice::Light, ..Options::default() };
    let mut app = App::new(&ctx, options);
    let begin = Instant::now();
    app.open(source);
    while app.is_busy() {
        std::thread::sleep(std::time::Duration::from_millis(2));
        frame(&ctx, &mut app, 0.0, Vec::new());
    }
    println!("read, analysed and first drawn in {:.2} s", begin.elapsed().as_secs_f64());
    for view in words {
        measure(&ctx, &mut app, &view);
    }
}

/// Runs one frame; returns its CPU time in milliseconds and its number of vertices.
fn frame(ctx: &egui::Context, app: &mut App, time: f64, events: Vec<Event>) -> (f64, usize) {
    let input = RawInput {
        screen_rect: Some(Rect::from_min_size(Pos2::ZERO, SIZE)),
        time: Some(time),
        events,
        ..RawInput::default()
    };
    let begin = Instant::now();
    let output = ctx.run_ui(input, |ui| app.show(ui));
    let primitives = ctx.tessellate(output.shapes.clone(), output.pixels_per_point);
    let time = begin.elapsed().as_secs_f64() * 1e3;
    let count = primitives.iter().map(|p| match &p.primitive {
        egui::epaint::Primitive::Mesh(mesh) => mesh.vertices.len(),
        egui::epaint::Primitive::Callback(_) => 0,
    });
    let vertices = count.sum();
    output.drop_without_applying_deltas();
    (time, vertices)
}

fn measure(ctx: &egui::Context, app: &mut App, view: &str) {
    assert!(VIEWS.by_id(view).is_some(), "no view '{view}'");
    app.link = Some(DeepLink { view: Some(view.to_owned()), ..DeepLink::default() });
    app.follow_link();
    let begin = Instant::now();
    frame(ctx, app, 1.0, Vec::new());
    while app.is_busy() {
        std::thread::sleep(std::time::Duration::from_millis(2));
        frame(ctx, app, 1.0, Vec::new());
    }
    let ready = begin.elapsed().as_secs_f64();
    let mut times = Vec::new();
    let mut vertices = 0;
    for frame in 0..FRAMES {
        let share = frame as f32 / FRAMES as f32;
        let pointer = Pos2::new(300.0 + 900.0 * share, 450.0 + 120.0 * (share * 20.0).sin());
        let turn = if frame % 80 < 40 { 12.0 } else { -12.0 };
        let events = vec![
            Event::PointerMoved(pointer),
            Event::MouseWheel {
                unit: MouseWheelUnit::Point,
                delta: Vec2::new(0.0, turn),
                phase: TouchPhase::Move,
                source: MouseWheelSource::Wheel,
                modifiers: Modifiers::NONE,
            },
        ];
        let (time, count) = self::frame(ctx, app, 2.0 + frame as f64 / 60.0, events);
        if frame >= 20 {
            times.push(time);
        }
        vertices = vertices.max(count);
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "{view}: ready after {ready:.2} s, then median {:.2} ms, p99 {:.2} ms, max {:.2} ms, up to {vertices} vertices",
        at(0.5),
        at(0.99),
        at(1.0)
    );
}
