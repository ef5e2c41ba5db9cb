//! Views as values: everything that the window and other views need to know of one.

use egui::Ui;

use super::ViewContext;
use crate::ui::session::{Document, Locals, Shared};

/// A key and its effect, for the shortcut sheet.
pub type KeyHelp = (&'static str, &'static str);

/// A view of a document, or a panel beside the views.
pub struct View {
    /// Id on the command line.
    pub id: &'static str,
    /// Title of its tab.
    pub title: &'static str,
    /// Whether it has something to show for a document.
    pub applies: fn(&Document) -> bool,
    /// Draws it into the available space.
    pub show: fn(&mut Ui, &mut ViewContext<'_>),
    /// Its own card in Details; `None` for the card of the selected buffer or step.
    pub card: Option<fn(&mut Ui, &mut ViewContext<'_>)>,
    /// A section above the card for the view's measurement; draws nothing if there is none.
    pub section: Option<fn(&mut Ui, &mut ViewContext<'_>)>,
    /// What the find command does in it.
    pub find: Find,
    /// Whether it can show a buffer.
    pub shows_buffers: bool,
    /// Clears a selection that only this view has, for Esc; returns whether there was one.
    pub clear: fn(&mut Locals) -> bool,
    /// Keys of this view alone.
    pub keys: &'static [KeyHelp],
    /// The digit that shows it, the same in every document that has it; 0 for none.
    pub digit: u8,
}

/// What the find command does in a view.
#[derive(Clone, Copy)]
pub enum Find {
    /// Opens the window's find bar; what does not match is dimmed.
    Dim,
    /// Focuses the view's own search field.
    Field(fn(&mut Shared, &mut Locals)),
    /// The view has nothing to search: the field of another view is used.
    Elsewhere,
}

impl View {
    /// A view that applies to every document, with defaults for everything else.
    #[must_use]
    pub const fn new(id: &'static str, title: &'static str, show: fn(&mut Ui, &mut ViewContext<'_>)) -> Self {
        const fn applies(_: &Document) -> bool {
            true
        }
        const fn clear(_: &mut Locals) -> bool {
            false
        }
        Self {
            id,
            title,
            applies,
            show,
            card: None,
            section: None,
            find: Find::Elsewhere,
            shows_buffers: false,
            clear,
            keys: &[],
            digit: 0,
        }
    }

    /// The view with a digit from 1 to 9.
    #[must_use]
    pub const fn with_digit(mut self, digit: u8) -> Self {
        self.digit = digit;
        self
    }
}

/// All views in the order of their tabs, passed to each view so that none needs to import another.
#[derive(Clone, Copy)]
pub struct Views(pub &'static [View]);

impl Views {
    /// The view with this id.
    #[must_use]
    pub fn by_id(self, id: &str) -> Option<&'static View> {
        self.0.iter().find(|view| view.id == id)
    }

    /// The view with this id, if it has something to show.
    #[must_use]
    pub fn shown(self, id: &str, document: &Document) -> Option<&'static View> {
        self.by_id(id).filter(|view| (view.applies)(document))
    }

    /// The views that have something to show for a document.
    pub fn shown_for(self, document: &Document) -> impl Iterator<Item = &'static View> + '_ {
        self.0.iter().filter(|view| (view.applies)(document))
    }

    /// The view that a digit shows in a document: the first one with that digit.
    #[must_use]
    pub fn of_digit(self, digit: u8, document: &Document) -> Option<&'static View> {
        self.shown_for(document).find(|view| digit > 0 && view.digit == digit)
    }

    /// The digit that shows a view in a document, as text; empty if there is none.
    #[must_use]
    pub fn digit_of(self, view: &View, document: &Document) -> String {
        let is_it = self.of_digit(view.digit, document).is_some_and(|first| first.id == view.id);
        if is_it { view.digit.to_string() } else { String::new() }
    }

    /// The view with this id if it has something to show, else the first one that has.
    #[must_use]
    pub fn shown_or_first(self, id: &str, document: &Document) -> &'static View {
        let first = || self.shown_for(document).next().unwrap_or(&self.0[0]);
        self.shown(id, document).unwrap_or_else(first)
    }
}
