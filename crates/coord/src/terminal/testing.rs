//! Verdicts, reports and trace sets with made-up figures.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use schemas::manifest::{FragmentCounts, Manifest};
use schemas::run::ReplayReport;
use schemas::sla::Sla;
use schemas::spec::Spec;
use schemas::verdict::{Figures, OperationFigures, Ruling, Verdict};

/// The verdict on an experiment with this throughput and ruling.
pub fn verdict(experiment: u32, threads: u32, throughput_per_s: f64, ruling: Ruling) -> Verdict {
    let overall = OperationFigures {
        ok: 1_234_567,
        failed: 3,
        within_beta: 1_234_000,
        mean_ns: 812_345.6,
        p50_ns: 700_000,
        p95_ns: 2_345_678,
        p99_ns: 12_345_678,
        max_ns: 1_234_567_890,
        ..OperationFigures::default()
    };
    let named = [("view_profile", overall), ("list_friends", OperationFigures::default())];
    let named = named.map(|(name, figures)| (name.to_string(), figures));
    let figures = Figures {
        elapsed_ns: 10_000_000_000,
        sessions: 1_234_570,
        overall,
        by_operation: IndexMap::from(named),
        throughput_per_s,
        sessions_per_s: throughput_per_s,
        within_beta_percent: 99.9995,
        reads: 1_000_000,
        unpredictable_reads: 1,
        unpredictable_percent: 0.0001,
        ..Figures::default()
    };
    let reasons = if ruling == Ruling::Pass { Vec::new() } else { vec!["because".to_string()] };
    let format_version = schemas::RUN_FORMAT_VERSION;
    Verdict {
        format_version,
        experiment,
        threads,
        rate_per_s: None,
        sla: Sla::default(),
        ruling,
        reasons,
        figures,
        replayers: Vec::new(),
        sealed: Vec::new(),
    }
}

/// What its replayers reported.
pub fn report() -> ReplayReport {
    ReplayReport {
        elapsed_ns: 10_000_000_000,
        sessions: 1_234_570,
        ok: 1_234_567,
        failed: 3,
        worker_cpu_share: 0.5,
        dispatch_lag_ns_p99: 1000,
        ..ReplayReport::default()
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
        fragments: vec![FragmentCounts { fragment: 0, weight: 1.0, actors: 9, sessions, operations }],
        requested_mix: BTreeMap::new(),
        achieved_mix: BTreeMap::new(),
        operations_by_name: IndexMap::new(),
        noops: BTreeMap::new(),
        ended_early: BTreeMap::new(),
        active_threads_max: 1,
        statistics: schemas::manifest::plain(&schemas::workload::social::SocialStatistics::default()),
        files: Vec::new(),
    }
}
