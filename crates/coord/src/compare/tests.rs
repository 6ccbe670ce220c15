mod measured;
mod ready;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use schemas::comparison::ComparisonFolder;
use schemas::files;
use schemas::run::{RunFolder, RunState};
use schemas::verdict::{Rating, RatingDocument};

use super::chart::Chart;
use super::*;
use crate::resolve::{Setting, Source};

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

/// A folder with a plan and its specification, and what runs in it.
struct Place {
    folder: tempfile::TempDir,
    args: CompareArgs,
    said: RefCell<Vec<String>>,
    variables: BTreeMap<String, String>,
}

impl Place {
    fn new(plan: &str) -> Place {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("specs")).unwrap();
        std::fs::write(folder.path().join("specs/t.toml"), SPEC).unwrap();
        std::fs::write(folder.path().join("plan.toml"), plan).unwrap();
        let args = CompareArgs {
            plan: folder.path().join("plan.toml"),
            runs: folder.path().join("runs"),
            ..CompareArgs::default()
        };
        Place { folder, args, said: RefCell::default(), variables: BTreeMap::new() }
    }

    fn resolved(&self, change: impl FnOnce(&mut CompareArgs)) -> Result<resolve::Comparison, Failure> {
        let mut args = self.args.clone();
        change(&mut args);
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let variables = self.variables.clone();
        resolve::comparison(&args, &Surroundings { home: None, now, command: vec!["coord".into()], variables })
    }

    /// Compares with a made-up store: what a cell's rating is, by run folder.
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
            Ok(Finding::Rated(document))
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

    /// What was printed and written, without this test's own folder.
    fn shown(&self, text: &str) -> String {
        let text = anstream::adapter::strip_str(text).to_string();
        text.replace(&self.folder.path().display().to_string(), "PLACE")
    }
}

fn document(rating: &crate::resolve::Rating, soar: Rating, socialites: Rating) -> RatingDocument {
    RatingDocument {
        format_version: schemas::RUN_FORMAT_VERSION,
        sla: rating.setting.sla,
        parameters: rating.parameters(rating.deltas.search_s[0], 0),
        soar: Some(soar),
        socialites: Some(socialites),
        experiments: Vec::new(),
    }
}

/// What a cell leaves in its run folder, as far as a comparison reads it.
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
    let place = Place::new(PLAN);
    let comparison = place.resolved(|_| ()).unwrap();
    let cells: Vec<&str> = comparison.cells.iter().map(|cell| cell.run.as_str()).collect();
    assert_eq!(cells, ["no-image-fast", "no-image-slow", "2-kb-fast", "2-kb-slow"]);
    for cell in &comparison.cells {
        let Job::Rate(rating) = &cell.job else { panic!("{cell:?}") };
        assert_eq!((rating.limits.max_threads, rating.limits.first_threads), (32, 1));
        assert_eq!(rating.deltas.search_s, [0.5]);
        assert_eq!(rating.setting.traces, place.folder.path().join("runs/traces"));
        assert_eq!(rating.setting.folder, place.folder().root().join(&cell.run));
    }
    let source = |cell: usize| comparison.cells[cell].job.setting().source.clone();
    assert_eq!(source(0), source(1), "the stores of a point do not share a trace set");
    let image_bytes = |cell: usize| source(cell).spec().data.image_bytes;
    assert_eq!((image_bytes(0), image_bytes(2)), (0, 2048));
    assert!(matches!(source(0), Source::Spec(_)));
}

