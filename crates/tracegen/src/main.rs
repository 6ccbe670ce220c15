//! The `tracegen` program.

fn main() -> std::process::ExitCode {
    tracegen::cli::main(std::env::args_os())
}
