use analyzer::html::quoted;
use clap::{CommandFactory, Parser};

use super::args::{DEFAULT_RETRIES, RateArgs};
use super::*;
use crate::run::trace_set::TraceSet;
use crate::terminal::testing::manifest;

/// A folder with a trace set, against which a rating is resolved.
struct TraceFolder {
    folder: tempfile::TempDir,
    set: TraceSet,
}

impl TraceFolder {
    fn new() -> TraceFolder {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("t.trace");
        let mut manifest = manifest(1000, 1000);
        manifest.spec.fragments = 2;
        manifest.workload_id = manifest.spec.workload_id();
        schemas::files::write_json(&trace.join(schemas::manifest::FILE_NAME), &manifest.clone().identified()).unwrap();
        std::fs::write(folder.path().join("token"), "hush").unwrap();
        TraceFolder { folder, set: TraceSet { folder: trace, manifest, url: None } }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// The last lines that a rating prints if these words and `--trace` are given, and its
    /// arguments.
    fn next(&self, words: &[&str]) -> (String, RateArgs) {
        let trace = self.path("t.trace");
        let line = ["encore", "rate", "--trace", &trace].into_iter().chain(words.iter().copied());
        let Command::Rate(args) = CommandLine::try_parse_from(line).unwrap().command else { panic!("not a rating") };
        let now = std::time::SystemTime::UNIX_EPOCH;
        let variables = [("PG".to_string(), "postgres://me:hush@db/x".to_string())].into();
        let invocation = Invocation { now, command: Vec::new(), variables };
        let rating = resolve::rating(&args, &invocation).unwrap();
        (rating.typed.next_commands(&rating, &rating.setting, &self.set, "encore"), args)
    }
}

/// New flags were often forgotten here. Every flag of `encore rate` is repeated, or is one that a
/// repetition does not need.
#[test]
fn the_command_that_repeats_a_rating_has_every_flag() {
    let folder = TraceFolder::new();
    let (runs, certs, token, trace) =
        (folder.path("runs"), folder.path("certs"), folder.path("token"), folder.path("t.trace"));
    let sla = "90% < 1s, 0.1% unpredictable, 20s";
    let junit = folder.path("junit.xml");
    let typed: Vec<&str> = "--search-s 1,2.5 --max-threads 64 --first-threads 2 --rating soar --delta-check 10 \
        --between continue --exhaustive --fail-below 500"
        .split_whitespace()
        .chain(["--junit", &junit])
        .chain(["--trace", &trace, "--store", "memory:?stale=0.1", "--keep-data", "--sla", sla, "--runs", &runs])
        .chain(["--publish", "s3://bucket/runs"])
        .chain(
            "--warmup 7 --monitor 5 --shared-actors --transactions off --tries 3 --no-closing-read --workers 2"
                .split_whitespace(),
        )
        .chain(["--replayer", "load1:7070", "--replayer", "[::1]:7071", "--certs", &certs, "--token-file", &token])
        .chain("--replayers 2 --calibrate --leave-logs --retries 5".split_whitespace())
        .collect();
    let by_rate: Vec<&str> = "--search-s 1 --by rate --max-rate 5000 --first-rate 50 --threads 9 --overload stop"
        .split_whitespace()
        .collect();
    let (commands, _) = folder.next(&by_rate);
    let repeated = commands.lines().last().unwrap().trim();
    assert!(repeated.starts_with(&format!("encore rate {} --trace ", by_rate.join(" "))), "{repeated}");
    let without_trace: Vec<&str> = typed.iter().copied().filter(|word| *word != "--trace" && *word != trace).collect();
    let (commands, _) = folder.next(&without_trace);
    let words: Vec<String> = typed.iter().map(|word| quoted(word)).collect();
    assert_eq!(commands.lines().last().unwrap().trim(), format!("encore rate {}", words.join(" ")));
    let unrepeated =
        ["spec", "resume", "settings", "sessions", "name", "deck", "metrics_listen", "json", "quiet", "help"];
    let mut command = CommandLine::command();
    command.build();
    for flag in command.find_subcommand("rate").unwrap().get_arguments() {
        let is_repeated = flag.get_long().is_some_and(|long| {
            let long = format!("--{long}");
            typed.contains(&long.as_str()) || by_rate.contains(&long.as_str())
        });
        let id = flag.get_id().as_str();
        assert!(is_repeated != unrepeated.contains(&id), "{id} is repeated: {is_repeated}");
    }
    // Apart from these, a flag with its default value is left out.
    let (commands, args) = folder.next(&["--replayer", "load1:7070*2", "--store", "memory:"]);
    let last = commands.lines().last().unwrap().trim().to_string();
    let rest = "--store memory: --sla '95% < 100ms, 0.1% unpredictable, 10s' --replayer 'load1:7070*2'";
    assert_eq!(last, format!("encore rate --search-s 1.5 --max-threads 256 --trace {trace} {rest}"));
    assert_eq!(args.workload.fleet.retries, DEFAULT_RETRIES);
}

/// The command contained `postgres://me:***@db/x`, which cannot log in.
#[test]
fn the_command_that_repeats_a_rating_contains_no_hidden_password() {
    let folder = TraceFolder::new();
    let (commands, _) = folder.next(&["--store", "postgres://me:hush@db/x"]);
    let lines: Vec<&str> = commands.lines().rev().take(2).collect();
    assert!(lines[0].contains("--store '${ENCORE_STORE}'") && !lines[0].contains("***"), "{commands}");
    assert!(lines[1].trim().starts_with("export ENCORE_STORE='postgres://me:***@db/x'"), "{commands}");
    // A variable in the given URL stays a variable.
    let (commands, _) = folder.next(&["--store", "${PG}?timeout_ms=500"]);
    assert!(commands.contains("--store '${PG}?timeout_ms=500'") && !commands.contains("export"), "{commands}");
    assert!(!commands.contains("hush"), "{commands}");
}

#[test]
fn the_command_that_repeats_a_rating_works_in_any_folder() {
    let folder = TraceFolder::new();
    let here = std::env::current_dir().unwrap();
    let check = |typed: &[&str], expect: &str| {
        let (commands, _) = folder.next(typed);
        let expect = expect.replace("HERE", &here.display().to_string());
        assert!(commands.ends_with(&expect), "{commands} lacks {expect}");
    };
    let sla = "--sla '95% < 100ms, 0.1% unpredictable, 10s'";
    check(&["--store", "sqlite:a.db?images=none"], &format!("--store 'sqlite:HERE/a.db?images=none' {sla}"));
    check(&["--store", "sqlite:/a.db"], &format!("--store sqlite:/a.db {sla}"));
    check(&["--runs", "elsewhere"], &format!("{sla} --runs HERE/elsewhere"));
    // The file is on the replayer's machine, so its path stays as it is.
    let remote = ["--store", "sqlite:a.db", "--replayer", "load1:7070", "--certs", "c"];
    check(&remote, &format!("--store sqlite:a.db {sla} --replayer load1:7070 --certs HERE/c"));
}

#[test]
fn help() {
    let mut command = CommandLine::command().term_width(100);
    insta::assert_snapshot!("help", command.render_long_help().to_string());
    for name in ["rate", "run", "simulate", "compare"] {
        let subcommand = command.find_subcommand_mut(name).unwrap();
        insta::assert_snapshot!(format!("help_{name}"), subcommand.render_help().to_string());
    }
}
