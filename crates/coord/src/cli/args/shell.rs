//! `encore completions` and `encore man`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// `encore completions`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  mkdir -p ~/.local/share/bash-completion/completions
  encore completions bash > ~/.local/share/bash-completion/completions/encore
  encore completions zsh > ~/.zfunc/_encore          with ~/.zfunc in $fpath
  encore completions fish > ~/.config/fish/completions/encore.fish")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: Shell,
}

/// `encore man`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  encore man ~/.local/share/man/man1                 then: man encore-rate")]
pub struct ManArgs {
    /// The folder; it is created if needed
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}
