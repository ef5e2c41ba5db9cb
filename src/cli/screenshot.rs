//! `highwater screenshot`: its arguments and implementation.

use std::path::PathBuf;
use std::process::ExitCode;

use highwater::export;
use highwater::open::Target;
use highwater::open::session::OpenedSession;
use highwater::ui::app::{self, App, DeepLink};
use highwater::ui::session::{Options, ThemeChoice};

use super::inputs::{EXIT_UNREADABLE, complain, read_sets, refuse, targets};
use super::link::LinkArgs;

#[derive(Debug, clap::Args)]
pub struct ScreenshotArgs {
    /// Files to open; the first is shown
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    link: LinkArgs,
    /// Image file to write: PNG, or SVG if its name ends with .svg
    #[arg(long)]
    out: PathBuf,
    /// Size in points
    #[arg(long, default_value = "1600x1000", value_parser = parse_pixels)]
    size: (u32, u32),
    /// Theme
    #[arg(long, value_enum, default_value_t)]
    theme: ThemeArg,
    /// Pixels per point
    #[arg(long, default_value_t = 1.0)]
    scale: f32,
    /// Presenter mode: larger type, thicker lines, the list of files collapsed
    #[arg(long)]
    presenter: bool,
    /// Replace the names of scopes, operations, files and modules by aliases
    #[arg(long)]
    hide_names: bool,
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum ThemeArg {
    #[default]
    Light,
    Dark,
    /// High contrast, dark on white
    ContrastLight,
    /// High contrast, light on black
    ContrastDark,
}

/// Largest picture, in points and in pixels.
const MAX_PIXELS: u32 = 16_384;

fn parse_pixels(text: &str) -> Result<(u32, u32), String> {
    let sides = text.split_once(['x', '\u{d7}']).and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
    match sides {
        Some((width, height)) if (200..=MAX_PIXELS).contains(&width) && (150..=MAX_PIXELS).contains(&height) => {
            Ok((width, height))
        }
        Some(_) => Err(format!("a picture must be 200x150 to {MAX_PIXELS}x{MAX_PIXELS} points")),
        None => Err("write a size as 1600x1000".to_owned()),
    }
}

/// Draws a picture of a view.
pub fn draw(args: &ScreenshotArgs) -> ExitCode {
    let sets = match read_sets(&args.link.sets) {
        Ok(sets) => sets,
        Err(error) => return refuse(&error),
    };
    let link = args.link.link(sets);
    let context = egui::Context::default();
    let theme = match args.theme {
        ThemeArg::Light => ThemeChoice::Light,
        ThemeArg::Dark => ThemeChoice::Dark,
        ThemeArg::ContrastLight => ThemeChoice::ContrastLight,
        ThemeArg::ContrastDark => ThemeChoice::ContrastDark,
    };
    let (presenter, names_hidden) = (args.presenter, args.hide_names);
    let options = Options { theme, presenter, names_hidden, synchronous: true, ..Options::default() };
    let mut app = App::new(&context, options);
    app.link = Some(link.clone());
    let targets = targets(&args.paths);
    // A session says itself where to look, and what is compared.
    let session = match args.paths.as_slice() {
        [path] if matches!(OpenedSession::read(path), Ok(Some(_))) => Some(Target::Path(path.clone())),
        _ => None,
    };
    let compares = session.is_none() && targets.len() > 1 && link.view.as_deref() == Some("compare");
    if compares {
        app.open_columns(targets.clone());
    }
    // Opening a file again only shows it: this makes the first one visible.
    let shown = targets.iter().chain(targets.first().filter(|_| targets.len() > 1));
    if let Some(session) = &session {
        app.link = None;
        app.open(session.clone());
    } else {
        for target in shown.filter(|_| !compares) {
            app.open(target.clone());
        }
    }
    // What the arguments say goes before what the session says.
    let follows = if session.is_some() { link != DeepLink::default() } else { targets.len() > 1 };
    if follows && !compares {
        app.link = Some(link.clone());
        app.follow_link();
    }
    let failures = app.take_errors();
    for (name, error) in &failures {
        let target = targets.iter().find(|target| target.name() == *name);
        let path = target.and_then(Target::origin).map(|path| path.display().to_string());
        complain(path.as_ref().unwrap_or(name), error);
    }
    if !app.has_file() {
        if failures.is_empty() {
            eprintln!("error: nothing to show");
        }
        return ExitCode::from(EXIT_UNREADABLE);
    }
    // What is read does not have what the arguments name.
    if let Err(sentence) = app.check_link(&link) {
        eprintln!("error: {sentence}");
        return ExitCode::from(2);
    }
    let scale = args.scale.clamp(0.5, 4.0);
    let size = egui::Vec2::new(args.size.0 as f32, args.size.1 as f32);
    if size.max_elem() * scale > MAX_PIXELS as f32 {
        eprintln!("error: the picture would be more than {MAX_PIXELS} pixels wide or high");
        return ExitCode::from(2);
    }
    let is_svg = args.out.extension().is_some_and(|end| end.eq_ignore_ascii_case("svg"));
    let written = if is_svg {
        let svg = app::draw_svg(&context, &mut app, size, scale);
        std::fs::write(&args.out, svg).map_err(|error| error.to_string())
    } else {
        let picture = app::draw_picture(&context, &mut app, size, scale);
        export::image::write_png(&args.out, picture.size, picture.as_raw())
    };
    if let Err(error) = written {
        complain(&args.out.display().to_string(), &format!("cannot write: {error}"));
        return ExitCode::from(EXIT_UNREADABLE);
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_UNREADABLE) }
}
