//! One row of the list on the left: verdict, name, device, memory needed of the limit; or progress while it is read.

use egui::{Align2, Pos2, Rect, Role, Sense, Ui, Vec2, WidgetInfo};

use super::loading::Loading;
use crate::analysis::Verdict;
use crate::model::{Bytes, Failure, NoteCode, Shortage, UnitSystem, thousands};
use crate::ui::app::App;
use crate::ui::app::chrome::top_bar::mark_of;
use crate::ui::app::files::{FileEntry, FileState, OpenFile};
use crate::ui::widget::controls::{Mark, paint_cut, paint_gauge, paint_mark};
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::theme::{Theme, size};

/// How the list is drawn.
#[derive(Clone, Copy)]
pub struct ListStyle<'a> {
    /// The theme.
    pub theme: &'a Theme,
    /// Whether it is a narrow rail with the verdicts alone.
    pub rail: bool,
}

/// Contents of a row.
#[derive(Default)]
struct Facts {
    mark: Option<Mark>,
    second: String,
    device: String,
    need: Option<Bytes>,
    capacity: Option<Bytes>,
    over: bool,
    /// What is needed was requested on top of what is in use, so that it is no share of a capacity.
    is_request: bool,
    /// Programs that were not decoded yet are drawn paler.
    quiet: bool,
    error: bool,
}

impl App {
    /// Tooltip of a row.
    pub(in crate::ui::app) fn row_hint(&self, entry: &FileEntry) -> String {
        if self.options.names_hidden {
            return String::new();
        }
        // What else is known of it is in its views; a long tooltip would cover the rows below.
        let mut lines: Vec<String> = entry.error.iter().map(|error| format!("could not be read: {error}")).collect();
        if let FileState::Open(open) = &entry.state {
            // The row may have had to cut it.
            lines.extend(Some(open_facts(open, self.options.units).second).filter(|line| !line.is_empty()));
        }
        lines.extend(entry.target.origin().map(|path| path.display().to_string()));
        if let Some(listed) = entry.listed().filter(|listed| !lines.iter().any(|line| line.ends_with(&listed.file))) {
            lines.push(listed.file.clone());
        }
        lines.join("\n")
    }

    /// Draws one file; returns whether its close button was clicked.
    pub(in crate::ui::app) fn row(&self, ui: &mut Ui, style: ListStyle<'_>, rect: Rect, index: usize) -> bool {
        let ListStyle { theme, rail } = style;
        let entry = &self.files.entries[index];
        let mut facts = match &entry.state {
            FileState::Loading(loading) => return self.loading_row(ui, style, rect, (entry, index), loading),
            FileState::Open(open) => {
                let mut facts = open_facts(open, self.options.units);
                if self.is_veiled(open) {
                    facts.second.clear();
                }
                // The same lines as before it was opened, unless there is more to say of it.
                let is_plain = facts.second.is_empty() || facts.second == entry.name;
                if entry.listed().is_some() && is_plain && self.files.own_list(entry).is_none() {
                    facts.second = self.listed_facts(entry).second;
                }
                facts
            }
            FileState::Listed(_) => self.listed_facts(entry),
            FileState::Failed(_) | FileState::Cancelled => return false,
        };
        let mut first = self.name_of(entry);
        // The folder tells programs of the same name apart: it comes first.
        if let Some(place) = self.files.place_of(entry) {
            let place = self.listed_name(&place);
            if facts.error {
                first = place;
            } else {
                facts.second = std::mem::replace(&mut first, place);
            }
        }
        if let Some((number, count)) = self.files.number_of(entry).filter(|_| !facts.error) {
            let parted = if facts.second.is_empty() { "" } else { ", " };
            facts.second = format!("{}{parted}{number} of {count}", facts.second);
        }
        let mark_at = Pos2::new(if rail { rect.center().x } else { rect.left() + 19.0 }, rect.top() + 17.0);
        let (left, right) = (rect.left() + 34.0, rect.right() - 16.0);
        let painter = ui.painter().clone();
        paint_mark(&painter, mark_at, facts.mark.unwrap_or(Mark::Unknown), theme);
        if rail {
            return false;
        }
        let color = if facts.quiet { theme.text2 } else { theme.text };
        let name = Pos2::new(left, rect.top() + 17.0);
        let font = Weight::Medium.at(size::BODY);
        let small = Weight::Regular.at(size::SMALL);
        let mut end = right - 12.0;
        if let Some(side) = self.side_of(entry) {
            // Its close button is behind it.
            let at = Pos2::new(right - 12.0, rect.top() + 17.0);
            end = painter.text(at, Align2::RIGHT_CENTER, side, small.clone(), theme.accent).left() - 6.0;
        }
        paint_cut(&painter, (name, Align2::LEFT_CENTER), &first, font, color, end - left);
        let y = rect.top() + 33.0;
        let device = painter.text(Pos2::new(right, y), Align2::RIGHT_CENTER, &facts.device, small.clone(), theme.text2);
        let color = if facts.error { theme.warn } else { theme.text2 };
        let room = device.left() - left - 8.0;
        paint_cut(&painter, (Pos2::new(left, y), Align2::LEFT_CENTER), &facts.second, small, color, room);
        let Some(need) = facts.need else { return false };
        let color = if facts.over { theme.danger } else { theme.text };
        let y = rect.top() + 50.0;
        let words = self.need_words(need, facts.capacity);
        painter.text(Pos2::new(right, y), Align2::RIGHT_CENTER, words, Weight::Medium.at(size::BODY), color);
        // Without a limit a gauge says nothing.
        let Some(capacity) = facts.capacity.filter(|_| !facts.is_request) else { return false };
        let track = Rect::from_min_max(Pos2::new(left, y - 2.5), Pos2::new(right - 74.0, y + 2.5));
        paint_gauge(&painter, track, need.0 as f64, Some(capacity.0 as f64), theme);
        false
    }

