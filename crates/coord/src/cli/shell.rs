//! What a shell and `man` need to know about the command line: completions and manual pages.

use std::path::Path;

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use crate::cli::args::CommandLine;
use crate::failure::Failure;

/// The command line with all subcommands of the tools, which the program otherwise parses
/// separately.
fn whole() -> Command {
    let tools = [
        ("trace", tracegen::cli::command()),
        ("replay", replayer::cli::command()),
        ("analyze", analyzer::cli::command()),
    ];
    tools.into_iter().fold(CommandLine::command(), |whole, (name, tool)| {
        whole.mut_subcommand(name, |own| {
            let about = own.get_about().cloned().unwrap_or_default();
            tool.name(name).about(about)
        })
    })
}

/// The script that completes the commands and flags in this shell.
pub fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut whole(), "encore", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Writes a manual page for each command into a folder.
pub fn manual(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(whole(), folder))
        .map_err(|e| Failure::tool(format!("cannot write manual pages to {}: {e}", folder.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_completed() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = completions(shell);
            for word in ["encore", "rate", "fail-below", "trace", "digest", "analyze", "log-compression"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
    }

    #[test]
    fn every_command_has_a_manual_page() {
        let folder = tempfile::tempdir().unwrap();
        manual(folder.path()).unwrap();
        for name in ["encore", "encore-rate", "encore-trace-gen", "encore-replay-run", "encore-analyze-sql"] {
            let page = std::fs::read_to_string(folder.path().join(format!("{name}.1"))).unwrap();
            assert!(page.contains(".SH SYNOPSIS"), "{name}: {page}");
        }
    }
}
