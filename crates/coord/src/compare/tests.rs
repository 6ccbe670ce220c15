mod by_rate;
mod measured;
mod ready;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use schemas::comparison::{ComparisonFolder, Outcome};
use schemas::files;
use schemas::run::{RunFolder, RunState};
use schemas::verdict::{Rating, RatingDocument};
use schemas::workload::social::SocialWorkload;

use super::chart::Chart;
use super::*;
use crate::cli::args::CompareArgs;
use crate::cli::resolve::{self, Invocation};
use crate::run::setting::{Setting, Source};
use crate::search::Unit;

const SPEC: &str = "name = \"t\"\nsessions = 10\n[data]\nmembers = 100\n[mix]\nview_profile = 1\n";

const PLAN: &str = r#"
name = "sizes"
title = "View Profile by <size>"
spec = "specs/t.toml"
sla = "95% < 100ms, 1s"
search_s = 0.5
max_threads = 32

[axis]
label = "image|bytes"
points = [
    { label = "No image", set = ["data.image_bytes=0"] },
    { label = "2 KB", set = ["data.image_bytes=2048"] },
]

[[stores]]
label = "fast"
url = "memory:?latency_us=100"

[[stores]]
label = "slow"
url = "memory:?latency_us=900"
"#;

/// A folder with a plan and its specification, and the lines that its comparisons print.
struct PlanFolder {
    folder: tempfile::TempDir,
    args: CompareArgs,
    said: RefCell<Vec<String>>,
    variables: BTreeMap<String, String>,
}

impl PlanFolder {
    fn new(plan: &str) -> PlanFolder {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("specs")).unwrap();
        std::fs::write(folder.path().join("specs/t.toml"), SPEC).unwrap();
        std::fs::write(folder.path().join("plan.toml"), plan).unwrap();
        let args = CompareArgs {
            plan: folder.path().join("plan.toml"),
            runs: folder.path().join("runs"),
            ..CompareArgs::default()
        };
        PlanFolder { folder, args, said: RefCell::default(), variables: BTreeMap::new() }
    }

    fn resolved(&self, change: impl FnOnce(&mut CompareArgs)) -> Result<Comparison, Failure> {
        let mut args = self.args.clone();
        change(&mut args);
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let variables = self.variables.clone();
        resolve::comparison(&args, &Invocation { now, command: vec!["encore".into()], variables })
    }

    /// Compares with made-up stores: `outcome` gives the ratings of a cell, by its run folder.
    fn conduct(
        &self,
        change: impl FnOnce(&mut CompareArgs),
        outcome: impl Fn(&str) -> Result<(Rating, Rating), Failure>,
    ) -> (Result<ComparisonDocument, Failure>, Vec<String>) {
        let comparison = self.resolved(change).unwrap();
        let mut rated = Vec::new();
        let mut perform = |job: Job| {
            let Job::Rate(rating) = job else { panic!("{job:?}") };
            rated.push(rating.setting.name.clone());
            let outcome = outcome(&rating.setting.name);
            let run = leave_run(&rating.setting, RunState::Complete)?;
            let (soar, socialites) = outcome?;
            let document = document(&rating, soar, socialites);
            files::write_json(&run.rating(), &document)?;
            Ok(Finding::Rated(Box::new(document)))
        };
        (conduct::conduct(&comparison, &mut perform, &|line| self.hear(line)), rated)
    }

    fn hear(&self, line: &str) {
        self.said.borrow_mut().push(line.to_string());
    }

    fn folder(&self) -> ComparisonFolder {
        ComparisonFolder::new(self.folder.path().join("runs/sizes"))
    }

    fn read(&self) -> ComparisonDocument {
        files::read_json(&self.folder().document()).unwrap()
    }

    /// What was printed and written, without colours and without this test's own folder.
    fn shown(&self, text: &str) -> String {
        let text = anstream::adapter::strip_str(text).to_string();
        text.replace(&self.folder.path().display().to_string(), "PLACE")
    }
}

