//! The command line: which words open the window, which print a report, which draw a picture.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use highwater::analysis::ProfileAnalysis;
use highwater::analysis::tree::TreeKind;
use highwater::analysis::what_if::{Edit, EditSet};
use highwater::decode::{DecodeError, Session};
use highwater::export::report::{self, Format};
use highwater::export::{self};
use highwater::model::{Bytes, Capacity, MemorySpace, Profile, SourceInfo, parse_size};
use highwater::source::Progress;
use highwater::ui::app::{self, App, DeepLink, Source};
use highwater::ui::session::{Options, Pin, ThemeChoice};

/// Something could not be read.
const EXIT_UNREADABLE: u8 = 3;

/// Where the memory of a TPU, GPU or IPU program went, and what brings the peak down.
#[derive(Debug, Parser)]
#[command(name = "highwater", version, args_conflicts_with_subcommands = true, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    window: WindowArgs,
}

#[derive(Debug, clap::Args)]
struct WindowArgs {
    /// Files to open; `-` for standard input
    files: Vec<PathBuf>,
    #[command(flatten)]
    link: LinkArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print what the window would show
    Report(ReportArgs),
    /// Draw a view to a picture, without a display
    Screenshot(ScreenshotArgs),
}

/// Where in a file to begin.
#[derive(Debug, clap::Args)]
struct LinkArgs {
    /// View: overview, timeline, buffers
    #[arg(long)]
    view: Option<String>,
    /// Memory space, by name or colour: HBM, 1
    #[arg(long)]
    space: Option<String>,
    /// Program
    #[arg(long)]
    program: Option<String>,
    /// Buffer to select, by number or name
    #[arg(long)]
    select: Option<String>,
    /// Step to show instead of the peak
    #[arg(long)]
    step: Option<u32>,
    /// What a program may use, overriding the device's capacity: 15.75GiB
    #[arg(long, value_parser = parse_size)]
    capacity: Option<Bytes>,
    /// A change to try out in the what-if view, any number of times: `donate params`, `batch 0.5`
    #[arg(long = "edit", value_name = "EDIT")]
    edits: Vec<Edit>,
    /// What to find: what matches is lit in every view
    #[arg(long)]
    filter: Option<String>,
    /// A numbered pin, any number of times: `step 120: a note`, `buffer 17`
    #[arg(long = "pin", value_name = "PIN")]
    pins: Vec<Pin>,
    /// A file of named sets of changes, as the what-if view saves them
    #[arg(long, value_name = "FILE")]
    sets: Vec<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct ScreenshotArgs {
    /// Files to open; the first is shown
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    link: LinkArgs,
    /// Picture to write
    #[arg(long)]
    out: PathBuf,
    /// Size in points
    #[arg(long, default_value = "1600x1000", value_parser = parse_pixels)]
    size: (u32, u32),
    /// Theme
    #[arg(long, value_enum, default_value_t)]
    theme: ThemeArg,
    /// Pixels in a point
    #[arg(long, default_value_t = 1.0)]
    scale: f32,
    /// As in presenter mode: larger type, thicker lines, the list of files folded
    #[arg(long)]
    presenter: bool,
    /// Neutral names in place of scopes, operations, files and modules
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
        Some(_) => Err(format!("a picture is 200x150 to {MAX_PIXELS}x{MAX_PIXELS} points")),
        None => Err("a size is written 1600x1000".to_owned()),
    }
}

#[derive(Debug, clap::Args)]
struct ReportArgs {
    /// Files to read; `-` for standard input
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// How to write it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Only this memory space, by name or colour: HBM, 1
    #[arg(long)]
    space: Option<String>,
    /// Only this program
    #[arg(long)]
    program: Option<String>,
    /// Rows in every list; 0 for all
    #[arg(long, default_value_t = 20)]
    top: usize,
    /// What a program may use, overriding the device's capacity: 15.75GiB
    #[arg(long, value_parser = parse_size)]
    capacity: Option<Bytes>,
    /// Add the whole live-memory curve
    #[arg(long)]
    curve: bool,
    /// Add every logical buffer
    #[arg(long)]
    buffers: bool,
    /// First step of a range to measure, with --to: what is allocated and freed in it, its peak, who grew
    #[arg(long, value_name = "STEP")]
    from: Option<u32>,
    /// Last step of a range to measure; the program's last one where only --from is given
    #[arg(long, value_name = "STEP")]
    to: Option<u32>,
    /// What is live as a tree, any number of times: by scope, class, category, source, op, dtype, shape or sharding
    #[arg(long = "tree", value_name = "KIND")]
    trees: Vec<TreeKind>,
    /// Levels of a tree; 0 for all
    #[arg(long, default_value_t = 3)]
    depth: usize,
    /// The tree of what is live at this step instead of the peak
    #[arg(long)]
    step: Option<u32>,
    /// A tree with numbered scopes apart: `layer_3` instead of `layer_*`
    #[arg(long)]
    unfolded: bool,
    /// A change to try out, any number of times: `donate params`, `dtype * bf16`, `dim 2050 2048`, `batch 0.5`,
    /// `shard table 4`, `remat layer_*`, `drop 17`, `free 17 200`
    #[arg(long = "edit", value_name = "EDIT")]
    edits: Vec<Edit>,
    /// A file of named sets of changes to try out, each by itself: `[name]` on a line, then a change on each line
    #[arg(long, value_name = "FILE")]
    sets: Vec<PathBuf>,
}

