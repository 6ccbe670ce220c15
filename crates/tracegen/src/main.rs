//! The `tracegen` program.

fn main() -> std::process::ExitCode {
    schemas::program::is_one_tool();
    tracegen::cli::main(std::env::args_os())
}
