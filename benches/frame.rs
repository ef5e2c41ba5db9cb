//! CPU time per frame of a view, including layout and tessellation, while the pointer moves and the wheel scrolls:
//! `cargo bench --bench frame -- FILE VIEW... [3840x2160]`. FILE may also be a number of buffers such as 1000000, which
//! shows a synthetic program of that size. Also the frames that are drawn while a file's advice is worked out, and how
//! soon a picture that a worker draws has the axes of a pinch that zooms.

#[path = "synthetic/mod.rs"]
mod synthetic;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use egui::{Event, Modifiers, MouseWheelSource, MouseWheelUnit, Pos2, RawInput, Rect, TouchPhase, Vec2};
use highwater::open::Target;
use highwater::ui::app::{App, DeepLink};
use highwater::ui::session::{Options, ThemeChoice};
use highwater::ui::view::VIEWS;

/// Size of the window, where none is given.
const SIZE: Vec2 = Vec2::new(1600.0, 1000.0);
const FRAMES: usize = 400;
const ZOOMS: usize = 40;
/// A screen that is drawn 60 times a second.
const FRAME: Duration = Duration::from_nanos(16_666_667);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let size_in = |word: &str| {
        let (width, height) = word.split_once('x')?;
        Some(Vec2::new(width.parse().ok()?, height.parse().ok()?))
    };
    let size = words.iter().find_map(|word| size_in(word)).unwrap_or(SIZE);
    let mut words = words.into_iter().filter(|word| size_in(word).is_none());
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
    let app = App::new(&ctx, options);
    let mut window = Window { ctx, app, size };
    window.open(source);
    for view in words {
        window.measure(&view);
    }
}

/// Prints some times in milliseconds.
fn print(what: &str, mut times: Vec<f64>, more: &str) {
    times.sort_by(f64::total_cmp);
    let Some(last) = times.len().checked_sub(1) else { return println!("{what}: none") };
    let at = |share: f64| times[(last as f64 * share) as usize];
    println!("{what}: median {:.2} ms, p99 {:.2} ms, max {:.2} ms{more}", at(0.5), at(0.99), at(1.0));
}

struct Window {
    ctx: egui::Context,
    app: App,
    size: Vec2,
}

impl Window {
    /// Runs one frame; returns its CPU time in milliseconds and its number of vertices.
    fn frame(&mut self, time: f64, events: Vec<Event>) -> (f64, usize) {
        let input = RawInput {
            screen_rect: Some(Rect::from_min_size(Pos2::ZERO, self.size)),
            time: Some(time),
            events,
            ..RawInput::default()
        };
        let begin = Instant::now();
        let output = self.ctx.run_ui(input, |ui| self.app.show(ui));
        let primitives = self.ctx.tessellate(output.shapes.clone(), output.pixels_per_point);
        let time = begin.elapsed().as_secs_f64() * 1e3;
        let count = primitives.iter().map(|p| match &p.primitive {
            egui::epaint::Primitive::Mesh(mesh) => mesh.vertices.len(),
            egui::epaint::Primitive::Callback(_) => 0,
        });
        let vertices = count.sum();
        output.drop_without_applying_deltas();
        (time, vertices)
    }

    /// Opens a file, while the pointer moves; frames that show it before everything is worked out are counted.
    fn open(&mut self, source: Target) {
        let begin = Instant::now();
        self.app.open(source);
        let (mut first, mut times) = (None, Vec::new());
        while self.app.is_busy() {
            let began = Instant::now();
            let seconds = begin.elapsed().as_secs_f64();
            let pointer = self.at(((seconds * 0.7) % 1.0) as f32);
            let (time, _) = self.frame(seconds, vec![Event::PointerMoved(pointer)]);
            if self.app.files.current().is_some() {
                first.get_or_insert_with(|| begin.elapsed());
                times.push(time);
            }
            std::thread::sleep(FRAME.saturating_sub(began.elapsed()));
        }
        let first = first.unwrap_or_else(|| begin.elapsed()).as_secs_f64();
        let all = begin.elapsed().as_secs_f64();
        println!("read, analysed and first drawn in {first:.2} s, everything worked out after {all:.2} s");
        let count = times.len();
        print("meanwhile", times, &format!(" of {count} frames"));
    }

    /// A place in the view.
    fn at(&self, share: f32) -> Pos2 {
        Pos2::new(self.size.x * (0.19 + 0.56 * share), self.size.y * (0.45 + 0.12 * (share * 20.0).sin()))
    }

    /// Draws and waits until everything is worked out.
    fn settle(&mut self, time: f64) {
        self.frame(time, Vec::new());
        while self.app.is_busy() {
            std::thread::sleep(Duration::from_micros(200));
            if !self.app.is_busy() {
                self.frame(time, Vec::new());
            }
        }
    }

    fn measure(&mut self, view: &str) {
        assert!(VIEWS.by_id(view).is_some(), "no view '{view}'");
        self.app.link = Some(DeepLink { view: Some(view.to_owned()), ..DeepLink::default() });
        self.app.follow_link();
        let begin = Instant::now();
        self.settle(1.0);
        let ready = begin.elapsed().as_secs_f64();
        let mut times = Vec::new();
        let mut vertices = 0;
        for frame in 0..FRAMES {
            let turn = if frame % 80 < 40 { 12.0 } else { -12.0 };
            let events = vec![
                Event::PointerMoved(self.at(frame as f32 / FRAMES as f32)),
                Event::MouseWheel {
                    unit: MouseWheelUnit::Point,
                    delta: Vec2::new(0.0, turn),
                    phase: TouchPhase::Move,
                    source: MouseWheelSource::Wheel,
                    modifiers: Modifiers::NONE,
                },
            ];
            let (time, count) = self.frame(2.0 + frame as f64 / 60.0, events);
            if frame >= 20 {
                times.push(time);
            }
            vertices = vertices.max(count);
        }
        print(&format!("{view}: ready after {ready:.2} s, then"), times, &format!(", up to {vertices} vertices"));
        self.zoom(view);
    }

    /// Time from a pinch to the end of the frame that shows the pictures as it leaves the axes.
    fn zoom(&mut self, view: &str) {
        let mut times = Vec::new();
        let mut now = 20.0;
        // The wheel's last turns go on for some frames.
        for _ in 0..60 {
            now += 1.0 / 60.0;
            self.settle(now);
        }
        for zoom in 0..ZOOMS {
            now += 0.5;
            let factor = if zoom % 8 < 4 { 1.5 } else { 1.0 / 1.5 };
            let begin = Instant::now();
            self.frame(now, vec![Event::PointerMoved(self.at(0.4)), Event::Zoom(factor)]);
            self.settle(now);
            times.push(begin.elapsed().as_secs_f64() * 1e3);
        }
        print(&format!("{view}: pictures follow a zoom after"), times, "");
    }
}