/// Runs the program.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    match cli.command {
        Some(Command::Report(args)) => print_report(&sources(&args.paths), &args),
        Some(Command::Screenshot(args)) => draw(&args),
        None => open_window(cli.window),
    }
}

/// What to open, for a path of the command line.
fn source(path: &Path) -> std::io::Result<Source> {
    if path.as_os_str() != "-" {
        return Ok(Source::Path(path.to_owned()));
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(Source::Bytes("standard input".to_owned(), bytes.into()))
}

/// The same for all of them; what cannot be read is said.
fn sources(paths: &[PathBuf]) -> Vec<Source> {
    let read = paths.iter().map(|path| source(path).map_err(|error| eprintln!("error: cannot read: {error}: -")));
    read.filter_map(Result::ok).collect()
}

/// The sets of changes in some files; the second of two with one name counts.
///
/// # Errors
/// A sentence about the first file that holds none.
fn read_sets(paths: &[PathBuf]) -> Result<Vec<EditSet>, String> {
    let mut sets: Vec<EditSet> = Vec::new();
    for path in paths {
        let read = export::sets::read(path).map_err(|error| format!("{error}: {}", path.display()))?;
        sets.retain(|known| !read.iter().any(|set| set.name == known.name));
        sets.extend(read);
    }
    Ok(sets)
}

impl LinkArgs {
    fn link(&self, sets: Vec<EditSet>) -> DeepLink {
        DeepLink {
            view: self.view.clone(),
            program: self.program.clone(),
            space: self.space.clone(),
            select: self.select.clone(),
            step: self.step,
            capacity: self.capacity,
            edits: self.edits.clone(),
            filter: self.filter.clone(),
            pins: self.pins.clone(),
            sets,
        }
    }
}

/// Shows the window; where there is none, says why in one line and prints the report.
fn open_window(args: WindowArgs) -> ExitCode {
    let sets = match read_sets(&args.link.sets) {
        Ok(sets) => sets,
        Err(error) => return refuse(&error),
    };
    // Standard input can be read only once; a report in place of the window takes the same bytes.
    let sources = sources(&args.files);
    let Err(error) = app::run_window(sources.clone(), Options::default(), args.link.link(sets)) else {
        return ExitCode::SUCCESS;
    };
    if sources.is_empty() {
        eprintln!("error: {error}; name a file to get its report instead: highwater FILE");
        return ExitCode::from(EXIT_UNREADABLE);
    }
    eprintln!("{error}; printing the report instead");
    let report = ReportArgs {
        paths: args.files,
        format: Format::Text,
        space: args.link.space,
        program: args.link.program,
        top: 20,
        capacity: args.link.capacity,
        curve: false,
        buffers: false,
        from: None,
        to: None,
        trees: Vec::new(),
        depth: 3,
        step: args.link.step,
        unfolded: false,
        edits: args.link.edits,
        sets: args.link.sets,
    };
    print_report(&sources, &report)
}

/// Says what is wrong with a file that was named.
fn refuse(error: &str) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::from(EXIT_UNREADABLE)
}

