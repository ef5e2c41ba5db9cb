//! `highwater`: the command and the window.

mod cli;

fn main() -> std::process::ExitCode {
    cli::run()
}