#[test]
fn tables_and_files_show_the_ratings() {
    let place = Place::new(PLAN);
    let (ended, rated) = place.conduct(|_| (), marked);
    let document = ended.unwrap();
    assert_eq!(rated, ["no-image-fast", "no-image-slow", "2-kb-fast", "2-kb-slow"]);
    assert_eq!(document, place.read());
    assert_eq!((document.state.clone(), exit_code(&document)), (RunState::Complete, 0));
    let said = place.said.borrow();
    insta::assert_snapshot!("said", place.shown(&said.join("\n")));
    let markdown = std::fs::read_to_string(place.folder().table()).unwrap();
    let (markdown, _) = markdown.rsplit_once("\nEncore ").unwrap();
    insta::assert_snapshot!("markdown", markdown);
    let svg = std::fs::read_to_string(place.folder().chart()).unwrap();
    for text in ["View Profile by &lt;size&gt;", "12,442", "(0)", "312? void", "9.0", "fast !", "2 KB: fast !"] {
        assert!(svg.contains(text), "{text:?} is not in {svg}");
    }
    // 12,442 to 9 is more than one can see on a linear axis.
    let Chart::Bars(bars) = chart::of(&document) else { panic!("ratings are bars") };
    assert_eq!(bars.scale, analyzer::chart::Scale::Log);
}

#[test]
fn an_interrupted_comparison_goes_on_where_it_was() {
    let place = Place::new(PLAN);
    let (ended, rated) = place.conduct(
        |_| (),
        |name| match name {
            "2-kb-fast" => Err(Failure::Interrupted { run: None }),
            _ => both(100.0, 2.0),
        },
    );
    assert!(matches!(ended, Err(Failure::Interrupted { run: Some(run) }) if run == place.folder().root()));
    assert_eq!(rated.len(), 3, "a cell was rated after Ctrl-C");
    let document = place.read();
    assert_eq!(document.state, RunState::Interrupted);
    assert_eq!(document.cells.iter().filter(|cell| cell.outcome == Outcome::Missing).count(), 2);
    assert!(place.said.borrow().last().unwrap().contains("--resume"));

    assert!(place.resolved(|_| ()).unwrap_err().to_string().contains("continue it with --resume"));
    let (ended, rated) = place.conduct(|args| args.resume = true, |_| both(200.0, 4.0));
    assert_eq!(rated, ["2-kb-fast", "2-kb-slow"]);
    let document = ended.unwrap();
    assert_eq!(document.state, RunState::Complete);
    let values: Vec<f64> = document.cells.iter().map(|cell| super::ratings(&cell.outcome)[0].value).collect();
    assert_eq!(values, [100.0, 100.0, 200.0, 200.0]);
    assert!(document.cells.iter().all(|cell| !cell.store_settings.is_empty()));
}

#[test]
fn a_failed_cell_does_not_end_the_comparison() {
    let place = Place::new(PLAN);
    let fails = |name: &str| match name {
        "no-image-slow" => Err(Failure::tool("the store went away")),
        _ => both(100.0, 2.0),
    };
    let (ended, rated) = place.conduct(|_| (), fails);
    let document = ended.unwrap();
    assert_eq!((rated.len(), exit_code(&document)), (4, 3));
    assert_eq!(document.state, RunState::Failed("1 of 4 cells failed".into()));
    assert_eq!(failures(&document), ["No image, slow: the store went away"]);
    assert!(std::fs::read_to_string(place.folder().chart()).unwrap().contains("failed"));
    let (ended, rated) = place.conduct(|args| args.resume = true, |_| both(100.0, 2.0));
    assert_eq!((rated, exit_code(&ended.unwrap())), (vec!["no-image-slow".to_string()], 0));
}

#[test]
fn a_store_that_keeps_the_sla_nowhere_is_exit_code_1() {
    let place = Place::new(PLAN);
    let value = |name: &str| if name.ends_with("slow") { 0.0 } else { 5.0 };
    let (ended, _) = place.conduct(|_| (), |name| both(value(name), value(name)));
    assert_eq!(exit_code(&ended.unwrap()), 1);
}