/// Draws a picture of a view.
fn draw(args: &ScreenshotArgs) -> ExitCode {
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
    for source in sources(&args.paths) {
        app.open(source);
    }
    let failures = app.take_errors();
    for (name, error) in &failures {
        eprintln!("error: cannot open: {error}: {name}");
    }
    if let Err(sentence) = app.check_link(&link) {
        eprintln!("error: {sentence}");
        return ExitCode::from(EXIT_UNREADABLE);
    }
    let scale = args.scale.clamp(0.5, 4.0);
    let size = egui::Vec2::new(args.size.0 as f32, args.size.1 as f32);
    if size.max_elem() * scale > MAX_PIXELS as f32 {
        eprintln!("error: the picture would be more than {MAX_PIXELS} pixels wide or high");
        return ExitCode::from(2);
    }
    let picture = app::draw_picture(&context, &mut app, size, scale);
    if let Err(error) = export::image::write_png(&args.out, picture.size, picture.as_raw()) {
        eprintln!("error: cannot write: {error}: {}", args.out.display());
        return ExitCode::from(EXIT_UNREADABLE);
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_UNREADABLE) }
}

/// Adds a source to the report: a file, or every program of a folder or an archive, the worst first. What cannot be
/// read goes to standard error and into the report.
fn add_source(builder: &mut report::Builder<'_>, source: &Source, capacity: Option<Bytes>) {
    let progress = Progress::default();
    let name = source.path().map_or_else(|| "-".to_owned(), |path| path.display().to_string());
    let Some(path) = source.path().filter(|path| Session::is_session(path)) else {
        return match source.read(&progress) {
            Ok(profile) => add_profile(builder, profile, capacity),
            Err(error) => fail(builder, &name, source.path(), &error),
        };
    };
    let mut session = match Session::open(path, &progress) {
        Ok(session) => session,
        Err(error) => return fail(builder, &name, Some(path), &error),
    };
    for info in &session.unread {
        eprintln!("error: cannot open: {}: {}", info.error.as_deref().unwrap_or_default(), info.path);
        builder.failed(info);
    }
    for note in &session.notes {
        eprintln!("note: {note}");
    }
    session.sort_worst_first();
    for entry in &session.entries {
        match entry.open(&progress) {
            Ok(profile) => add_profile(builder, profile, capacity),
            Err(error) => fail(builder, &format!("{name}/{}", entry.file), None, &error),
        }
    }
}

fn add_profile(builder: &mut report::Builder<'_>, mut profile: Profile, capacity: Option<Bytes>) {
    if let Some(bytes) = capacity {
        override_capacity(&mut profile, bytes);
    }
    let analysis = ProfileAnalysis::new(&profile);
    builder.profile(&profile, &analysis);
}

fn fail(builder: &mut report::Builder<'_>, name: &str, path: Option<&Path>, error: &DecodeError) {
    eprintln!("error: cannot open: {error}: {name}");
    builder.failed(&SourceInfo {
        path: name.to_owned(),
        format: "unknown".to_owned(),
        bytes: path.and_then(|path| path.metadata().ok()).map_or(0, |m| m.len()),
        notes: Vec::new(),
        error: Some(error.to_string()),
    });
}

fn override_capacity(profile: &mut Profile, bytes: Bytes) {
    profile.device.capacities.retain(|capacity| capacity.color != MemorySpace::HBM);
    if let Some(tiles) = &mut profile.tiles {
        tiles.target.bytes_per_tile = Some(bytes.0);
        tiles.target.evidence = Some("given with --capacity".to_owned());
    }
    profile.device.capacities.push(Capacity {
        color: MemorySpace::HBM,
        bytes,
        evidence: "given with --capacity".to_owned(),
    });
}

fn print_report(sources: &[Source], args: &ReportArgs) -> ExitCode {
    let sets = match read_sets(&args.sets) {
        Ok(sets) => sets,
        Err(error) => return refuse(&error),
    };
    let options = report::Options {
        top: args.top,
        space: args.space.clone(),
        program: args.program.clone(),
        curve: args.curve,
        buffers: args.buffers,
        range: (args.from.is_some() || args.to.is_some())
            .then(|| (args.from.unwrap_or(0), args.to.unwrap_or(u32::MAX))),
        trees: args.trees.clone(),
        depth: args.depth,
        step: args.step,
        unfolded: args.unfolded,
        edits: args.edits.clone(),
        sets,
    };
    let mut builder = report::Builder::new(&options);
    for source in sources {
        add_source(&mut builder, source, args.capacity);
    }
    let (report, whole) = builder.finish();
    let text = report::write(&report, args.format);
    // A reader that closes the pipe early (`| head`) is no error.
    let _ = std::io::stdout().write_all(text.as_bytes());
    if whole { ExitCode::SUCCESS } else { ExitCode::from(EXIT_UNREADABLE) }
}
