//! The `analyzer` program.

fn main() -> std::process::ExitCode {
    analyzer::cli::main(std::env::args_os())
}
