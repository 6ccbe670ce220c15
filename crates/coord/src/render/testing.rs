//! Experiments and trace sets with made-up figures.

use std::collections::BTreeMap;

use schemas::manifest::{FragmentCounts, Manifest, Statistics};
use schemas::plan::Limit;
use schemas::run::{Purpose, ReplayReport};
use schemas::sla::Sla;
use schemas::social::Action;
use schemas::spec::Spec;
use schemas::verdict::{ActionFigures, Figures, Ruling, Verdict};

use crate::campaign::Trial;

/// An experiment with this throughput and ruling.
pub fn trial(experiment: u32, threads: u32, throughput_per_s: f64, ruling: Ruling, purpose: Purpose) -> Trial {
    let overall = ActionFigures {
        ok: 1_234_567,
        failed: 3,
        within_beta: 1_234_000,
        mean_ns: 812_345.6,
        p50_ns: 700_000,
        p95_ns: 2_345_678,
        p99_ns: 12_345_678,
        max_ns: 1_234_567_890,
        ..ActionFigures::default()
    };
    let figures = Figures {
        elapsed_ns: 10_000_000_000,
        sessions: 1_234_570,
        overall,
        by_action: BTreeMap::from([(Action::ALL[0], overall), (Action::ALL[1], ActionFigures::default())]),
        throughput_per_s,
        sessions_per_s: throughput_per_s,
        within_beta_percent: 99.9995,
        reads: 1_000_000,
        unpredictable_reads: 1,
        unpredictable_percent: 0.0001,
        ..Figures::default()
    };
    let report = ReplayReport {
        elapsed_ns: 10_000_000_000,
        sessions: 1_234_570,
        ok: 1_234_567,
        failed: 3,
        worker_cpu_share: 0.5,
        dispatch_lag_ns_p99: 1000,
        ..ReplayReport::default()
    };
    let reasons = if ruling == Ruling::Pass { Vec::new() } else { vec!["because".to_string()] };
    let format_version = schemas::RUN_FORMAT_VERSION;
    let verdict = Verdict {
        format_version,
        experiment,
        threads,
        sla: Sla::default(),
        ruling,
        reasons,
        figures,
        replayers: Vec::new(),
    };
    Trial {
        purpose,
        limit: Limit::DurationS(10.0),
        started_unix_s: 0,
        took_s: 12.5,
        report: Some(report),
        lost: None,
        verdict,
    }
}

/// A trace set of one fragment, without files.
pub fn manifest(sessions: u64, operations: u64) -> Manifest {
    let text = "name = \"t\"\nsessions = 1\n[data]\nmembers = 9\n[mix]\nview_profile = 1\n";
    let spec = Spec::parse(text, "t").unwrap();
    Manifest {
        format_version: schemas::TRACE_FORMAT_VERSION,
        generator_version: String::new(),
        workload_id: spec.workload_id(),
        trace_id: "id".into(),
        spec: Spec { sessions, ..spec },
        fragments: vec![FragmentCounts { fragment: 0, weight: 1.0, members: 9, sessions, operations }],
        requested_mix: BTreeMap::new(),
        achieved_mix: BTreeMap::new(),
        operations_by_action: BTreeMap::new(),
        noops: BTreeMap::new(),
        ended_early: BTreeMap::new(),
        statistics: Statistics::default(),
        files: Vec::new(),
    }
}