/// A rating by rate has the first of the two ratings alone.
fn document(rating: &crate::rate::Rating, first: Rating, socialites: Rating) -> RatingDocument {
    let (soar, socialites, rate) = match rating.wanted.unit() {
        Unit::Threads => (Some(first), Some(socialites), None),
        Unit::SessionsPerS => (None, None, Some(first)),
    };
    RatingDocument {
        format_version: schemas::RUN_FORMAT_VERSION,
        sla: rating.setting.sla,
        parameters: rating.parameters(rating.deltas.search_s[0], 0, 0),
        soar,
        socialites,
        rate,
        experiments: Vec::new(),
    }
}

/// Writes what a comparison reads from the run folder of a cell.
fn leave_run(setting: &Setting, state: RunState) -> Result<RunFolder, Failure> {
    assert!(!setting.folder.exists(), "a cell makes its own run folder");
    let run = RunFolder::new(&setting.folder);
    let spec = setting.source.spec();
    let durability = if setting.store.contains("900") { "none: in memory" } else { "every commit" };
    let settings = [
        ("durability", durability),
        ("fsync", if durability == "every commit" { "on" } else { "off" }),
        ("isolation", "serializable"),
        ("version", &setting.store),
    ];
    let kept = schemas::run::RunDocument {
        format_version: schemas::RUN_FORMAT_VERSION,
        encore_version: String::new(),
        name: setting.name.clone(),
        started_unix_s: 0,
        state,
        sla: None,
        trace: Default::default(),
        trace_id: String::new(),
        workload_id: spec.workload_id(),
        spec: spec.clone(),
        store: schemas::plan::redact(&setting.store),
        store_settings: settings.map(|(n, v)| (n.to_string(), v.to_string())).into(),
        host: schemas::run::Host { name: String::new(), system: String::new(), cpus: 1 },
        command: Vec::new(),
    };
    files::write_json(&run.document(), &kept)?;
    for file in ["store.db", "store.db-wal", "store.db.loaded"] {
        files::write_atomically(&setting.folder.join(file), b"x")?;
    }
    Ok(run)
}

fn rating(value: f64) -> Rating {
    let confirmed_by = Some(9).filter(|_| value > 0.0);
    let threads = if value > 0.0 { 4 } else { 0 };
    Rating {
        value,
        threads,
        interval: None,
        at_least: false,
        confirmed_by,
        unmeasured: false,
        rests_on: Vec::new(),
        rests_on_void: None,
        notes: Vec::new(),
    }
}

fn both(soar: f64, socialites: f64) -> Result<(Rating, Rating), Failure> {
    Ok((rating(soar), rating(socialites)))
}

/// All marks at once: one cell is best, one zero, one void and unconfirmed.
fn marked(name: &str) -> Result<(Rating, Rating), Failure> {
    match name {
        "no-image-fast" => both(12_442.0, 16.0),
        "no-image-slow" => both(0.0, 0.0),
        "2-kb-fast" => {
            let void = Some("upper bound not verified: experiment 3 (T=8) was void: client CPU full".to_string());
            Ok((Rating { confirmed_by: None, rests_on_void: void, ..rating(312.4) }, rating(8.0)))
        }
        _ => Ok((rating(9.04), Rating { at_least: true, ..rating(32.0) })),
    }
}

