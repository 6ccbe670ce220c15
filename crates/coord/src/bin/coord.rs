//! The coordinator by itself, `coord`.

use std::process::ExitCode;

fn main() -> ExitCode {
    schemas::program::is_one_tool();
    coord::cli::main(std::env::args_os())
}
