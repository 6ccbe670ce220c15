//! `encore analyze consistency` of key-value runs with a known answer: a store that is right, and one
//! that shows each write a fixed time late.

mod common;

use std::collections::BTreeMap;
use std::process::Command;

use analyzer::sql::Database;
use common::{Event, Fixture, log_row, outcomes};
use duckdb::types::Value;
use schemas::manifest::Manifest;
use schemas::oplog::Outcome;
use schemas::plan::FragmentPlan;
use schemas::run::RunFolder;
use schemas::spec::Spec;
use schemas::trace::OperationsReader;
use schemas::verdict::{Ruling, Spread, Verdict};
use schemas::vocabulary::kv::{Found, Kv, Operation, Verb};

const MS: i64 = 1_000_000;

type KvEvent = Event<Operation>;

/// An experiment on a generated trace set of one fragment with few records, without its log.
fn generated(mix: &str) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    // A record that was inserted can only be drawn, and so deleted, where the latest ones are popular.
    let latest = if mix.contains("delete") { "distribution = 'latest'\n" } else { "" };
    let text = format!(
        "name = 'kv'\nfamily = 'kv'\nsessions = 4000\nfragments = 1\n[data]\nrecords = 12\nfields = 2\n\
         [access]\nread_all_fields = false\nclients = 8\n{latest}[mix]\n{mix}\n"
    );
    let spec = Spec::parse(&text, "kv.toml").unwrap();
    let run = RunFolder::new(folder.path().join("run"));
    let plan = FragmentPlan { fragment: 0, first_session: 0, given_back: Vec::new(), warmup_sessions: 0 };
    let fixture = Fixture { folder, run, fragments: vec![plan], batch_rows: 64 };
    tracegen::generate(&spec, &fixture.trace(), &Default::default()).unwrap();
    fixture
}

/// When a write shows, and its id. None removes the record.
type Shown = (i64, Option<i64>);

/// What a store does that shows each write this long after its end. There is an operation each millisecond,
/// which takes a tenth of one.
fn events(fixture: &Fixture, late_ns: i64) -> Vec<KvEvent> {
    let (folder, manifest) = (fixture.trace(), Manifest::read(&fixture.trace()).unwrap());
    let mut reader = OperationsReader::<Kv>::new(0, manifest.operation_files(&folder, 0), 1_000);
    let (mut rows, mut all) = (Vec::new(), Vec::new());
    while reader.next_rows(&mut rows).unwrap() {
        all.append(&mut rows);
    }
    let mut shown: BTreeMap<(u64, u32), Vec<Shown>> = BTreeMap::new();
    let mut events = Vec::new();
    for (row, index) in all.iter().zip(1..) {
        let (operation, start, end) = (row.operation, index * MS, index * MS + MS / 10);
        let mut observed = Vec::new();
        for field in (0..2).filter(|field| operation.verb == Verb::Delete || operation.fields >> field & 1 == 1) {
            let writes = shown.entry((operation.key, field)).or_default();
            let is_new = operation.key >= 12;
            let initial = if is_new { None } else { Some(0) };
            match operation.verb {
                Verb::Read => {
                    let now = writes.iter().rev().find(|(from, _)| *from <= start);
                    let now = now.map_or(initial, |(_, id)| *id);
                    match now {
                        Some(id) => Found::push(&mut observed, [(field, id)].into_iter()),
                        None => observed.clear(),
                    }
                }
                Verb::Delete => writes.push((end + late_ns, None)),
                _ => writes.push((end + late_ns, Some(operation.id.number()))),
            }
        }
        let mut log = log_row(row.session, start, end, Outcome::Ok);
        log.step = row.step;
        events.push(Event { operation, log, observed, error: None });
    }
    events
}

fn analyzed(fixture: &Fixture, events: &[KvEvent]) -> Verdict {
    fixture.write_log(0, 0, events, true);
    fixture.write_documents();
    fixture.write_report(5_000_000_000, outcomes(events.iter()));
    fixture.analyze().unwrap()
}

