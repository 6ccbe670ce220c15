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
    use std::path::PathBuf;

    use super::*;

    /// What is wrong with a command that a message or a comment names; None if the program has it. Words in
    /// braces are filled in when the message is made.
    fn fault(named: &str) -> Option<String> {
        let mut command = &whole();
        let mut words = named.split_whitespace().skip(1).filter(|word| !word.starts_with('{')).peekable();
        while command.has_subcommands() && words.peek().is_some_and(|word| !word.starts_with('-')) {
            let word = words.next()?;
            match command.find_subcommand(word) {
                Some(own) => command = own,
                None => return Some(format!("`{named}`: {} has no command {word}", command.get_name())),
            }
        }
        let has = |flag: &str| flag == "help" || command.get_arguments().any(|own| own.get_long() == Some(flag));
        let mut flags = words.filter_map(|word| word.strip_prefix("--"));
        let missing = flags.find(|flag| !has(flag))?;
        Some(format!("`{named}`: {} has no flag --{missing}", command.get_name()))
    }

    /// The source files below a folder.
    fn sources(folder: PathBuf) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path());
        let below = |path: PathBuf| match path.is_dir() {
            true => sources(path),
            false => Vec::from_iter(path.extension().is_some_and(|end| end == "rs").then_some(path)),
        };
        entries.flat_map(below).collect()
    }

    /// The commands in backticks in the text of a source file, in one line each.
    fn commands_in(source: &str) -> Vec<String> {
        let lines = source.lines().map(|line| {
            let line = line.trim_start().trim_start_matches('/').trim_start_matches('!');
            line.strip_suffix('\\').unwrap_or(line).trim()
        });
        let text = lines.collect::<Vec<_>>().join(" ");
        let quoted = text.split('`').filter(|words| words.starts_with("encore "));
        quoted.map(|words| words.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    /// A note on a property of YCSB named `encore load`.
    #[test]
    fn every_command_that_a_message_names_exists() {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        let folders = ["schemas", "crates/tracegen", "crates/replayer", "crates/analyzer", "crates/coord"];
        let files = folders.iter().flat_map(|folder| sources(root.join(folder).join("src")));
        let own = root.join("crates/coord/src/cli/shell.rs").canonicalize().expect("this file");
        let (mut count, mut faults) = (0, Vec::new());
        for file in files.filter(|file| file.canonicalize().is_ok_and(|file| file != own)) {
            let named = commands_in(&std::fs::read_to_string(&file).expect("a source file"));
            count += named.len();
            faults.extend(named.iter().filter_map(|named| Some(format!("{}: {}", file.display(), fault(named)?))));
        }
        assert!(count > 100, "only {count} commands are named");
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    #[test]
    fn a_command_that_does_not_exist_is_noticed() {
        for (named, expect) in [
            ("encore load", "encore has no command load"),
            ("encore replay lod --trace x", "replay has no command lod"),
            ("encore rate --stor URL", "rate has no flag --stor"),
        ] {
            assert!(fault(named).is_some_and(|fault| fault.ends_with(expect)), "{named}: {:?}", fault(named));
        }
        for named in
            ["encore rate --store URL", "encore {subcommand} --help", "encore replay", "encore analyze sql RUN"]
        {
            assert_eq!(fault(named), None);
        }
        let source = "/// `encore\n/// rate` and \"`encore trace \\\n    gen`\"";
        assert_eq!(commands_in(source), ["encore rate", "encore trace gen"]);
    }

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
