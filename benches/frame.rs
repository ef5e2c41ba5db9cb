//! Processor time of a frame of a view, layout and tessellation together, while the pointer moves and the wheel turns:
//! `cargo bench --bench frame -- FILE VIEW`.

use std::path::PathBuf;
use std::time::Instant;

use egui::{Event, Modifiers, MouseWheelSource, MouseWheelUnit, Pos2, RawInput, Rect, TouchPhase, Vec2};
use highwater::ui::app::{App, Place, Source};
use highwater::ui::session::{Options, ThemeChoice};

const SIZE: Vec2 = Vec2::new(1600.0, 1000.0);
const FRAMES: usize = 400;

fn main() {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with("--"));
    let (Some(path), Some(view)) = (words.next(), words.next()) else {
        println!("no file and view named: skipped");
        return;
    };
    let ctx = egui::Context::default();
    let options = Options { theme: ThemeChoice::Light, synchronous: true, ..Options::default() };
    let mut app = App::new(&ctx, options);
    app.place = Some(Place { view: Some(view.clone()), ..Place::default() });
    app.open(Source::Path(PathBuf::from(&path)));
    let mut times = Vec::new();
    let mut vertices = 0;
    for frame in 0..FRAMES {
        let share = frame as f32 / FRAMES as f32;
        let pointer = Pos2::new(300.0 + 900.0 * share, 450.0 + 120.0 * (share * 20.0).sin());
        let turn = if frame % 80 < 40 { 12.0 } else { -12.0 };
        let input = RawInput {
            screen_rect: Some(Rect::from_min_size(Pos2::ZERO, SIZE)),
            time: Some(frame as f64 / 60.0),
            events: vec![
                Event::PointerMoved(pointer),
                Event::MouseWheel {
                    unit: MouseWheelUnit::Point,
                    delta: Vec2::new(0.0, turn),
                    phase: TouchPhase::Move,
                    source: MouseWheelSource::Wheel,
                    modifiers: Modifiers::NONE,
                },
            ],
            ..RawInput::default()
        };
        let begin = Instant::now();
        let output = ctx.run_ui(input, |ui| app.show(ui));
        let primitives = ctx.tessellate(output.shapes.clone(), output.pixels_per_point);
        let time = begin.elapsed().as_secs_f64() * 1e3;
        if frame >= 20 {
            times.push(time);
        }
        let count = primitives.iter().map(|p| match &p.primitive {
            egui::epaint::Primitive::Mesh(mesh) => mesh.vertices.len(),
            egui::epaint::Primitive::Callback(_) => 0,
        });
        vertices = vertices.max(count.sum());
        output.drop_without_applying_deltas();
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "{view}: median {:.2} ms, 99 % {:.2} ms, largest {:.2} ms, up to {vertices} vertices",
        at(0.5),
        at(0.99),
        at(1.0)
    );
}
