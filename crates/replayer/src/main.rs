//! The `replayer` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    schemas::program::is_one_tool();
    replayer::cli::main(std::env::args_os())
}