fn consistency(fixture: &Fixture, flags: &[&str]) -> String {
    let run = fixture.run.root().display().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_analyzer"));
    command.args(["consistency", &run]).args(flags).env_remove("COLUMNS").current_dir(fixture.folder.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn figures(fixture: &Fixture) -> serde_json::Value {
    serde_json::from_str(&consistency(fixture, &["--json"])).unwrap()
}

fn integers(fixture: &Fixture, verdict: &Verdict, statement: &str) -> Vec<i64> {
    let database = Database::open(&fixture.run, std::slice::from_ref(verdict), None).unwrap();
    let integer = |value: &Value| match value {
        Value::BigInt(n) => *n,
        Value::HugeInt(n) => *n as i64,
        other => panic!("{other:?} is no integer"),
    };
    database.query(statement).unwrap().rows[0].iter().map(integer).collect()
}

#[test]
fn a_right_store_is_linearizable() {
    for mix in ["read = 50\nupdate = 50", "read = 60\nupdate = 25\ninsert = 10\ndelete = 5"] {
        let fixture = generated(mix);
        let verdict = analyzed(&fixture, &events(&fixture, -MS / 10));
        holds_in_sql(&fixture, &verdict);
        let found = &figures(&fixture)["consistency"];
        let registers = found["registers"].as_u64().unwrap();
        assert!(registers >= 24 && found["reads"].as_u64().unwrap() > 1_000, "{found}");
        assert_eq!(found["linearizable"].as_u64(), Some(registers), "{found}");
        assert_eq!((found["stale_reads"].as_u64(), found["gamma_ns"]["max"].as_u64()), (Some(0), Some(0)));
        for guarantee in ["read_your_writes", "monotonic_reads", "monotonic_writes", "writes_follow_reads"] {
            for by in ["by_thread", "by_actor"] {
                assert_eq!(found[by][guarantee]["violations"].as_u64(), Some(0), "{by} {guarantee}");
            }
        }
        assert!(found["by_thread"]["monotonic_reads"]["reads"].as_u64().unwrap() > 500);
    }
}

#[test]
fn a_late_store_is_stale_by_its_delay() {
    for (late_ms, mix) in [(10, "read = 50\nupdate = 50"), (50, "read = 80\nupdate = 20")] {
        let fixture = generated(mix);
        let verdict = analyzed(&fixture, &events(&fixture, late_ms * MS));
        let found = &figures(&fixture)["consistency"];
        let (low, high) = (late_ms * MS * 9 / 10, late_ms * MS);
        for metric in ["gamma_ns", "delta_ns", "t_visibility_ns"] {
            let max = found[metric]["max"].as_i64().unwrap();
            assert!(max >= low && max <= high, "{metric} {max}: {found}");
        }
        // Each read asks for one field.
        let stale = found["stale_reads"].as_i64().unwrap();
        assert_eq!(stale as u64, verdict.figures.unpredictable_reads);
        assert!(stale > 100);
        let slices: i64 = found["freshness"].as_array().unwrap().iter().map(|age| age["reads"].as_i64().unwrap()).sum();
        assert!(slices > 1_000);
        // Later than the delay all are fresh.
        for age in found["freshness"].as_array().unwrap() {
            let is_late = age["from_us"].as_i64().unwrap() > late_ms * 1_000;
            assert!(!is_late || age["reads"] == age["fresh"], "{age}");
        }
        // SQL gives the figures again.
        let statement = "SELECT count(*) FILTER (k_staleness > 0), max(t_staleness_ns), max(k_staleness), count(*)
                         FROM read_staleness AS r SEMI JOIN register_writes AS w
                            ON r.owner = w.owner AND r.element = w.element
                         WHERE NOT warmup AND NOT drained";
        let (t, k) = (found["t_staleness_ns"]["max"].as_i64(), found["k_staleness"]["max"].as_i64());
        let expected = [Some(stale), t, k, found["reads"].as_i64()].map(Option::unwrap);
        assert_eq!(integers(&fixture, &verdict, statement), expected);
        let statement = "SELECT sum(stale_reads), max(k_staleness_max) FROM register_staleness";
        assert_eq!(integers(&fixture, &verdict, statement), [stale, k.unwrap()]);

        holds_in_sql(&fixture, &verdict);
        let text = consistency(&fixture, &["--worst", "2"]);
        for expect in
            ["are linearizable", "t-staleness", "monotonic reads", "no order of these operations", "fragment 0: Γ"]
        {
            assert!(text.contains(expect), "{expect}\n\n{text}");
        }
    }
}

/// The views give the figures of the verdict again, from the operations.
fn holds_in_sql(fixture: &Fixture, verdict: &Verdict) {
    let found = verdict.figures.consistency.as_ref().unwrap();
    let spread = |spread: Spread| [spread.count, spread.above_zero, spread.max].map(|number| number as i64);
    let of_values = "SELECT count(*), count(*) FILTER (gamma_ns > 0), max(gamma_ns) FROM register_values
                     WHERE last_start_ns >= 0";
    assert_eq!(integers(fixture, verdict, of_values), spread(found.value_gamma_ns));
    let of_registers = "SELECT count(*), count(*) FILTER (gamma_ns > 0), max(gamma_ns) FROM registers";
    assert_eq!(integers(fixture, verdict, of_registers), spread(found.gamma_ns));
    let visible = "SELECT count(t_visibility_ns), count(*) FILTER (t_visibility_ns > 0), max(t_visibility_ns)
                   FROM register_values";
    assert_eq!(integers(fixture, verdict, visible), spread(found.t_visibility_ns));
    let reads = "SELECT count(*), count(*) FILTER (k_staleness > 0), max(k_staleness) FROM read_staleness AS r
                 SEMI JOIN register_writes AS w ON r.owner = w.owner AND r.element = w.element
                 WHERE NOT warmup AND NOT drained";
    assert_eq!(integers(fixture, verdict, reads), spread(found.k_staleness));
    // A percentile of the verdict is within 0.1% of the exact one.
    let exact =
        "SELECT quantile_disc(gamma_ns, 0.95)::BIGINT, quantile_disc(gamma_ns, 0.5)::BIGINT FROM register_values
                 WHERE last_start_ns >= 0";
    for (exact, found) in
        integers(fixture, verdict, exact).into_iter().zip([found.value_gamma_ns.p95, found.value_gamma_ns.p50])
    {
        assert!(found.abs_diff(exact as u64) <= exact as u64 / 1_000 + 1, "{found} {exact}");
    }
    let fresh = "SELECT sum(CASE WHEN k_staleness = 0 THEN 1 ELSE 0 END)::BIGINT, count(*) FROM read_staleness AS r
                 SEMI JOIN register_writes AS w ON r.owner = w.owner AND r.element = w.element
                 WHERE NOT warmup AND NOT drained AND age_ns IS NOT NULL";
    let sums =
        [found.freshness.iter().map(|age| age.fresh).sum::<u64>(), found.freshness.iter().map(|age| age.reads).sum()];
    assert_eq!(integers(fixture, verdict, fresh), sums.map(|number| number as i64));
    // The tables have the figures of the verdict.
    let table =
        "SELECT registers, linearizable, k_2, k_more, reads, stale_reads, value_gamma_p95_ns, t_visibility_max_ns
                 FROM consistency";
    let expected = [
        found.registers,
        found.linearizable,
        found.k[1],
        found.k[2],
        found.reads,
        found.stale_reads,
        found.value_gamma_ns.p95,
        found.t_visibility_ns.max,
    ];
    assert_eq!(integers(fixture, verdict, table), expected.map(|number| number as i64));
    let over_time = "SELECT sum(written_values)::BIGINT, max(max_ns) FROM gamma_over_time";
    let sums = [found.value_gamma_ns.count, found.value_gamma_ns.max].map(|number| number as i64);
    assert_eq!(integers(fixture, verdict, over_time), sums);
    let slices = "WITH cut AS (
                      SELECT (v.last_start_ns - e.measured_from_ns) // e.slice_ns AS slice, gamma_ns
                      FROM register_values AS v JOIN experiments AS e USING (experiment) WHERE last_start_ns >= 0
                  )
                  SELECT count(*) FROM (SELECT slice, count(*) AS n, max(gamma_ns) AS m FROM cut GROUP BY slice) AS c
                  JOIN gamma_over_time AS g ON g.slice = c.slice AND g.written_values = c.n AND g.max_ns = c.m";
    let filled = found.over_time.iter().filter(|slice| slice.count > 0).count();
    assert_eq!(integers(fixture, verdict, slices), [filled as i64]);
    let guarantees = "SELECT sum(reads)::BIGINT, sum(violations)::BIGINT FROM session_guarantees";
    let all = found.by_thread.named().into_iter().chain(found.by_actor.named());
    let sums = all.fold([0, 0], |[reads, violations], (_, checked)| {
        [reads + checked.reads as i64, violations + checked.violations as i64]
    });
    assert_eq!(integers(fixture, verdict, guarantees), sums);
}

/// What a client was promised, from the operations by SQL: it read a register after its own write, and after
/// its own reads.
#[test]
fn session_guarantees_hold_in_sql() {
    let fixture = generated("read = 50\nupdate = 50");
    let verdict = analyzed(&fixture, &events(&fixture, 10 * MS));
    let found = verdict.figures.consistency.as_ref().unwrap();
    let statement = "
        WITH saw AS (
            SELECT r.*, coalesce(w.end_ns, -1) AS seen_end_ns, coalesce(w.start_ns, -1) AS seen_start_ns
            FROM register_reads AS r
            LEFT JOIN register_writes AS w ON r.owner = w.owner AND r.element = w.element AND r.value = w.value
        ),
        own_writes AS (
            SELECT r.session, r.element, bool_or(r.seen_end_ns < w.start_ns) AS violates
            FROM saw AS r JOIN register_writes AS w
                ON r.owner = w.owner AND r.element = w.element AND r.actor = w.actor AND w.end_ns < r.start_ns
            GROUP BY ALL
        ),
        own_reads AS (
            SELECT r.session, r.element, bool_or(r.seen_end_ns < f.seen_start_ns) AS violates
            FROM saw AS r JOIN saw AS f
                ON r.owner = f.owner AND r.element = f.element AND r.actor = f.actor AND f.end_ns < r.start_ns
            SEMI JOIN register_writes AS w ON r.owner = w.owner AND r.element = w.element
            GROUP BY ALL
        )
        SELECT
            (SELECT count(*) FROM own_writes), (SELECT count(*) FROM own_writes WHERE violates),
            (SELECT count(*) FROM own_reads), (SELECT count(*) FROM own_reads WHERE violates)";
    let (writes, reads) = (found.by_actor.read_your_writes, found.by_actor.monotonic_reads);
    let expected = [writes.reads, writes.violations, reads.reads, reads.violations].map(|number| number as i64);
    assert!(expected[..3].iter().all(|number| *number > 0), "{expected:?}");
    assert_eq!(integers(&fixture, &verdict, statement), expected);
}

/// The clause on Γ is judged by the share of the values, and a run without registers does not pass it. M excuses
/// reads that are not more stale than it allows.
#[test]
fn a_limit_of_gamma_is_judged() {
    let late = generated("read = 50\nupdate = 50");
    let all = events(&late, 10 * MS);
    let loose = analyzed(&late, &all);
    let judge = |fixture: &Fixture, sla: &str| analyzer::analyze(&fixture.run, 1, Some(&sla.parse().unwrap())).unwrap();
    let values = loose.figures.consistency.as_ref().unwrap().value_gamma_ns;
    assert!(values.above_zero > 100 && loose.figures.consistency.as_ref().unwrap().values_within.is_none());
    for (clause, ruling, reason) in [
        ("100% Γ < 10ms", Ruling::Pass, None),
        ("100% gamma < 10ms", Ruling::Pass, None),
        ("99.9% Γ < 1ms", Ruling::Fail, Some("of the values have a Γ within 1ms, needs 99.9%")),
        ("0% Γ < 1ms", Ruling::Pass, None),
    ] {
        let verdict = judge(&late, &format!("95% < 300ms, 100% unpredictable, {clause}, 3s"));
        assert_eq!(verdict.ruling, ruling, "{clause}: {:?}", verdict.reasons);
        assert!(
            reason.is_none_or(|reason| verdict.reasons.iter().any(|own| own.contains(reason))),
            "{:?}",
            verdict.reasons
        );
    }
    // Exactly the stale reads within the limit are excused, in the figures and in SQL.
    let stale = loose.figures.unpredictable_reads;
    assert_eq!(loose.figures.overall.met, loose.figures.overall.ok - stale);
    for limit_ms in [10, 5, 1] {
        let verdict = judge(&late, &format!("95% < 300ms, 100% unpredictable, 0% Γ < {limit_ms}ms"));
        let excused = "SELECT count(*) FROM read_staleness WHERE k_staleness > 0 AND t_staleness_ns <= ";
        let excused = integers(&late, &verdict, &format!("{excused}{}", limit_ms * MS))[0];
        assert!(excused > 0 && (limit_ms < 10) == (excused < stale as i64), "{excused} of {stale}");
        assert_eq!(verdict.figures.overall.met, verdict.figures.overall.ok - stale + excused as u64);
        let sum = "SELECT sum(met)::BIGINT FROM timeline";
        assert_eq!(integers(&late, &verdict, sum), [verdict.figures.overall.met as i64]);
        let slices = verdict.figures.timeline.slices.iter().map(|slice| slice.met).sum::<u64>();
        assert_eq!(slices, verdict.figures.overall.met);
    }
    let right = generated("read = 50\nupdate = 50");
    analyzed(&right, &events(&right, -MS / 10));
    assert_eq!(judge(&right, "95% < 300ms, 100% Γ < 1ns").ruling, Ruling::Pass);
    let reads = generated("read = 100");
    analyzed(&reads, &events(&reads, -MS / 10));
    let verdict = judge(&reads, "95% < 300ms, 95% Γ < 10ms");
    assert_eq!(verdict.ruling, Ruling::Void);
    assert!(
        verdict.reasons[0].contains("Γ, which cannot be computed: no register was written"),
        "{:?}",
        verdict.reasons
    );
}

/// A write of unknown fate may take effect late, so its delay is no fault.
#[test]
fn writes_of_unknown_fate_accuse_no_store() {
    let fixture = generated("read = 50\nupdate = 50");
    let mut events = events(&fixture, 10 * MS);
    for event in events.iter_mut().filter(|event| event.operation.verb == Verb::Update) {
        event.log.outcome = Outcome::Unknown;
    }
    analyzed(&fixture, &events);
    let found = &figures(&fixture)["consistency"];
    assert!(found["unknown_writes"].as_u64().unwrap() > 1_000);
    assert_eq!((found["stale_reads"].as_u64(), found["linearizable"].as_u64()), (Some(0), found["registers"].as_u64()));
}
