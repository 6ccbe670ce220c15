//! The system refuses disk space, open files or a writable folder at each stage. The first line of
//! the error says what was refused and where, no file is incomplete, and existing files can still
//! be read.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::support::Workplace;

/// What the system refuses.
#[derive(Debug, Clone, Copy)]
enum Refused {
    /// Files with more bytes than this: to a program this looks like a full disk.
    Bytes(u64),
    /// More open files than this.
    Files(u64),
    /// Writing against the mode of a folder, to root too.
    Modes,
}

/// A command that starts under such a limit; its children inherit it.
fn under(mut command: Command, refused: Refused) -> Command {
    let limited = |resource, most| {
        let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
        // SAFETY: reads the limit that it is given.
        match unsafe { libc::setrlimit(resource, &limit) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    let limit = move || match refused {
        Refused::Bytes(most) => {
            // SAFETY: sets how a signal is handled in a process that is about to be replaced.
            unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
            limited(libc::RLIMIT_FSIZE, most)
        }
        Refused::Files(most) => limited(libc::RLIMIT_NOFILE, most),
        Refused::Modes => {
            const CAP_DAC_OVERRIDE: libc::c_ulong = 1;
            // A user other than root does not have this capability.
            // SAFETY: drops a capability of a process that is about to be replaced.
            unsafe { libc::prctl(libc::PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0) };
            Ok(())
        }
    };
    // SAFETY: only async-signal-safe calls between fork and exec.
    unsafe { command.pre_exec(limit) };
    command
}

/// A stage: a command, and the commands that must run before it.
struct Stage {
    before: &'static [&'static str],
    command: &'static str,
    /// A file size limit that is too small for it, and the words of the first line of the error then.
    bytes: (u64, &'static [&'static str]),
    /// The words of the first line of the error when nothing may be written in the folder.
    modes: &'static [&'static str],
}

const REPLAY: &str = "replay run --trace busy.trace --store memory: -T 4 -o r";

const STAGES: [Stage; 7] = [
    Stage {
        before: &[],
        command: "trace gen busy.toml -o new.trace",
        bytes: (4_000, &["new.trace/operations/", "File too large"]),
        modes: &["Permission denied"],
    },
    Stage {
        before: &[],
        command: "replay load --trace busy.trace --store sqlite:s.db",
        bytes: (20_000, &["sqlite:s.db", "disk I/O error"]),
        modes: &["sqlite:s.db", "unable to open"],
    },
    Stage {
        before: &[],
        command: REPLAY,
        bytes: (10_000, &["r/experiments/0001-T4/log/fragment-", "File too large"]),
        modes: &["r: Permission denied"],
    },
    Stage {
        before: &[REPLAY],
        command: "analyze summary r",
        bytes: (10_000, &["r/operations/", "File too large"]),
        modes: &["r/operations", "Permission denied"],
    },
    Stage {
        before: &[REPLAY, "analyze summary r"],
        command: "analyze report r",
        bytes: (10_000, &["r/report.html", "File too large"]),
        modes: &["r: Permission denied"],
    },
    Stage {
        before: &[REPLAY, "analyze summary r"],
        command: "analyze export r --format csv -o e.csv",
        bytes: (10_000, &["e.csv", "File too large"]),
        modes: &["e.csv", "Permission denied"],
    },
    Stage {
        before: &[],
        // On a slow machine, too, the first experiment's log is larger than the limit.
        command: "rate --trace busy.trace --store memory: --search-s 0.5 --max-threads 4 --name n",
        bytes: (10_000, &["log/fragment-", "File too large"]),
        modes: &["runs/n", "Permission denied"],
    },
];

fn set_modes(folder: &Path, mode: u32) {
    for entry in std::fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            set_modes(&path, mode);
        }
    }
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode)).expect("a mode");
}