/// A store of which nothing is known neither kept nor missed the SLA.
#[test]
fn a_store_that_could_not_be_measured_is_not_rated_0() {
    let place = Place::new(PLAN);
    let why = "nothing could be measured, because all 2 experiments were void: client CPU full";
    let unmeasured = || Rating { unmeasured: true, rests_on_void: Some(why.to_string()), ..rating(0.0) };
    let (ended, _) = place
        .conduct(|_| (), |name| if name == "2-kb-slow" { Ok((unmeasured(), unmeasured())) } else { both(5.0, 5.0) });
    let document = ended.unwrap();
    assert_eq!(exit_code(&document), 3);
    let said = place.said.borrow().join("\n");
    assert!(said.contains(&format!("SoAR        {why}\n")) && !said.contains("no number of threads"), "{said}");
    let markdown = std::fs::read_to_string(place.folder().table()).unwrap();
    for line in
        ["| 2 KB | 5 | (void) |", "- `(void)` nothing could be measured", "- 2 KB, slow: nothing could be measured"]
    {
        assert!(markdown.contains(line), "{line:?} is not in {markdown}");
    }
    // A store that cannot be compared leaves no best one.
    assert!(!markdown.contains("highest of its row"), "{markdown}");
}

#[test]
fn resuming_takes_nothing_that_was_rated_otherwise() {
    let place = Place::new(PLAN);
    let resume = |args: &mut CompareArgs| args.resume = true;
    place.conduct(|_| (), |_| both(1.0, 1.0)).0.unwrap();
    let refused = |change: &dyn Fn(&mut CompareArgs), expect: &str| {
        let comparison = place.resolved(change).unwrap();
        let error = conduct::conduct(&comparison, &mut |_| panic!("nothing is to be done"), &|_| ()).unwrap_err();
        assert!(matches!(error, Failure::Usage(_)) && error.to_string().contains(expect), "{error}");
    };
    refused(&|args| (args.resume, args.settings) = (true, vec!["data.members=50".into()]), "other --set");
    let spec = place.folder.path().join("specs/t.toml");
    std::fs::write(&spec, SPEC.replace("members = 100", "members = 101")).unwrap();
    refused(&resume, "was done with another workload");
    std::fs::write(&spec, SPEC).unwrap();
    // Something else where a cell has to go is left alone.
    let cell = place.folder().root().join("2-kb-slow");
    std::fs::remove_dir_all(&cell).unwrap();
    std::fs::create_dir(&cell).unwrap();
    std::fs::write(cell.join("letters.txt"), "mine").unwrap();
    refused(&resume, "is in the way");
    assert!(cell.join("letters.txt").exists());
}

