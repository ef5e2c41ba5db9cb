//! Which page of the help is shown, and what the user has typed there.

/// A page of the sheet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelpPage {
    /// Keys.
    Keys,
    /// How to get a dump.
    Dump,
    /// Terms and what they mean.
    Glossary,
    /// A report of a problem.
    Problem,
    /// Versions.
    About,
}

impl HelpPage {
    /// All pages, in their order.
    pub const ALL: [Self; 5] = [Self::Keys, Self::Dump, Self::Glossary, Self::Problem, Self::About];

    /// Title of the page.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Keys => "Keys",
            Self::Dump => "How do I get a dump?",
            Self::Glossary => "Glossary",
            Self::Problem => "Report a problem",
            Self::About => "About",
        }
    }
}

/// The sheet while it is open.
pub struct Help {
    /// The page that is shown.
    pub page: HelpPage,
    /// Row of the recipe that is shown.
    pub recipe: usize,
    /// Search text of the glossary.
    pub search: String,
    /// Whether the search field takes the focus in this frame.
    pub focus_search: bool,
    /// The report of a problem, as the user has edited it.
    pub report: String,
}
