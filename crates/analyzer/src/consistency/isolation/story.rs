//! A witness as a story in plain sentences that a person can check by hand.

use std::fmt::Write;

use schemas::anomalies::{Class, Dependency, Fate, Version, Witness, WitnessLink, WitnessTransaction};

use super::{DELETED, INITIAL};

/// How items and values are called.
pub trait Names {
    /// An item, such as `record 17 field 0`.
    fn item(&self, owner: u64, element: u32) -> String;

    /// The session and the step of a write; None if no write has this id.
    fn writer(&self, write: i64) -> Option<(i64, i64)>;
}

/// The witness in lines of text.
pub fn tell(witness: &Witness, names: &dyn Names) -> String {
    let mut out = format!("{}, fragment {}: {}\n", witness.class.words(), witness.fragment, summary(witness));
    for (index, transaction) in witness.transactions.iter().enumerate() {
        tell_transaction(&mut out, index, transaction, witness, names);
    }
    for link in &witness.links {
        let _ = writeln!(out, "  {}", tell_link(link, witness, names));
    }
    let _ = writeln!(out, "  {}", moral(witness));
    out
}

fn summary(witness: &Witness) -> String {
    match witness.transactions.len() {
        1 => "1 transaction".to_string(),
        count => format!("{count} transactions"),
    }
}

fn name(index: usize) -> String {
    format!("T{}", index + 1)
}

/// Seconds with all their digits, so that times can be compared.
fn seconds(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    format!("{sign}{}.{:09} s", ns / 1_000_000_000, ns % 1_000_000_000)
}

fn tell_transaction(out: &mut String, index: usize, one: &WitnessTransaction, witness: &Witness, names: &dyn Names) {
    let fate = match one.fate {
        Fate::Committed => "committed",
        Fate::Aborted => "rolled back",
        Fate::Unknown => "committed, as others saw its writes (the answer to its commit is missing)",
    };
    let tries = if one.try_number > 0 { format!(", try {}", one.try_number) } else { String::new() };
    let (from, to) = (seconds(one.start_ns), seconds(one.end_ns));
    let _ = writeln!(
        out,
        "  {}: session {} step {}{tries}, thread {}, from {from} to {to}, {fate}",
        name(index),
        one.session,
        one.txn,
        one.thread
    );
    for operation in &one.operations {
        let (verb, version) = (if operation.writes { "wrote" } else { "read " }, operation.version);
        let value = value(version, witness, names);
        let item = names.item(version.owner, version.element);
        let (start, end) = (seconds(operation.start_ns), seconds(operation.end_ns));
        let _ = writeln!(out, "      step {:>3}, {start} to {end}: {verb} {item}: {value}", operation.step);
    }
}

/// The value of a version: whose write it is.
fn value(version: Version, witness: &Witness, names: &dyn Names) -> String {
    match version.write {
        INITIAL => return "the initial value".into(),
        DELETED => return "no value, the record is deleted".into(),
        _ => {}
    }
    let wrote = |one: &WitnessTransaction| {
        one.operations.iter().any(|operation| operation.writes && operation.version == version)
    };
    let by = match witness.transactions.iter().position(wrote) {
        Some(index) => format!(" of {}", name(index)),
        None => String::new(),
    };
    match names.writer(version.write) {
        Some((session, step)) => format!("the value{by} from session {session} step {step}"),
        None => format!("the value {}{by}", version.write),
    }
}

fn tell_link(link: &WitnessLink, witness: &Witness, names: &dyn Names) -> String {
    let (from, to) = (name(link.from), name(link.to));
    let item = link.version.map_or("an item".into(), |version| names.item(version.owner, version.element));
    let fate = witness.transactions.get(link.from).map(|one| one.fate);
    match link.why {
        Dependency::Read if fate == Some(Fate::Aborted) => {
            format!("{to} read what {from} had written to {item}, and {from} was rolled back.")
        }
        Dependency::Read => format!("{from} before {to}: {to} read what {from} wrote to {item}."),
        Dependency::Overwrote => {
            format!("{from} before {to}: {to} read what {from} wrote to {item}, and overwrote it.")
        }
        Dependency::OverwroteRead => {
            let value = link.version.map_or(String::new(), |version| value(version, witness, names));
            format!("{from} before {to}: {from} read {item} as {value}, which {to} overwrote.")
        }
        Dependency::OverwroteSame => {
            let value = link.version.map_or(String::new(), |version| value(version, witness, names));
            format!("Both {from} and {to} read {item} as {value}, and both overwrote it.")
        }
        Dependency::EndedBefore => format!("{from} before {to}: {from} had ended when {to} began."),
    }
}

/// What follows.
fn moral(witness: &Witness) -> String {
    let count = witness.transactions.len();
    let circle = || {
        let names: Vec<String> = (0..count).chain([0]).map(name).collect();
        format!("So {}: no order of these transactions explains what they saw.", names.join(" before "))
    };
    match witness.class {
        Class::AbortedRead => "So T2 rests on a write that never happened.".into(),
        Class::IntermediateRead => {
            "T1 overwrote that value itself before it ended, so T2 saw a state that T1 never committed.".into()
        }
        Class::LostUpdate => {
            "In any order the later of them would have seen the other's value: one update is lost.".into()
        }
        Class::FuzzyRead => "The item changed inside of T1, and T1 had not changed it.".into(),
        Class::DirtyWrite | Class::CircularRead | Class::ReadSkew | Class::WriteSkew => circle(),
        Class::StaleTransaction => format!(
            "So {} had to come before {}, which had ended before {} began: {} saw the past.",
            name(0),
            name(count.saturating_sub(1)),
            name(0),
            name(0)
        ),
    }
}
