//! Drops on an X11 window that winit refuses: it loses all of a drop if one path in it has vanished, is on another host,
//! or is not a file at all. These are read here, over a connection of our own, so that the rest is opened and the
//! message names what is missing.
//!
//! Another client may watch the window's properties and read them, and that is all that is done here: when the drag
//! reaches the window, winit asks its source for the list, which arrives as the property `XdndSelection`. The message
//! of the drop itself goes to winit alone; instead, the pointer tells: the drag ends when no button is pressed any more,
//! over the window or beside it.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use winit::raw_window_handle::{HasWindowHandle, RawWindowHandle};
use x11rb::connection::Connection as _;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    AtomEnum, ChangeWindowAttributesAux, ConnectionExt as _, EventMask, KeyButMask, Property, Window,
};
use x11rb::rust_connection::RustConnection;

/// Time between two looks at the pointer.
const LOOK: Duration = Duration::from_millis(30);

/// After this time a drag that has not ended is forgotten.
const LONGEST: Duration = Duration::from_mins(1);

/// Longest list of paths that is read, in units of four bytes.
const MAX_LIST: u32 = 1 << 20;

/// Paths of drops that winit refuses, as they come; `None` if the window is not one of X11.
pub(super) fn watch(window: &impl HasWindowHandle, ctx: &egui::Context) -> Option<Receiver<Vec<PathBuf>>> {
    let id = match window.window_handle().ok()?.as_raw() {
        RawWindowHandle::Xlib(handle) => u32::try_from(handle.window).ok()?,
        RawWindowHandle::Xcb(handle) => handle.window.get(),
        _ => return None,
    };
    let (sender, receiver) = channel();
    let ctx = ctx.clone();
    // The thread ends with its connection, or with the program.
    let started = std::thread::Builder::new().name("refused drops".to_owned()).spawn(move || {
        let _ = watch_window(id, &sender, &ctx);
    });
    started.ok().map(|_| receiver)
}

fn watch_window(
    window: Window,
    drops: &Sender<Vec<PathBuf>>,
    ctx: &egui::Context,
) -> Result<(), Box<dyn std::error::Error>> {
    let (x11, _) = RustConnection::connect(None)?;
    let list = x11.intern_atom(false, b"XdndSelection")?.reply()?.atom;
    let watched = ChangeWindowAttributesAux::new().event_mask(EventMask::PROPERTY_CHANGE);
    x11.change_window_attributes(window, &watched)?.check()?;
    loop {
        let Event::PropertyNotify(change) = x11.wait_for_event()? else { continue };
        if change.atom != list || change.state != Property::NEW_VALUE {
            continue;
        }
        let property = x11.get_property(false, window, list, AtomEnum::ANY, 0, MAX_LIST)?.reply()?;
        let paths = paths_of(&property.value);
        if is_refused(&paths) && is_dropped(&x11, window)? {
            let paths = paths.into_iter().map(|(path, _)| path).collect();
            if drops.send(paths).is_err() {
                return Ok(());
            }
            ctx.request_repaint();
        }
    }
}

/// The paths in a list of URIs (`text/uri-list`, RFC 2483), and whether each is a file of this machine by its URI.
fn paths_of(list: &[u8]) -> Vec<(PathBuf, bool)> {
    let text = percent_encoding::percent_decode(list).decode_utf8_lossy();
    let lines = text.split(['\r', '\n']).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let path = |line: &str| match line.strip_prefix("file://") {
        Some(path) if path.starts_with('/') => (PathBuf::from(path), true),
        // With the name of a host, which is this one as a rule.
        Some(path) => match path.split_once('/') {
            Some((_, path)) => (Path::new("/").join(path), false),
            None => (PathBuf::from(line), false),
        },
        None => (PathBuf::from(line), false),
    };
    lines.map(path).collect()
}

/// Whether winit gives none of these to the program.
fn is_refused(paths: &[(PathBuf, bool)]) -> bool {
    paths.iter().any(|(path, is_local)| !is_local || !path.exists())
}

/// Waits for the end of the drag, and returns whether that was over the window.
fn is_dropped(x11: &RustConnection, window: Window) -> Result<bool, Box<dyn std::error::Error>> {
    let buttons = KeyButMask::BUTTON1 | KeyButMask::BUTTON2 | KeyButMask::BUTTON3;
    let begin = Instant::now();
    while begin.elapsed() < LONGEST {
        std::thread::sleep(LOOK);
        let pointer = x11.query_pointer(window)?.reply()?;
        if !pointer.mask.intersects(buttons) {
            let size = x11.get_geometry(window)?.reply()?;
            let inside = |at: i16, length: u16| u16::try_from(at).is_ok_and(|at| at < length);
            return Ok(inside(pointer.win_x, size.width) && inside(pointer.win_y, size.height));
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drop_with_a_vanished_path_is_read_here_and_any_other_by_winit() {
        let here = std::env::temp_dir();
        let uri = format!("file://{}\r\n", here.display());
        assert!(!is_refused(&paths_of(uri.as_bytes())));
        let with_vanished = format!("{uri}file:///gone/my%20dump.pb\r\n");
        let paths = paths_of(with_vanished.as_bytes());
        assert!(is_refused(&paths));
        assert_eq!(
            paths.iter().map(|(path, _)| path.as_path()).collect::<Vec<_>>(),
            [here.as_path(), Path::new("/gone/my dump.pb")]
        );
    }

    #[test]
    fn the_name_of_a_host_and_another_protocol_do_not_lose_the_rest() {
        let paths = paths_of(b"file://host/tmp/a.pb\r\nhttps://example.org/b.pb\r\n");
        assert!(is_refused(&paths));
        assert_eq!(paths[0].0, Path::new("/tmp/a.pb"));
        assert_eq!(paths[1].0, Path::new("https://example.org/b.pb"));
    }
}
