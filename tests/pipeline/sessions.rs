//! Workloads of sessions: BG's and composed ones, with waits, from the spec to the rating.

use crate::support::Workplace;

/// A specification in which every action and every early end occurs.
const SESSIONS_SPEC: &str = r#"
name = "sessions"
seed = 3
sessions = 4000
fragments = 2
[data]
members = 150
friends_per_member = 4
confirmed_share = 0.5
friendships = "zipfian"
resources_per_member = 2
comments_per_resource = 1
image_bytes = 64
[think_time]
mean_us = 50
distribution = "exponential"
[inter_arrival_time]
mean_us = 20
[mix]
view_self_profile_session = 4
view_friend_profile_session = 4
post_comment_session = 4
delete_comment_session = 4
invite_friend_session = 4
accept_friend_request_session = 4
reject_friend_request_session = 2
thaw_friendship_session = 3
list_friends = 5
accept_friend_request = 3
browse = 4
[session.browse]
steps = ["list_friends me", "view_profile friend", "view_comments own_resource", "post_comment own_resource"]
"#;

fn place() -> Workplace {
    let place = Workplace::new();
    std::fs::write(place.path("sessions.toml"), SESSIONS_SPEC).expect("the spec is written");
    place
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// Sessions of many steps leave the same state in every store.
#[test]
fn sessions_leave_the_same_state_everywhere() {
    let place = place();
    place.run(&["trace", "gen", "sessions.toml", "-o", "s.trace"]).succeeds();
    let expected = place.run(&["trace", "digest", "s.trace"]).succeeds();
    let designs = [
        "memory:",
        "memory:?latency_us=200",
        "sqlite:a.db?synchronous=off",
        "sqlite:b.db?synchronous=off&friendship=one-row&images=table&counts=stored&indexes=off",
    ];
    for (number, store) in designs.into_iter().enumerate() {
        let run = format!("run-{number}");
        let ran = place.run(&[
            "replay",
            "run",
            "--trace",
            "s.trace",
            "--store",
            store,
            "-T",
            "32",
            "--workers",
            "2",
            "-o",
            &run,
            "--load",
            "--digest",
            "--warmup",
            "10%",
        ]);
        let digest = ran.succeeds();
        let digest = digest.lines().last().unwrap_or_default().trim_start_matches("digest ");
        assert_eq!(digest, expected.trim(), "{store}");
        let valid = place.run(&["analyze", "validate", &run]).succeeds();
        assert!(valid.contains(" 0 unpredictable"), "{store}: {valid}");
    }
}

/// Sessions and no-operations are counted as BG counts them. The warm-up is not counted.
#[test]
fn sessions_and_no_operations_are_counted() {
    let place = place();
    place.run(&["trace", "gen", "sessions.toml", "-o", "s.trace"]).succeeds();
    let ran = ["replay", "run", "--trace", "s.trace", "--store", "memory:", "-T", "8", "-o", "r", "--warmup", "1000"];
    place.run(&ran).succeeds();
    let summary = json(&place.run(&["analyze", "summary", "r", "--json"]).ends());
    let figures = &summary["verdicts"][0]["figures"];
    let sql = "SELECT count(*) FILTER (NOT warmup) AS n, count(*) FILTER (warmup) AS w, \
               count(DISTINCT (fragment, session)) FILTER (NOT warmup) AS s, \
               count(DISTINCT kind) AS kinds FROM operations";
    let rows = json(&place.run(&["analyze", "sql", "r", sql, "--format", "json"]).succeeds());
    assert_eq!(figures["overall"]["ok"], rows[0]["n"], "{rows}");
    assert_eq!(figures["warmup_operations"], rows[0]["w"], "{rows}");
    assert_eq!((figures["sessions"].as_u64(), rows[0]["s"].as_u64()), (Some(3000), Some(3000)), "{figures}");
    assert_eq!(rows[0]["kinds"].as_u64(), Some(11), "{rows}");
    let (noops, elapsed_ns) =
        (figures["noops"].as_f64().expect("noops"), figures["elapsed_ns"].as_f64().expect("time"));
    assert!(noops > 0.0, "nothing was in vain: the test proves nothing");
    let per_s = (3000.0 + noops) * 1e9 / elapsed_ns;
    let reported = figures["sessions_per_s"].as_f64().expect("sessions a second");
    assert!((reported - per_s).abs() < 1e-6 * per_s, "{reported} is not {per_s}");
}

/// Experiments go through the trace once. Each starts where the previous one stopped.
#[test]
fn a_rating_on_sessions_continues_through_the_trace() {
    let place = place();
    let ran = place.run(&[
        "rate",
        "sessions.toml",
        "--store",
        "memory:?latency_us=300",
        "--name",
        "r",
        "--sla",
        "95% < 10s, 0.1% unpredictable, 0.5s",
        "--search-s",
        "0.2",
        "--max-threads",
        "4",
        "--between",
        "continue",
        "--warmup",
        "100ops",
        "--rating",
        "soar",
    ]);
    let text = ran.succeeds();
    assert!(text.contains("SoAR") && !text.contains("Socialites "), "{text}");
    let rating = json(&std::fs::read_to_string(place.path("runs/r/rating.json")).expect("rating.json"));
    assert_eq!(rating["parameters"]["between"], "continue");
    assert!(rating["parameters"]["warmup_sessions"].as_u64() > Some(0), "{rating}");
    let interval = &rating["soar"]["interval"];
    assert!(interval["low"].as_f64() <= rating["soar"]["value"].as_f64(), "{rating}");
    let experiments = rating["experiments"].as_array().expect("experiments").len();
    for file in ["FinalResult.csv", "Results.csv"] {
        let lines = std::fs::read_to_string(place.path("runs/r").join(file)).expect(file);
        assert_eq!(lines.lines().count(), experiments, "{file}: {lines}");
    }
    let plan = |number: usize| -> serde_json::Value {
        let folder = std::fs::read_dir(place.path("runs/r/experiments")).expect("experiments");
        let mut folders: Vec<_> = folder.map(|entry| entry.expect("an entry").path()).collect();
        folders.sort();
        json(&std::fs::read_to_string(folders[number].join("plan.json")).expect("plan.json"))
    };
    // The warm-up has 100 operations, and the rest of the session that has the last of them.
    let verdicts = place.run(&["analyze", "summary", "runs/r", "--json"]);
    let warm = json(&verdicts.stdout())["verdicts"][0]["figures"]["warmup_operations"].as_u64();
    assert!(warm >= Some(100) && warm < Some(107), "{warm:?}");
    assert_eq!(plan(0)["fragments"][0]["first_session"], 0);
    assert!(plan(1)["fragments"][0]["first_session"].as_u64() > Some(0), "{}", plan(1));
}

/// BG's property files become a workload like any other.
#[test]
fn property_files_become_a_trace_set() {
    let place = Workplace::new();
    std::fs::write(
        place.path("data.properties"),
        "usercount=200\nuseroffset=0\nfriendcountperuser=10\nconfperc=0.8\nresourcecountperuser=0\n",
    )
    .expect("written");
    std::fs::write(
        place.path("mix"),
        "workload=edu.usc.bg.workloads.CoreWorkload\noperationcount=500\nViewSelfProfileSession=0.5\n\
         ViewProfileAction=0.4\nViewCommentsOnResourceAction=0.1\nrequestdistribution=dzipfian\nzipfianmean=0.27\n\
         colour=blue\n",
    )
    .expect("written");
    let gen_with = |more: &[&'static str]| {
        let mut words = vec!["trace", "gen", "--properties", "data.properties", "--properties", "mix", "-o", "p.trace"];
        words.extend(more);
        place.run(&words)
    };
    // The mix has comments on resources, but there are no resources: the files contradict each other.
    gen_with(&[]).fails(2, &["resourcecountperuser"]);
    let ran = gen_with(&["--set", "data.resources_per_member=2"]);
    ran.succeeds();
    assert!(ran.stderr().contains("colour") && ran.stderr().contains("mix"), "{}", ran.stderr());
    let shown = json(&place.run(&["trace", "show", "p.trace", "--json"]).succeeds());
    let spec = &shown["manifest"]["spec"];
    assert_eq!((spec["data"]["members"].as_u64(), spec["sessions"].as_u64()), (Some(200), Some(500)), "{spec}");
    assert_eq!(spec["data"]["confirmed_share"].as_f64(), Some(0.8), "{spec}");
    assert_eq!(shown["manifest"]["statistics"]["pending"]["mean"].as_f64(), Some(2.0), "{shown}");
    place.run(&["replay", "run", "--trace", "p.trace", "--store", "memory:", "-T", "4", "-o", "r"]).succeeds();
}
