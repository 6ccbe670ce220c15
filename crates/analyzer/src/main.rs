//! The `analyzer` program.

fn main() -> std::process::ExitCode {
    schemas::program::is_one_tool();
    analyzer::cli::main(std::env::args_os())
}
