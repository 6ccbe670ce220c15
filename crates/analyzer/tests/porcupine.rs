//! Linearizability of registers, by Encore and by Porcupine (Go): both say the same of 10,000 histories. The test is
//! skipped without Go.

mod common;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use analyzer::consistency::gamma::Gamma;
use analyzer::consistency::history::{Access, Clients, History, NEW};
use analyzer::validate::{FOREVER, Interval};
use common::Dice;

const HISTORIES: u64 = 10_000;

/// Writes and reads of a register, of which every second history is that of a store which is mostly right.
fn history(seed: u64) -> (Vec<Access>, Vec<Access>) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    (0..4).for_each(|_| _ = dice.below(2));
    // Porcupine takes exponential time, so few operations overlap.
    let (count, horizon) = (4 + dice.below(36) as i64, 60 + dice.below(200));
    let is_honest = dice.below(2) == 0;
    let (mut effects, mut writes, mut reads) = (vec![(i64::MIN, 0)], Vec::new(), Vec::new());
    let access = |value, start, end| Access { value, at: Interval { start, end }, by: Clients::default(), tag: NEW };
    for value in 1..=count / 2 {
        let (start, length) = (dice.below(horizon) as i64, dice.below(12));
        effects.push((start + dice.below(length + 1) as i64, value));
        let end = if dice.below(16) == 0 { FOREVER } else { start + length as i64 };
        writes.push(access(value, start, end));
    }
    effects.sort_unstable();
    for _ in 0..count - count / 2 {
        let (start, length) = (dice.below(horizon) as i64, dice.below(12));
        let at = start + dice.below(length + 1) as i64;
        let late = if is_honest { 0 } else { dice.below(3) as usize };
        let now = effects.iter().rposition(|(effect, _)| *effect <= at).unwrap_or(0);
        reads.push(access(effects[now.saturating_sub(late)].1, start, start + length as i64));
    }
    (writes, reads)
}

/// The program, built; None without Go.
fn porcupine(folder: &Path) -> Option<std::path::PathBuf> {
    let version = Command::new("go").arg("version").stdout(Stdio::null()).status();
    if !version.is_ok_and(|status| status.success()) {
        println!("left out: no Go is here");
        return None;
    }
    let (source, program) =
        (Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/porcupine"), folder.join("porcupine"));
    let built = Command::new("go").args(["build", "-o"]).arg(&program).arg(".").current_dir(&source).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Some(program)
}

#[test]
fn porcupine_says_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = porcupine(folder.path()) else { return };
    let (mut lines, mut own) = (String::new(), Vec::new());
    for seed in 1..=HISTORIES {
        let (writes, reads) = history(seed);
        for (kind, accesses) in [("w", &writes), ("r", &reads)] {
            for Access { value, at, .. } in accesses {
                let _ = write!(lines, "{kind},{value},{},{} ", at.start, at.end);
            }
        }
        lines.push('\n');
        own.push(Gamma::of(&History::new(writes, reads).clusters()).is_linearizable());
    }
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    let answers = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<bool> = answers.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(answers.len(), own.len());
    for (seed, (porcupine, own)) in (1..).zip(answers.iter().zip(&own)) {
        assert_eq!(porcupine, own, "history {seed}: {:?}", history(seed));
    }
    let linearizable = own.iter().filter(|is_so| **is_so).count();
    assert!((1_000..9_000).contains(&linearizable), "{linearizable} are linearizable");
}