    /// The verdict on a file, and the memory it needs in words.
    pub(in crate::ui::app) fn standing_of(&self, entry: &FileEntry) -> (Mark, String) {
        let facts = match &entry.state {
            FileState::Open(open) => open_facts(open, self.options.units),
            _ => self.listed_facts(entry),
        };
        let need = facts.need.map(|need| self.need_words(need, facts.capacity)).unwrap_or_default();
        (facts.mark.unwrap_or(Mark::Unknown), need)
    }

    /// Bytes needed, told from the capacity.
    fn need_words(&self, need: Bytes, capacity: Option<Bytes>) -> String {
        let units = self.options.units;
        capacity.map_or_else(|| units.short(need), |capacity| units.beside(need, capacity))
    }

    /// Which side of the comparison that is shown a file is.
    fn side_of(&self, entry: &FileEntry) -> Option<&'static str> {
        let after = self.files.current.and_then(|row| self.files.entries.get(row))?;
        let open = self.files.current()?;
        let before = open.against?;
        match entry.id() {
            id if id == before => Some("before"),
            id if id == after.id() => Some("after"),
            id if open.beside.contains(&id) => Some("column"),
            _ => None,
        }
    }

    fn listed_facts(&self, entry: &FileEntry) -> Facts {
        let Some(listed) = entry.listed() else { return Facts::default() };
        let others = match listed.others.len() {
            0 => String::new(),
            1 => "and 1 other file".to_owned(),
            count => format!("and {} other files", thousands(count as u64)),
        };
        let place = listed.group.rsplit('/').next().unwrap_or_default();
        let mut facts = Facts {
            second: match (self.files.own_list(entry).is_some(), place.is_empty()) {
                (true, _) => self.listed_name(&entry.name),
                (false, true) => others,
                (false, false) => self.listed_name(place),
            },
            device: listed.known_device().and_then(|device| device.name.clone()).unwrap_or_default(),
            quiet: true,
            ..Facts::default()
        };
        if let Some((need, capacity)) = listed.known() {
            facts.over = capacity.is_some_and(|capacity| need > capacity);
            facts.mark = capacity.map(|_| if facts.over { Mark::Over } else { Mark::Fits });
            (facts.need, facts.capacity) = (Some(need), capacity);
        }
        if let Some(shortage) = listed.known_shortage() {
            (facts.mark, facts.over, facts.is_request) = (Some(Mark::Over), true, shortage.is_request);
        }
        if entry.error.is_some() {
            (facts.second, facts.error) = ("could not be read".to_owned(), true);
        }
        facts
    }

    /// A file that is loading, with a Cancel button; returns whether that was clicked.
    fn loading_row(
        &self,
        ui: &Ui,
        ListStyle { theme, rail }: ListStyle<'_>,
        rect: Rect,
        (entry, index): (&FileEntry, usize),
        loading: &Loading,
    ) -> bool {
        let mark_at = Pos2::new(if rail { rect.center().x } else { rect.left() + 19.0 }, rect.top() + 17.0);
        let (left, right) = (rect.left() + 34.0, rect.right() - 16.0);
        let painter = ui.painter();
        paint_mark(painter, mark_at, Mark::Unknown, theme);
        if rail {
            return false;
        }
        let name = Pos2::new(left, rect.top() + 17.0);
        let font = Weight::Medium.at(size::BODY);
        paint_cut(painter, (name, Align2::LEFT_CENTER), &self.name_of(entry), font, theme.text2, right - left);
        let (_, share) = loading.state();
        let track = Rect::from_min_max(Pos2::new(left, rect.top() + 31.0), Pos2::new(right, rect.top() + 34.0));
        painter.rect_filled(track, 0.0, theme.inset);
        let done = Rect::from_min_size(track.min, Vec2::new(track.width() * share, track.height()));
        painter.rect_filled(done, 0.0, theme.accent);
        let words = loading.words(self.options.units);
        let small = Weight::Regular.at(size::SMALL);
        let at = (Pos2::new(left, rect.top() + 48.0), Align2::LEFT_CENTER);
        paint_cut(painter, at, &words, small, theme.text2, right - 58.0 - left);
        let cancel =
            Rect::from_min_max(Pos2::new(right - 50.0, rect.top() + 40.0), Pos2::new(right, rect.top() + 58.0));
        let response = ui.interact(cancel, ui.scope_id().with(("cancel", index)), Sense::click());
        let font = Weight::Medium.at(size::SMALL);
        painter.text(cancel.right_center(), Align2::RIGHT_CENTER, "Cancel", font, theme.accent);
        response.widget_info(|| WidgetInfo::labeled(Role::Button, true, format!("Cancel {}", self.name_of(entry))));
        if response.clicked() {
            loading.cancel();
        }
        response.clicked()
    }
}

