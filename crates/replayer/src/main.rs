//! The `replayer` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    replayer::cli::main(std::env::args_os())
}
