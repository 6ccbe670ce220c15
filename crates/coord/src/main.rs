//! The whole program, `encore`.

use std::process::ExitCode;

fn main() -> ExitCode {
    coord::cli::main(std::env::args_os())
}
