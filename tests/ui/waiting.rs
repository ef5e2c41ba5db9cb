//! While the advisor is still working, room is left for what it finds: when that comes, nothing moves.

use std::time::Duration;

use egui::Rect;
use egui_kittest::Harness;
use highwater::open::Target;
use highwater::ui::app::App;
use highwater::ui::session::Options;

use crate::common::Files;
use crate::gui::painted;

/// Places of the texts that do not come with the advice.
const TEXTS: [&str; 2] = ["Findings", "Largest at the peak"];

fn places(harness: &Harness<'_, App>) -> Vec<(&'static str, Rect)> {
    let painted = painted(harness);
    let found = TEXTS.iter().filter_map(|&text| Some((text, painted.iter().find(|one| one.words == text)?.place)));
    found.collect()
}

#[test]
fn nothing_moves_when_the_advice_comes() {
    let files = Files::of_project();
    for case in ["v5e_gpt_m_oom", "v5e_inverse_oom", "v4_wave"] {
        for size in [[1600.0, 2000.0], [1000.0, 2400.0], [760.0, 2400.0]] {
            let path = files.case(case);
            let mut harness = Harness::builder().with_size(size).build_eframe(|creation| {
                let mut app = App::new(&creation.egui_ctx, Options::default());
                app.open(Target::Path(path.clone()));
                app
            });
            let is_open = |harness: &Harness<'_, App>| harness.state().files.current().is_some();
            let step = |harness: &mut Harness<'_, App>| {
                std::thread::sleep(Duration::from_millis(1));
                harness.step();
            };
            while !is_open(&harness) {
                step(&mut harness);
            }
            // The curve comes with the verdict, unless the machine is busy; the advisor begins with this frame.
            let mut before = Vec::new();
            let mut moved = Vec::new();
            loop {
                let was_busy = harness.state().is_busy();
                step(&mut harness);
                let now = places(&harness);
                if before.len() == TEXTS.len() && now != before {
                    moved.push((before.clone(), now.clone()));
                }
                before = now;
                if !was_busy {
                    break;
                }
            }
            assert_eq!(before.len(), TEXTS.len(), "{case} at {size:?}: {before:?}");
            assert_eq!(moved, [], "{case} at {size:?}");
        }
    }
}