#[test]
fn every_cell_is_a_rating_of_its_own() {
    let plans = PlanFolder::new(PLAN);
    let comparison = plans.resolved(|_| ()).unwrap();
    let cells: Vec<&str> = comparison.cells.iter().map(|cell| cell.run.as_str()).collect();
    assert_eq!(cells, ["no-image-fast", "no-image-slow", "2-kb-fast", "2-kb-slow"]);
    for cell in &comparison.cells {
        let Job::Rate(rating) = &cell.job else { panic!("{cell:?}") };
        assert_eq!((rating.limits.max_load, rating.limits.first_load), (32, 1));
        assert_eq!(rating.deltas.search_s, [0.5]);
        assert_eq!(rating.setting.traces, plans.folder.path().join("runs/traces"));
        assert_eq!(rating.setting.folder, plans.folder().root().join(&cell.run));
    }
    let overridden = plans.resolved(|args| {
        (args.sla, args.max_threads) = (Some("99% < 5ms, 2s".parse().unwrap()), Some(8));
        args.search_s = vec![0.25];
    });
    let Job::Rate(rating) = &overridden.unwrap().cells[0].job else { panic!("a rating") };
    assert_eq!((rating.limits.max_load, rating.setting.sla.delta_s), (8, 2.0));
    assert_eq!(rating.deltas.search_s, [0.25]);
    let source = |cell: usize| comparison.cells[cell].job.setting().source.clone();
    assert_eq!(source(0), source(1), "the stores of a point do not share a trace set");
    let image_bytes = |cell: usize| {
        let social: SocialWorkload = source(cell).spec().workload().unwrap();
        social.data.image_bytes
    };
    assert_eq!((image_bytes(0), image_bytes(2)), (0, 2048));
    assert!(matches!(source(0), Source::Spec(_)));
}

/// A plan without an SLA takes that of its specification, and judges all cells by the same one.
#[test]
fn a_plan_without_an_sla_uses_that_of_the_specification() {
    let plan = PLAN.replace("sla = \"95% < 100ms, 1s\"\n", "");
    let plans = PlanFolder::new(&plan);
    let spec = plans.folder.path().join("specs/t.toml");
    let text = std::fs::read_to_string(&spec).unwrap();
    std::fs::write(&spec, format!("sla = \"90% < 3ms, 2s\"\n{text}")).unwrap();
    let of_spec = "90% < 3ms, 2s".parse().unwrap();
    let comparison = plans.resolved(|_| ()).unwrap();
    assert_eq!(comparison.plan.sla, Some(of_spec));
    assert!(comparison.cells.iter().all(|cell| cell.job.setting().sla == of_spec));

    let given = "99% < 5ms, 1s".parse().unwrap();
    assert_eq!(plans.resolved(|args| args.sla = Some(given)).unwrap().plan.sla, Some(given));

    std::fs::write(spec.with_file_name("u.toml"), format!("sla = \"80% < 3ms, 2s\"\n{text}")).unwrap();
    let differ = plan.replace("set = [\"data.image_bytes=2048\"]", "spec = \"specs/u.toml\"");
    std::fs::write(&plans.args.plan, differ).unwrap();
    let error = plans.resolved(|_| ()).unwrap_err().to_string();
    let expected = "plan.toml: sla: is missing, and the specifications of its points have different ones \
                    (90% < 3ms, 0.1% unpredictable, 2s; 2 KB: 80% < 3ms, 0.1% unpredictable, 2s); \
                    add an `sla` to the plan, or use --sla";
    assert!(error.ends_with(expected), "{error}");
    assert!(plans.resolved(|args| args.sla = Some(given)).is_ok());
}

#[test]
fn tables_and_files_show_the_ratings() {
    let plans = PlanFolder::new(PLAN);
    let (ended, rated) = plans.conduct(|_| (), marked);
    let document = ended.unwrap();
    assert_eq!(rated, ["no-image-fast", "no-image-slow", "2-kb-fast", "2-kb-slow"]);
    assert_eq!(document, plans.read());
    assert_eq!((document.state.clone(), exit_code(&document)), (RunState::Complete, 0));
    let said = plans.said.borrow();
    insta::assert_snapshot!("said", plans.shown(&said.join("\n")));
    let markdown = std::fs::read_to_string(plans.folder().table()).unwrap();
    let (markdown, _) = markdown.rsplit_once("\nEncore ").unwrap();
    insta::assert_snapshot!("markdown", markdown);
    let svg = std::fs::read_to_string(plans.folder().chart()).unwrap();
    for text in ["View Profile by &lt;size&gt;", "12,442", "(0)", "312? void", "9.0", "fast !", "2 KB: fast !"] {
        assert!(svg.contains(text), "{text:?} is not in {svg}");
    }
    // 12,442 and 9 need a logarithmic axis.
    let Chart::Bars(bars) = chart::of(&document) else { panic!("ratings are bars") };
    assert_eq!(bars.scale, analyzer::chart::Scale::Log);
    assert_eq!(
        show::conclusions(&document, &show::tables(&document)[0]),
        [
            "image|bytes No image: fast has the highest SoAR, 12,442 operations/s.",
            "image|bytes 2 KB: no store clearly has the highest SoAR; fast has 312 operations/s."
        ]
    );
}

