//! The programs on this machine, and accounts that may run them.

use std::io::Result;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

/// Folders that are searched after `PATH`; Debian keeps servers off the `PATH` of users.
const MORE_FOLDERS: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin"];

/// An account of the system.
#[derive(Debug, Clone, Copy)]
pub struct Account {
    /// Its user id.
    pub uid: u32,
    /// Its group id.
    pub gid: u32,
}

/// A program on `PATH` or in the folders of servers, with links resolved.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(MORE_FOLDERS.map(PathBuf::from))
        .find_map(|folder| executable(&folder.join(name)))
}

/// An executable file, with links resolved.
pub fn executable(path: &Path) -> Option<PathBuf> {
    let file = path.metadata().ok()?;
    (file.is_file() && file.permissions().mode() & 0o111 != 0).then(|| path.canonicalize().ok())?
}

/// Java 17 wherever Debian puts it, because Cassandra 5.0 does not start on later ones; else the usual Java.
pub fn java() -> Option<PathBuf> {
    let of_debian = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten().map(|entry| entry.path());
    let is_17 = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("java-17-"));
    let java = of_debian.filter(|path| is_17(path)).find_map(|path| executable(&path.join("bin/java")));
    java.or_else(|| program("java"))
}

/// Writes a file that belongs to an account, or to the user of this program.
pub fn write(path: &Path, text: &str, account: Option<Account>) -> Result<()> {
    std::fs::write(path, text)?;
    give(path, account)
}

/// Gives a file or a folder to an account.
pub fn give(path: &Path, account: Option<Account>) -> Result<()> {
    account.map_or(Ok(()), |account| chown(path, Some(account.uid), Some(account.gid)))
}

/// Whether this program runs as root.
pub fn is_root() -> bool {
    // SAFETY: geteuid has no arguments and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// The first of these accounts that the system has.
pub fn account(names: &[&str]) -> Option<Account> {
    let known = std::fs::read_to_string("/etc/passwd").ok()?;
    names.iter().find_map(|name| {
        let line = known.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some(Account { uid: fields.next()?.parse().ok()?, gid: fields.next()?.parse().ok()? })
    })
}