/// Runs a command under a limit. It must end with one error with these words in its first line, and
/// leave existing files unchanged.
fn check(place: &Workplace, command: &str, refused: Refused, words: &[&str]) {
    let before = place.contents();
    let arguments: Vec<&str> = command.split(' ').collect();
    if matches!(refused, Refused::Modes) {
        set_modes(&place.path(""), 0o555);
    }
    let output = under(place.command(&arguments), refused).output().expect("the program starts");
    set_modes(&place.path(""), 0o755);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let first = error.lines().next().unwrap_or_default();
    let what = format!("{command} under {refused:?}: {}: {error}", output.status);
    assert_eq!(output.status.code(), Some(3), "{what}");
    assert!(first.starts_with("error: ") && words.iter().all(|word| first.contains(word)), "{words:?}: {what}");
    assert!(!error.contains("panicked"), "{what}");
    let after = place.contents();
    // A store that was opened may have tidied up its own files.
    let is_of_store = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("s.db"));
    assert!(before.iter().all(|file| is_of_store(&file.0) || after.contains(file)), "{what}");
    if place.path("r/run.json").exists() {
        let summary = place.run(&["analyze", "summary", "r", "--json"]);
        assert!(summary.stdout().contains("ruling") && !summary.stderr().contains("panicked"), "{what}");
    }
}

#[test]
fn what_the_system_refuses_is_named_and_harms_nothing() {
    for Stage { before, command, bytes: (bytes, words), modes } in STAGES {
        let files = &["limit of open files is 20", "ulimit -n"];
        for (refused, words) in
            [(Refused::Bytes(bytes), words), (Refused::Modes, modes), (Refused::Files(20), &files[..])]
        {
            let place = Workplace::with_trace();
            before.iter().for_each(|command| {
                place.run(&command.split(' ').collect::<Vec<_>>()).ends();
            });
            check(&place, command, refused, words);
        }
    }
}

/// Each connection to SQLite has several open files.
#[test]
fn too_many_connections_for_the_open_files_are_an_error() {
    let place = Workplace::with_trace();
    place.run(&["replay", "load", "--trace", "busy.trace", "--store", "sqlite:s.db"]).succeeds();
    let replay = "replay run --trace busy.trace --store sqlite:s.db -T 200 -o r2";
    check(&place, replay, Refused::Files(100), &["sqlite:s.db", "unable to open"]);
}

/// A full disk behind standard output: the rating ends well, and the exit code says that its
/// output is lost.
#[test]
fn output_that_cannot_be_written_is_an_error() {
    let place = Workplace::new();
    let words = "rate busy.toml --store memory: --search-s 0.1 --max-threads 1 --rating soar --name r";
    let mut words: Vec<&str> = words.split(' ').collect();
    words.extend(["--sla", "50% < 10s, 100% unpredictable, 0.2s"]);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let output = place.command(&words).stdout(full).output().expect("the program starts");
    let error = String::from_utf8_lossy(&output.stderr);
    let first = error.lines().next().unwrap_or_default();
    assert!(
        first.starts_with("error: ") && first.contains("standard output") && first.contains("run folder"),
        "{error}"
    );
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(place.path("runs/r/rating.json").exists(), "the results are there");
}

/// Many threads under a limit of memory: the replayer either runs or says what it could not get.
#[test]
fn many_threads_under_a_memory_limit_do_not_end_in_a_panic() {
    let place = Workplace::with_trace();
    let words = "replay run --trace busy.trace --store memory: -T 20000 --shared-actors -o r";
    let mut command = place.command(&words.split(' ').collect::<Vec<_>>());
    let limit = libc::rlimit { rlim_cur: 600 << 20, rlim_max: 600 << 20 };
    // SAFETY: sets a limit of a process that is about to be replaced; async-signal-safe.
    unsafe {
        command.pre_exec(move || match libc::setrlimit(libc::RLIMIT_AS, &limit) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        })
    };
    let output = command.output().expect("the program starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!error.contains("panicked"), "{error}");
    match output.status.code() {
        Some(0) => {}
        Some(3) => assert!(error.starts_with("error: "), "{error}"),
        other => panic!("exit code {other:?}: {error}"),
    }
}

/// A server that does not answer is found out before a trace set is generated for it.
#[test]
fn a_server_that_does_not_answer_costs_nothing() {
    let place = Workplace::new();
    let url = "postgres://me@127.0.0.1:1/x";
    place.run(&["rate", "busy.toml", "--store", url]).fails(3, &["--store postgres://me@127.0.0.1:1/x"]);
    assert!(!place.path("runs").exists(), "a trace set or a run folder is left");
}