#[test]
fn an_interrupted_comparison_goes_on_where_it_was() {
    let plans = PlanFolder::new(PLAN);
    let (ended, rated) = plans.conduct(
        |_| (),
        |name| match name {
            "2-kb-fast" => Err(Failure::Interrupted { run: None }),
            _ => both(100.0, 2.0),
        },
    );
    assert!(matches!(ended, Err(Failure::Interrupted { run: Some(run) }) if run == plans.folder().root()));
    assert_eq!(rated.len(), 3, "a cell was rated after Ctrl-C");
    let document = plans.read();
    assert_eq!(document.state, RunState::Interrupted);
    assert_eq!(document.cells.iter().filter(|cell| cell.outcome == Outcome::Missing).count(), 2);
    assert!(plans.said.borrow().last().unwrap().contains("--resume"));

    assert!(plans.resolved(|_| ()).unwrap_err().to_string().contains("continue it with --resume"));
    let (ended, rated) = plans.conduct(|args| args.resume = true, |_| both(200.0, 4.0));
    assert_eq!(rated, ["2-kb-fast", "2-kb-slow"]);
    let document = ended.unwrap();
    assert_eq!(document.state, RunState::Complete);
    let values: Vec<f64> = document.cells.iter().map(|cell| outcome::ratings(&cell.outcome)[0].value).collect();
    assert_eq!(values, [100.0, 100.0, 200.0, 200.0]);
    assert!(document.cells.iter().all(|cell| !cell.store_settings.is_empty()));
}

#[test]
fn a_failed_cell_does_not_end_the_comparison() {
    let plans = PlanFolder::new(PLAN);
    let fails = |name: &str| match name {
        "no-image-slow" => Err(Failure::tool("the store went away")),
        _ => both(100.0, 2.0),
    };
    let (ended, rated) = plans.conduct(|_| (), fails);
    let document = ended.unwrap();
    assert_eq!((rated.len(), exit_code(&document)), (4, 3));
    assert_eq!(document.state, RunState::Failed("1 of 4 cells failed".into()));
    assert_eq!(failures(&document), ["No image, slow: the store went away"]);
    assert!(std::fs::read_to_string(plans.folder().chart()).unwrap().contains("failed"));
    let (ended, rated) = plans.conduct(|args| args.resume = true, |_| both(100.0, 2.0));
    assert_eq!((rated, exit_code(&ended.unwrap())), (vec!["no-image-slow".to_string()], 0));
}

#[test]
fn a_store_that_keeps_the_sla_nowhere_is_exit_code_1() {
    let plans = PlanFolder::new(PLAN);
    let value = |name: &str| if name.ends_with("slow") { 0.0 } else { 5.0 };
    let (ended, _) = plans.conduct(|_| (), |name| both(value(name), value(name)));
    assert_eq!(exit_code(&ended.unwrap()), 1);
}

/// A store that could not be measured neither kept nor missed the SLA.
#[test]
fn a_store_that_could_not_be_measured_is_not_rated_0() {
    let plans = PlanFolder::new(PLAN);
    let why = "nothing could be measured, because all 2 experiments were void: client CPU full";
    let unmeasured = || Rating { unmeasured: true, rests_on_void: Some(why.to_string()), ..rating(0.0) };
    let (ended, _) = plans
        .conduct(|_| (), |name| if name == "2-kb-slow" { Ok((unmeasured(), unmeasured())) } else { both(5.0, 5.0) });
    let document = ended.unwrap();
    assert_eq!(exit_code(&document), 3);
    let said = plans.said.borrow().join("\n");
    assert!(said.contains(&format!("SoAR        {why}\n")) && !said.contains("no number of threads"), "{said}");
    let markdown = std::fs::read_to_string(plans.folder().table()).unwrap();
    for line in
        ["| 2 KB | 5 | (void) |", "- `(void)` nothing could be measured", "- 2 KB, slow: nothing could be measured"]
    {
        assert!(markdown.contains(line), "{line:?} is not in {markdown}");
    }
    // If a store could not be measured, no other one is marked as the best.
    assert!(!markdown.contains("highest of its row"), "{markdown}");
}