/// A message in a few words: `CUDA driver, 512 MiB requested`.
fn message_words(failure: &Failure, shortage: Shortage, units: UnitSystem) -> String {
    let title = failure.kind.title();
    let speaker = title.split_once(": ").map_or(title, |(speaker, _)| speaker);
    let verb = if shortage.is_request { "requested" } else { "needed" };
    match shortage.needed {
        Some(needed) => format!("{speaker}, {} {verb}", units.short(needed)),
        None => speaker.to_owned(),
    }
}

fn open_facts(open: &OpenFile, units: UnitSystem) -> Facts {
    let document = &open.document;
    let profile = &document.profile;
    let (program, color) = document.main();
    let space = document.space(program, color);
    let capacity = open.shared.capacity.get(&color).or(space.and_then(|s| s.capacity.as_ref())).map(|c| c.bytes);
    let tiles = document.analysis.tiles.as_ref().filter(|_| space.is_none());
    let verdict = match (space, tiles) {
        (Some(space), _) => space.verdict_against(capacity),
        (None, Some(tiles)) => tiles.verdict(),
        (None, None) => Verdict::Unknown,
    };
    // An out-of-memory message means that memory ran out, even if the capacity is unknown.
    let shortage = open.shortage();
    let message = document.analysis.shortage.filter(|_| space.is_none() && shortage.is_some());
    let message = message.and_then(|(row, shortage)| Some((profile.failures.get(row)?, shortage)));
    let name = document.program(program).map(|(program, _)| program.name.clone()).unwrap_or_default();
    let more = profile.programs.len();
    let ipus = profile.tiles.as_ref().map(|tiles| format!("{} tiles", thousands(tiles.tile_count() as u64)));
    let kinds = || {
        let histories = document.analysis.runtime.len();
        let history = match histories {
            0 => None,
            1 => Some("allocator history".to_owned()),
            count => Some(format!("{count} allocator histories")),
        };
        let live = profile.live.as_ref().map(|live| if live.heap.is_some() { "allocator dump" } else { "live arrays" });
        let snapshot = profile.caching.as_ref().map(|_| "PyTorch snapshot");
        let told = message.map(|(failure, shortage)| message_words(failure, shortage, units));
        history.or(live.or(snapshot).map(str::to_owned)).or(told)
    };
    let name = if name.is_empty() { ipus.or_else(kinds).unwrap_or_default() } else { name };
    let runtime = document.analysis.runtime.iter().max_by_key(|allocator| allocator.peak);
    let live = document.analysis.live.as_ref().filter(|_| space.is_none());
    // The peak that every view tells: what is reserved is told in words there.
    let caching = document.analysis.caching.iter().map(|device| Bytes(device.replay.peaks.allocated.bytes)).max();
    let could_have = document.analysis.caching.iter().filter_map(|device| device.limit()).max().map(Bytes);
    let history = runtime.filter(|_| space.is_none() && tiles.is_none());
    let need = space.map(|space| space.xprof.allocated).or(tiles.and_then(|tiles| Some(Bytes(tiles.max?.1))));
    let is_snapshot = need.is_none() && history.is_none() && live.is_none() && caching.is_some();
    let need = need.or(history.map(|allocator| allocator.peak)).or(live.map(|live| live.total)).or(caching);
    let told = message.map(|(_, shortage)| shortage).filter(|_| need.is_none());
    let need = need.or(told.and_then(|shortage| shortage.needed));
    let limit = tiles.and_then(|tiles| tiles.limit.map(Bytes));
    let given = history.filter(|allocator| allocator.peak_stats.free > 0).and_then(|allocator| allocator.capacity);
    let cut = profile.sources.iter().find_map(|source| source.cut_at);
    let is_damaged = profile.notes.iter().any(|note| note.code == NoteCode::Damaged);
    let second = match cut {
        Some(end) => format!("truncated at byte {}", thousands(end)),
        None if is_damaged => "damaged, partly read".to_owned(),
        None if more > 1 => format!("{more} programs"),
        None => name,
    };
    Facts {
        mark: Some(if shortage.is_some() { Mark::Over } else { mark_of(verdict) }),
        second,
        error: cut.is_some() || is_damaged,
        device: match (&profile.device.name, is_snapshot) {
            // What its number is: Compare tells what is reserved.
            (_, true) => "allocated".to_owned(),
            (name, false) => name.clone().unwrap_or_default(),
        },
        need,
        capacity: capacity.or(limit).or(given).or(could_have).or(told.and_then(|shortage| shortage.limit())),
        over: shortage.is_some() || matches!(verdict, Verdict::Over { .. }),
        is_request: told.is_some_and(|shortage| shortage.is_request),
        ..Facts::default()
    }
}
