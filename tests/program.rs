//! The program that `./encore` runs, for the tests of the whole pipeline.

use std::process::ExitCode;

fn main() -> ExitCode {
    coord::cli::main(std::env::args_os())
}