#[test]
fn an_embedded_store_without_a_path_has_a_file_for_as_long_as_it_is_rated() {
    let plan = PLAN.replace("memory:?latency_us=100", "sqlite:?synchronous=off");
    let plan = plan.replace("memory:?latency_us=900", "sqlite:elsewhere.db?synchronous=off");
    let place = Place::new(&plan);
    let comparison = place.resolved(|_| ()).unwrap();
    let urls: Vec<String> = comparison.cells.iter().map(|cell| place.shown(&cell.job.setting().store)).collect();
    assert_eq!(urls[0], "sqlite:PLACE/runs/sizes/no-image-fast/store.db?synchronous=off");
    assert_eq!(urls[1], "sqlite:elsewhere.db?synchronous=off");
    place.conduct(|_| (), |_| both(1.0, 1.0)).0.unwrap();
    let files = |cell: &str| {
        let entries = std::fs::read_dir(place.folder().root().join(cell)).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(files("no-image-fast"), ["rating.json", "run.json"]);
    assert_eq!(files("no-image-slow"), ["rating.json", "run.json", "store.db", "store.db-wal", "store.db.loaded"]);
}

#[test]
fn what_cannot_be_is_refused_before_anything_runs() {
    let check = |change: &dyn Fn(&mut CompareArgs), from: &str, to: &str, expect: &str| {
        let place = Place::new(&PLAN.replacen(from, to, 1));
        let error = place.resolved(change).unwrap_err();
        assert!(matches!(error, Failure::Usage(_)) && error.to_string().contains(expect), "{error} lacks {expect:?}");
        assert!(!place.args.runs.exists());
    };
    let plan = |from: &str, to: &str, expect: &str| check(&|_| (), from, to, expect);
    plan("latency_us=900", "latency=900", "plan.toml: stores.1.url: memory:");
    plan("specs/t.toml", "none.toml", "none.toml: No such file");
    plan("image_bytes=2048", "imagebytes=2048", "imagebytes");
    plan("max_threads = 32", "first_threads = 300", "--first-threads 300 is above");
    plan("max_threads = 32", "max_threads = 0", "plan.toml: max_threads");
    plan("name = \"sizes\"", "name = \"traces\"", "`traces` is taken");
    plan("title", "titel", "plan.toml: ");
    check(&|args| args.name = Some("../x".into()), "", "", "--name \"../x\"");
    check(&|args| args.plan = "none.toml".into(), "", "", "none.toml: No such file");
    let varied = |args: &mut CompareArgs| args.settings = vec!["data.image_bytes=1".into()];
    check(&varied, "", "", "data.image_bytes is what the points of the axis set");
}

#[test]
fn run_folders_have_names_of_their_own() {
    let plan = PLAN.replace("\"No image\"", "\"a b\"").replace("\"2 KB\"", "\"A\"");
    let plan = plan.replace("\"fast\"", "\"c\"").replace("\"slow\"", "\"../b/c\"");
    let comparison = Place::new(&plan).resolved(|_| ()).unwrap();
    let cells: Vec<&str> = comparison.cells.iter().map(|cell| cell.run.as_str()).collect();
    assert_eq!(cells, ["a-b-c", "a-b-b-c", "a-c", "a-b-c-2"]);
    // Without an axis the store alone gives the name.
    let (before, after) = PLAN.split_once("[axis]").unwrap();
    let plan =
        format!("{before}{}", &after[after.find("[[stores]]").unwrap()..]).replace("\"fast\"", "\"Comparison.json\"");
    let comparison = Place::new(&plan).resolved(|_| ()).unwrap();
    let cells: Vec<&str> = comparison.cells.iter().map(|cell| cell.run.as_str()).collect();
    assert_eq!(cells, ["cell-comparison.json", "slow"]);
}

#[test]
fn urls_take_variables_of_the_environment() {
    let plan = PLAN.replace("memory:?latency_us=100", "${FAST:-memory:}?latency_us=100");
    let plan = plan.replace("memory:?latency_us=900", "${SLOW}?latency_us=900");
    let mut place = Place::new(&plan);
    let error = place.resolved(|_| ()).unwrap_err();
    assert!(matches!(error, Failure::Usage(_)));
    let expected =
        "PLACE/plan.toml: stores.1.url: the environment variable SLOW is not set; set it, for example: export SLOW='";
    assert!(place.shown(&error.to_string()).starts_with(expected), "{error}");

    place.variables.insert("SLOW".into(), "memory:?seed=7".into());
    let comparison = place.resolved(|_| ()).unwrap();
    let urls: Vec<&str> = comparison.cells[..2].iter().map(|cell| cell.job.setting().store.as_str()).collect();
    assert_eq!(urls, ["memory:?latency_us=100", "memory:?seed=7&latency_us=900"]);
    // The document has the plan as it was carried out.
    let document = place.conduct(|_| (), |_| both(1.0, 1.0)).0.unwrap();
    assert_eq!(document.plan.stores[1].url, "memory:?seed=7&latency_us=900");
    place.variables.insert("FAST".into(), "postgres://me:hush@db/x?nosuch=1".into());
    let refused = |place: &Place| place.resolved(|args| args.resume = true).unwrap_err().to_string();
    let error = refused(&place);
    assert!(error.contains("plan.toml: stores.0.url: postgres://me:***@db/x") && !error.contains("hush"), "{error}");
    place.variables.insert("FAST".into(), "somewhere".into());
    assert!(refused(&place).contains("stores.0.url: somewhere"));
    // Other stores than those that the cells were done with are another comparison.
    place.variables = BTreeMap::from([("SLOW".into(), "memory:?seed=8".into())]);
    let comparison = place.resolved(|args| args.resume = true).unwrap();
    let error = conduct::conduct(&comparison, &mut |_| panic!("nothing is to be done"), &|_| ()).unwrap_err();
    assert!(error.to_string().contains("other stores in the environment"), "{error}");
}