#[test]
fn resuming_refuses_cells_with_other_settings() {
    let plans = PlanFolder::new(PLAN);
    let resume = |args: &mut CompareArgs| args.resume = true;
    plans.conduct(|_| (), |_| both(1.0, 1.0)).0.unwrap();
    let refused = |change: &dyn Fn(&mut CompareArgs), expect: &str| {
        let comparison = plans.resolved(change).unwrap();
        let error = conduct::conduct(&comparison, &mut |_| panic!("nothing is to be done"), &|_| ()).unwrap_err();
        assert!(matches!(error, Failure::Usage(_)) && error.to_string().contains(expect), "{error}");
    };
    refused(&|args| (args.resume, args.settings) = (true, vec!["data.members=50".into()]), "other flags (--set");
    refused(&|args| (args.resume, args.max_threads) = (true, Some(9)), "other flags (--set");
    let spec = plans.folder.path().join("specs/t.toml");
    std::fs::write(&spec, SPEC.replace("members = 100", "members = 101")).unwrap();
    refused(&resume, "ran another workload");
    std::fs::write(&spec, SPEC).unwrap();
    // Other files in the place of a cell's run folder are left alone.
    let cell = plans.folder().root().join("2-kb-slow");
    std::fs::remove_dir_all(&cell).unwrap();
    std::fs::create_dir(&cell).unwrap();
    std::fs::write(cell.join("letters.txt"), "mine").unwrap();
    refused(&resume, "is not a run folder");
    assert!(cell.join("letters.txt").exists());
}

