//! The report as a page: it stands alone, is well-formed whatever the names are, and has the pictures.

use highwater::analysis::ProfileAnalysis;
use highwater::export::document::{Document, Item, Line, Table, html};
use highwater::export::report::{self, Format, Options};
use highwater::open;
use highwater::source::Progress;

use crate::common;

/// Elements that have no end tag.
const VOID: [&str; 3] = ["meta", "br", "!DOCTYPE"];

/// The elements of a page in the order of their start tags.
///
/// # Panics
/// If the page is not well-formed: an element that is not closed, or a stray `<`.
fn elements(page: &str) -> Vec<String> {
    let (mut found, mut open, mut rest) = (Vec::new(), Vec::<String>::new(), page);
    while let Some(start) = rest.find('<') {
        let end = start + rest[start..].find('>').expect("a tag ends");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        let name: String =
            tag.trim_start_matches('/').chars().take_while(|c| !c.is_whitespace() && *c != '/').collect();
        assert!(!name.is_empty() && !tag.contains('<'), "a stray <: {tag:.80}");
        assert!(tag.matches('"').count() % 2 == 0, "an open attribute: {tag:.80}");
        if tag.starts_with('/') {
            assert_eq!(open.pop().as_ref(), Some(&name), "{tag:.80} closes another element");
            continue;
        }
        found.push(tag.to_owned());
        if VOID.contains(&name.as_str()) || tag.ends_with('/') {
            continue;
        }
        // Their text is not markup.
        if name == "script" || name == "style" {
            rest = &rest[rest.find(&format!("</{name}>")).expect("it ends")..];
        }
        open.push(name);
    }
    assert_eq!(open, [""; 0], "not closed");
    found
}

/// Checks that a page needs nothing but itself.
fn stands_alone(page: &str) {
    for word in ["src=", "href=", "url(", "@import", "fetch(", "XMLHttpRequest", "<iframe", "<object", "<link", "<form"]
    {
        assert!(!page.contains(word), "{word} in the page");
    }
    assert!(page.contains("default-src 'none'"), "it may load something");
    for tag in elements(page) {
        let attributes = tag.split_once(' ').map_or("", |(_, rest)| rest);
        assert!(!attributes.contains(" on") && !attributes.starts_with("on"), "a handler: {tag}");
        assert!(!attributes.contains("://"), "an address: {tag}");
    }
}

#[test]
fn every_sample_gives_a_page_that_stands_alone() {
    let mut paths = common::sample_programs();
    paths.push(common::samples().join("ipu_over.cbor"));
    let mut pictures = 0;
    for path in &paths {
        let profile = open::open_path(path, &Progress::default()).expect("opens");
        let analysis = ProfileAnalysis::new(&profile);
        let options = Options { top: 5, pictures: true, ..Options::default() };
        let page = report::write(&report::build(&[(&profile, &analysis)], &[], &options), Format::Html);
        stands_alone(&page);
        pictures += elements(&page).iter().filter(|tag| tag.starts_with("svg")).count();
        assert!(page.contains("<button"), "{}: no table can be sorted", path.display());
    }
    assert!(pictures >= 6, "{pictures} pictures");
}

#[test]
fn the_picture_of_the_curve_has_limit_and_peak() {
    let path = common::sample_program("v5e_gpt_m_oom");
    let profile = open::open_path(&path, &Progress::default()).expect("opens");
    let analysis = ProfileAnalysis::new(&profile);
    let options = Options { top: 5, pictures: true, ..Options::default() };
    let report = report::build(&[(&profile, &analysis)], &[], &options);
    let space = &report.profiles[0].programs[0].spaces[0];
    let picture = space.picture.as_ref().expect("a picture");
    assert_eq!(Some(picture.peak.1), space.reserved_peak_bytes);
    assert_eq!(Some(picture.peak.0), space.reserved_peak_time);
    let highest = picture.columns.iter().map(|(_, bytes)| bytes.iter().sum::<u64>()).max();
    assert_eq!(highest, space.reserved_peak_bytes, "the columns contain the peak");
    let page = report::write(&report, Format::Html);
    assert!(page.contains("15.75 GiB</text>") && page.contains("stroke=\"var(--over)\""), "no limit");
}

#[test]
fn hostile_names_stay_text() {
    let names = [
        "</code></td></table><script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "<!-- ",
        "]]>&lt;&#60;",
        "a\u{0}b\u{1b}[31m\u{202e}\r\n`b` **c** | d",
        "javascript:alert(1)",
        "</style></title><svg onload=alert(1)>",
    ];
    for name in names {
        let mut document = Document::default();
        document.heading(3, name);
        document.paragraph(Line::marked(name).then_code(name).then_strong(name));
        document.note(name);
        document.code(name);
        document.list(vec![Item::new(7, name), Item::new(1, Line::code(name))]);
        let mut table = Table::new([name, ">n"]);
        table.caption = name.to_owned();
        table.row([Line::code(name), Line::size(1)]);
        document.table(table);
        let page = html(&document, name);
        let tags = elements(&page);
        assert_eq!(tags.iter().filter(|tag| tag.starts_with("script")).count(), 1, "{name}");
        assert!(!tags.iter().any(|tag| tag.starts_with("img") || tag.contains("onload")), "{name}");
        assert!(!page.contains(['\u{0}', '\u{1b}', '\u{202e}']), "{name:?}");
    }
}
