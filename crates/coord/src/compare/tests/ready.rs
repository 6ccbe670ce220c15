//! The plans that come with Encore.

use std::path::Path;

use schemas::comparison::{ComparisonPlan, Measure, Question, Wanted};
use schemas::spec::Spec;
use schemas::workload::social::SocialWorkload;

use super::*;
use crate::cli::environment;

/// Each plan can be carried out, and its points differ only in what its axis says.
#[test]
fn the_ready_plans_are_whole() {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(&traces).unwrap() {
        let path = entry.unwrap().path();
        let is_toml = path.extension().is_some_and(|extension| extension == "toml");
        if !is_toml || !std::fs::read_to_string(&path).unwrap().contains("[[stores]]") {
            continue;
        }
        let plan = ComparisonPlan::read(&path).unwrap();
        assert_eq!(path.file_stem().unwrap().to_str(), Some(plan.name.as_str()));
        let workloads: Vec<String> = plan
            .points()
            .iter()
            .map(|point| {
                let spec = traces.join(point.spec.as_ref().unwrap_or(&plan.spec));
                let text = std::fs::read_to_string(&spec).unwrap();
                let settings: Vec<String> = plan.set.iter().chain(&point.set).cloned().collect();
                let spec = Spec::parse_with(&text, &spec.display().to_string(), &settings).unwrap();
                if let Ok(social) = spec.workload::<SocialWorkload>() {
                    assert_eq!(social.data.members, 10_000, "{}", path.display());
                }
                spec.workload_id()
            })
            .collect();
        let differ = |i: usize| (workloads[i].clone(), plan.points()[i].threads);
        let is_new = |i: usize| (0..i).all(|earlier| differ(earlier) != differ(i));
        assert!((0..workloads.len()).all(is_new), "two points are one");
        match plan.question() {
            Question::Rate(wanted) => assert_eq!(wanted, Wanted::Soar, "the paper's figures are of SoAR"),
            Question::Measure(measure) => {
                let of_paper = match plan.name.as_str() {
                    "figure-8" | "transaction-cost" => Measure::Throughput,
                    "anomaly-score" => Measure::AnomalyScore,
                    "ycsb-d-2016-consistency" => Measure::Gamma,
                    "tpcc-isolation" => Measure::PerMinute,
                    _ => Measure::Unpredictable,
                };
                assert_eq!(measure, of_paper, "{}", plan.name);
            }
        }
        for store in &plan.stores {
            for (_, url) in store.urls() {
                let url = environment::filled_in(url, &BTreeMap::new()).unwrap();
                assert!(url.contains(':') && !url.contains("${") && url.matches('?').count() <= 1, "{url}");
            }
        }
        found.insert(plan.name.clone(), (workloads.len(), plan.stores.len()));
    }
    let expected = [
        ("anomaly-score", (5, 6)),
        ("figure-3", (4, 3)),
        ("figure-3-stores", (4, 5)),
        ("figure-4", (3, 2)),
        ("figure-4-stores", (3, 5)),
        ("figure-6", (3, 3)),
        ("figure-6-stores", (3, 5)),
        ("figure-8", (4, 5)),
        ("figure-11", (4, 5)),
        ("tpcc-isolation", (3, 14)),
        ("transaction-cost", (5, 6)),
        ("ycsb-d-2016-consistency", (8, 3)),
    ];
    assert_eq!(found, expected.map(|(name, size)| (name.to_string(), size)).into());
}