#[test]
fn an_embedded_store_without_a_path_has_a_file_for_as_long_as_it_is_rated() {
    let plan = PLAN.replace("memory:?latency_us=100", "sqlite:?synchronous=off");
    let plan = plan.replace("memory:?latency_us=900", "sqlite:elsewhere.db?synchronous=off");
    let plans = PlanFolder::new(&plan);
    let comparison = plans.resolved(|_| ()).unwrap();
    let urls: Vec<String> = comparison.cells.iter().map(|cell| plans.shown(&cell.job.setting().store)).collect();
    assert_eq!(urls[0], "sqlite:PLACE/runs/sizes/no-image-fast/store.db?synchronous=off");
    assert_eq!(urls[1], "sqlite:elsewhere.db?synchronous=off");
    plans.conduct(|_| (), |_| both(1.0, 1.0)).0.unwrap();
    let files = |cell: &str| {
        let entries = std::fs::read_dir(plans.folder().root().join(cell)).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(files("no-image-fast"), ["rating.json", "run.json"]);
    assert_eq!(files("no-image-slow"), ["rating.json", "run.json", "store.db", "store.db-wal", "store.db.loaded"]);
}

#[test]
fn invalid_plans_are_refused_before_anything_runs() {
    let check = |change: &dyn Fn(&mut CompareArgs), from: &str, to: &str, expect: &str| {
        let plans = PlanFolder::new(&PLAN.replacen(from, to, 1));
        let error = plans.resolved(change).unwrap_err();
        assert!(matches!(error, Failure::Usage(_)) && error.to_string().contains(expect), "{error} lacks {expect:?}");
        assert!(!plans.args.runs.exists());
    };
    let plan = |from: &str, to: &str, expect: &str| check(&|_| (), from, to, expect);
    plan("latency_us=900", "latency=900", "plan.toml: stores.1.url: memory:");
    plan("specs/t.toml", "none.toml", "none.toml: No such file");
    plan("image_bytes=2048", "imagebytes=2048", "imagebytes");
    plan("max_threads = 32", "first_threads = 300", "--first-threads 300 is above");
    plan("max_threads = 32", "max_threads = 0", "plan.toml: max_threads");
    plan("name = \"sizes\"", "name = \"traces\"", "`traces` is reserved");
    plan("title", "titel", "plan.toml: ");
    check(&|args| args.name = Some("../x".into()), "", "", "--name \"../x\"");
    check(&|args| args.plan = "none.toml".into(), "", "", "none.toml: No such file");
    let varied = |args: &mut CompareArgs| args.settings = vec!["data.image_bytes=1".into()];
    check(&varied, "", "", "the plan's axis sets data.image_bytes");
}

#[test]
fn run_folders_have_names_of_their_own() {
    let plan = PLAN.replace("\"No image\"", "\"a b\"").replace("\"2 KB\"", "\"A\"");
    let plan = plan.replace("\"fast\"", "\"c\"").replace("\"slow\"", "\"../b/c\"");
    let comparison = PlanFolder::new(&plan).resolved(|_| ()).unwrap();
    let cells: Vec<&str> = comparison.cells.iter().map(|cell| cell.run.as_str()).collect();
    assert_eq!(cells, ["a-b-c", "a-b-b-c", "a-c", "a-b-c-2"]);
    // Without an axis the store alone gives the name.
    let (before, after) = PLAN.split_once("[axis]").unwrap();
    let plan =
        format!("{before}{}", &after[after.find("[[stores]]").unwrap()..]).replace("\"fast\"", "\"Comparison.json\"");
    let comparison = PlanFolder::new(&plan).resolved(|_| ()).unwrap();
    let cells: Vec<&str> = comparison.cells.iter().map(|cell| cell.run.as_str()).collect();
    assert_eq!(cells, ["cell-comparison.json", "slow"]);
}

#[test]
fn urls_take_variables_of_the_environment() {
    let plan = PLAN.replace("memory:?latency_us=100", "${FAST:-memory:}?latency_us=100");
    let plan = plan.replace("memory:?latency_us=900", "${SLOW}?latency_us=900");
    let mut plans = PlanFolder::new(&plan);
    let error = plans.resolved(|_| ()).unwrap_err();
    assert!(matches!(error, Failure::Usage(_)));
    let expected =
        "PLACE/plan.toml: stores.1.url: the environment variable SLOW is not set; set it, for example: export SLOW='";
    assert!(plans.shown(&error.to_string()).starts_with(expected), "{error}");

    plans.variables.insert("SLOW".into(), "memory:?seed=7".into());
    let comparison = plans.resolved(|_| ()).unwrap();
    let urls: Vec<&str> = comparison.cells[..2].iter().map(|cell| cell.job.setting().store.as_str()).collect();
    assert_eq!(urls, ["memory:?latency_us=100", "memory:?seed=7&latency_us=900"]);
    // The document has the plan as it ran, with its variables replaced.
    let document = plans.conduct(|_| (), |_| both(1.0, 1.0)).0.unwrap();
    assert_eq!(document.plan.stores[1].url, "memory:?seed=7&latency_us=900");
    plans.variables.insert("FAST".into(), "postgres://me:hush@db/x?nosuch=1".into());
    let refused = |plans: &PlanFolder| plans.resolved(|args| args.resume = true).unwrap_err().to_string();
    let error = refused(&plans);
    assert!(error.contains("plan.toml: stores.0.url: postgres://me:***@db/x") && !error.contains("hush"), "{error}");
    plans.variables.insert("FAST".into(), "somewhere".into());
    assert!(refused(&plans).contains("stores.0.url: somewhere"));
    // A comparison cannot be resumed with other stores than its cells had.
    plans.variables = BTreeMap::from([("SLOW".into(), "memory:?seed=8".into())]);
    let comparison = plans.resolved(|args| args.resume = true).unwrap();
    let error = conduct::conduct(&comparison, &mut |_| panic!("nothing is to be done"), &|_| ()).unwrap_err();
    assert!(error.to_string().contains("other store URLs in the environment"), "{error}");
}
