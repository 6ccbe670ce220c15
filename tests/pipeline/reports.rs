//! Opens the pages of runs in a real browser. A page shows the expected text, runs no script,
//! requests nothing and has no errors, even if names in it contain HTML.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{Ran, Workplace};
use crate::widths::nothing_is_cut;

/// The browser, under the names of Debian and other systems. Without a browser the test is skipped,
/// unless ENCORE_TEST_SERVERS=required.
fn browser() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let is_there = |name: &&str| {
        Command::new(name)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|s| s.success())
    };
    let found = names.into_iter().find(is_there);
    if found.is_none() {
        let required = std::env::var("ENCORE_TEST_SERVERS").is_ok_and(|value| value == "required");
        assert!(!required, "no browser is here: install chromium");
        println!("left out: no browser is here");
    }
    found
}

/// What a browser found on a page.
pub struct Seen {
    /// The page as the browser has it in memory.
    pub dom: String,
    /// Every URL that the page requested.
    requests: Vec<String>,
    /// Messages on the browser's console.
    pub console: Vec<String>,
}

/// Opens a page in the browser.
pub fn open(browser: &str, page: &Path, folder: &Path) -> Seen {
    let log = folder.join("net.json");
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-extensions",
        ])
        .args(["--enable-logging=stderr", "--v=0", "--virtual-time-budget=2000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("--log-net-log={}", log.display()))
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .output()
        .expect("the browser starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    // The browser also makes requests of its own; their initiator is not the page.
    let log = json(&log);
    let events = log["events"].as_array().expect("events").iter().map(|event| &event["params"]);
    let of_page =
        events.filter(|params| params["initiator"].as_str().is_some_and(|by| by.starts_with("file") || by == "null"));
    let requests = of_page.filter_map(|params| params["url"].as_str());
    Seen {
        dom: String::from_utf8_lossy(&output.stdout).into_owned(),
        requests: requests.map(String::from).collect(),
        console: said.lines().filter(|line| line.contains(":CONSOLE")).map(String::from).collect(),
    }
}

/// Requires that the page has no errors and requests nothing from elsewhere.
fn is_quiet(seen: &Seen) {
    assert_eq!(seen.console, Vec::<String>::new());
    let elsewhere = seen.requests.iter().filter(|url| !url.starts_with("file:") && !url.starts_with("data:"));
    assert_eq!(elsewhere.collect::<Vec<_>>(), Vec::<&String>::new());
    assert!(seen.dom.contains("</html>"), "{}", seen.dom);
}

fn page_of(place: &Workplace, run: &str) -> PathBuf {
    let page = place.path(run).join("report.html");
    // The page is small enough to open at once, however long the run was.
    let bytes = page.metadata().expect("a page").len();
    assert!(bytes < 6 << 20, "{bytes} bytes");
    page
}

/// Requires that the run came to its end. Its verdict does not matter here: the run is very short.
fn leaves_a_page(ran: &Ran) -> String {
    let said = ran.stdout();
    assert!(said.contains("report    runs/"), "{said}\n{}", ran.stderr());
    said
}

/// The other tests check that there are no requests and no errors. This test checks that they would
/// find some.
#[test]
fn a_page_that_asks_for_something_is_found_out() {
    let Some(browser) = browser() else { return };
    let place = Workplace::new();
    let page = place.path("page.html");
    let text = "<html><img src='http://192.0.2.1/picture'><script>console.error('there')</script></html>";
    std::fs::write(&page, text).expect("a page");
    let seen = open(browser, &page, &place.path(""));
    assert!(seen.requests.iter().any(|url| url.starts_with("http://192.0.2.1")), "{:?}", seen.requests);
    assert!(seen.console.iter().any(|line| line.contains("there")), "{:?}", seen.console);
}

/// A rating of a store that lies and fails, with several experiments.
#[test]
fn a_rating_is_a_page_that_a_browser_likes() {
    let Some(browser) = browser() else { return };
    let place = Workplace::new();
    let lies = "memory:?latency_us=300&stale=0.2&error=0.01";
    let rate = ["rate", "busy.toml", "--store", lies, "--name", "r", "--sessions", "60000", "--max-threads", "4"];
    let how = ["--sla", "50% < 100ms, 60% unpredictable, 2s", "--search-s", "2", "--warmup", "200"];
    leaves_a_page(&place.run(&[&rate[..], &how].concat()));
    let seen = open(browser, &page_of(&place, "runs/r"), &place.path(""));
    is_quiet(&seen);
    nothing_is_cut(browser, &page_of(&place, "runs/r"), &place.path(""));
    for expected in [
        "SoAR",
        "Socialites",
        "Throughput by threads",
        "SLA: at most 60%",
        "Response times by percentile",
        "Response times over time",
        "Freshness",
        "Popularity",
        // Whether the worst reads had a wrong count or a wrong list depends on chance.
        "This read returned",
        ": timeline",
        "SELECT experiment, threads, throughput_per_s",
        "scheduling delay, mean",
        "% requested",
        " rate busy.toml --store",
        "class=\"conclusion\"",
        "href=\"#unpredictable-reads\"",
    ] {
        assert!(seen.dom.contains(expected), "{expected:?} is not in the page");
    }
    // The statement below a chart returns its data: one mark for each experiment.
    let sql = "SELECT experiment, threads, throughput_per_s, ruling FROM experiments ORDER BY experiment";
    let answer = place.run(&["analyze", "sql", "runs/r", sql, "--format", "csv"]).succeeds();
    let experiments = answer.lines().count() - 1;
    let marks = seen.dom.matches("<title>experiment ").count();
    assert_eq!(marks, 3 * experiments, "three pictures by threads");
    // A comparison with another run (here the same one) has one chart for both runs, with all marks
    // again.
    place.run(&["analyze", "compare", "runs/r", "runs/r", "--html", "both.html"]).succeeds();
    let both = open(browser, &place.path("both.html"), &place.path(""));
    is_quiet(&both);
    nothing_is_cut(browser, &place.path("both.html"), &place.path(""));
    let answered =
        place.run(&["analyze", "sql", "runs/r", "SELECT threads FROM experiments WHERE ok > 0", "--format", "csv"]);
    let answered = answered.succeeds().lines().count() - 1;
    assert_eq!(both.dom.matches("<title>runs/r, experiment ").count(), 2 * 2 * answered, "{}", both.dom);
}

/// Words from a specification, a store or an error appear as text, even if they look like HTML.
#[test]
fn hostile_words_stay_words() {
    let Some(browser) = browser() else { return };
    let place = Workplace::new();
    let run = ["run", "busy.toml", "--store", "memory:?seed=3", "--threads", "2", "--sessions", "800", "--name", "h"];
    leaves_a_page(&place.run(&[&run[..], &["--sla", "95% < 10s, 0.1s"]].concat()));
    let path = place.path("runs/h/run.json");
    let mut document: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).expect("run.json")).expect("JSON");
    let evil =
        "</style></title><script>document.title='owned'</script><img src=http://192.0.2.1/x onerror=alert(1)>\"'&";
    for key in ["name", "store", "encore_version"] {
        document[key] = evil.into();
    }
    document["host"]["name"] = evil.into();
    document["command"] = serde_json::json!([evil, evil]);
    document["store_settings"] = serde_json::json!({ evil: evil });
    document["spec"]["mix"][evil] = 1.0.into();
    std::fs::write(&path, document.to_string()).expect("run.json");
    place.run(&["analyze", "report", "runs/h"]).succeeds();
    let seen = open(browser, &page_of(&place, "runs/h"), &place.path(""));
    is_quiet(&seen);
    nothing_is_cut(browser, &page_of(&place, "runs/h"), &place.path(""));
    assert!(!seen.dom.contains("<script>") && !seen.dom.contains("<img"), "{}", seen.dom);
    assert!(seen.dom.contains("&lt;script&gt;document.title='owned'"), "{}", seen.dom);
}

/// A run in which all experiments are void has a page too.
#[test]
fn runs_with_nothing_to_draw_are_pages_too() {
    let Some(browser) = browser() else { return };
    let place = Workplace::new();
    let run = ["run", "busy.toml", "--store", "memory:?error=1", "--threads", "2", "--sessions", "300", "--name", "v"];
    leaves_a_page(&place.run(&[&run[..], &["--sla", "95% < 10s, 0.1s"]].concat()));
    let seen = open(browser, &page_of(&place, "runs/v"), &place.path(""));
    is_quiet(&seen);
    assert!(seen.dom.contains("class=\"fail\"") || seen.dom.contains("class=\"void\""), "{}", seen.dom);
}

/// Two runs of one workload. The store of the second takes a hundred times as long to answer.
#[test]
fn runs_are_held_side_by_side() {
    let place = Workplace::new();
    let measure_both = || {
        for (name, store) in [("fast", "memory:?latency_us=200"), ("slow", "memory:?latency_us=20000")] {
            let run = ["run", "busy.toml", "--store", store, "--threads", "4", "--name", name];
            leaves_a_page(&place.run(&[&run[..], &["--sla", "50% < 10s, 2s"]].concat()));
        }
        place.run(&["analyze", "compare", "runs/fast", "runs/slow", "--html", "both.html"]).succeeds()
    };
    let shows = |said: &str| {
        let line = said.lines().rfind(|line| line.contains("throughput (operations/s)")).unwrap_or_default();
        line.contains("runs/slow") && line.contains(" -") && line.trim_end().ends_with("differs")
    };
    let mut said = measure_both();
    // If the machine itself stalls, the fast run has empty slices too, and the difference does not show.
    for _ in 0..4 {
        if shows(&said) {
            break;
        }
        std::fs::remove_dir_all(place.path("runs/fast")).expect("a run");
        std::fs::remove_dir_all(place.path("runs/slow")).expect("a run");
        said = measure_both();
    }
    assert!(shows(&said), "{said}");
    assert!(!said.contains("setup difference:"), "{said}");
    let same = place.run(&["analyze", "compare", "runs/fast", "runs/fast", "--json"]).succeeds();
    let same: serde_json::Value = serde_json::from_str(&same).expect("JSON");
    let figures = same["figures"].as_array().expect("figures");
    assert!(figures.iter().all(|figure| figure["differs"] != true), "{same}");
    place.run(&["analyze", "compare", "runs/fast"]).fails(2, &["a comparison needs two runs or more"]);
    let Some(browser) = browser() else { return };
    let seen = open(browser, &place.path("both.html"), &place.path(""));
    is_quiet(&seen);
    assert!(seen.dom.contains("Comparison of fast and slow") && seen.dom.contains("slow differs from fast in"));
    assert!(seen.dom.contains("95% of the difference"), "{}", seen.dom);
    // Below each chart are the statements that return each run's data: as many values as are drawn.
    let mut statements = 0;
    for figure in seen.dom.split("<figure>").skip(1) {
        let sql = figure.split("<pre>").nth(1).and_then(|rest| rest.split("</pre>").next()).expect("a statement");
        let sql = sql.replace("&lt;", "<").replace("&gt;", ">");
        for (sql, run) in sql.split(';').zip(["fast", "slow"]) {
            let sql: Vec<&str> = sql.lines().filter(|line| !line.starts_with("--")).collect();
            let folder = format!("runs/{run}");
            let answer = place.run(&["analyze", "sql", &folder, &sql.join("\n"), "--format", "csv"]).succeeds();
            let drawn = figure.matches(&format!("<title>{run}")).count();
            // Percentiles are the columns of one row; all other values have a row each.
            let found = if answer.starts_with("p50") {
                answer.split([',', '\n']).count() / 2
            } else {
                answer.lines().count() - 1
            };
            assert!(found == drawn && drawn > 0, "{sql:?}: {answer}, {drawn} drawn");
            statements += 1;
        }
    }
    assert!(statements >= 4, "two pictures of two runs at least: {statements}");
}

/// Stores rated and measured at the points of an axis: the comparison has a page, with a link to
/// each cell's page.
#[test]
fn a_comparison_is_a_page_that_a_browser_likes() {
    let place = Workplace::new();
    let evil = "</title><script>document.title='owned'</script>";
    let plan = |name: &str, asked: &str, at: &str, lasts: &str| {
        format!(
            "name = \"{name}\"\ntitle = \"Lies {evil}\"\nspec = \"busy.toml\"\nsla = \"50% < 100ms, 90% unpredictable, {lasts}\"\n\
             {asked}\n[axis]\nlabel = \"members\"\n\
             [[axis.points]]\nlabel = \"few <b>\"\nset = [\"data.members=100\"]\n{at}\n\
             [[axis.points]]\nlabel = \"more\"\nset = [\"data.members=200\"]\n{at}\n\
             [[stores]]\nlabel = \"true & <i>fast</i>\"\nurl = \"memory:?latency_us=300\"\n\
             [[stores]]\nlabel = \"stale\"\nurl = \"memory:?latency_us=300&stale=0.2\"\n"
        )
    };
    let asked = [
        ("rated", "search_s = 0.2\nmax_threads = 2\nrating = \"both\"", "", "0.3s", 2, "Socialites (threads)"),
        // A measurement is not repeated, so it must last longer than a stall of a busy machine.
        ("measured", "measure = \"unpredictable\"", "threads = 2", "2s", 3, "Throughput (operations/s)"),
    ];
    for (name, words, at, lasts, pictures, title) in asked {
        std::fs::write(place.path("plan.toml"), plan(name, words, at, lasts)).expect("the plan is written");
        let said = place.run(&["compare", "plan.toml", "--set", "sessions=30000"]).stdout();
        let page = place.path("runs").join(name).join("comparison.html");
        assert!(said.contains(&format!("page   runs/{name}/comparison.html")), "{said}");
        // The number of each cell links to its page.
        let text = std::fs::read_to_string(&page).expect("a page");
        let ways: Vec<&str> = text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let pages = ways.iter().filter(|way| way.ends_with("report.html"));
        assert_eq!(pages.clone().count(), 4 * pictures, "{ways:?}");
        for way in pages {
            assert!(page.with_file_name(way).exists(), "{way}");
        }
        // The statement below each chart returns a row for each cell.
        let folder = format!("runs/{name}");
        let statements = text.split("<pre>").skip(1).filter_map(|rest| rest.split("</pre>").next());
        let statements: Vec<&str> = statements.filter(|text| text.starts_with("SELECT")).collect();
        assert_eq!(statements.len(), pictures);
        for sql in statements {
            let rows = place.run(&["analyze", "sql", &folder, sql, "--format", "csv"]).succeeds();
            assert_eq!(rows.lines().count(), 5, "{rows}");
            let is_finite = |row: &str| row.split(',').nth(2).is_some_and(|v| v.parse().is_ok_and(f64::is_finite));
            // On a busy machine a cell may be void. Its row then says so.
            let is_void = |row: &str| row.contains("void");
            assert!(rows.lines().skip(1).all(|row| is_finite(row) || is_void(row)), "{rows}");
            assert!(rows.lines().skip(1).any(is_finite), "{rows}");
        }
        let Some(browser) = browser() else { continue };
        let seen = open(browser, &page, &place.path(""));
        is_quiet(&seen);
        nothing_is_cut(browser, &page, &place.path(""));
        assert!(
            !seen.dom.contains("<script>") && !seen.dom.contains("<i>") && !seen.dom.contains("<b>few"),
            "{}",
            seen.dom
        );
        assert!(seen.dom.contains(title) && seen.dom.matches("<figure>").count() == pictures, "{}", seen.dom);
    }
}

/// Exported rows, percentiles and figures equal those from SQL.
#[test]
fn what_is_exported_is_what_is_there() {
    let place = Workplace::new();
    let run = ["run", "busy.toml", "--store", "memory:?seed=3", "--threads", "2", "--sessions", "900", "--name", "x"];
    leaves_a_page(&place.run(&[&run[..], &["--sla", "95% < 10s, 0.1s", "--warmup", "100"]].concat()));
    let count = |what: &str| -> usize {
        let sql = format!("SELECT count(*) FROM {what}");
        let answer = place.run(&["analyze", "sql", "runs/x", &sql, "--format", "csv"]).succeeds();
        answer.lines().nth(1).expect("a row").parse().expect("a number")
    };
    let export = |more: &[&str]| place.run(&[&["analyze", "export", "runs/x", "--format"][..], more].concat());
    let csv = export(&["csv", "--rows", "timeline"]).succeeds();
    assert_eq!(csv.lines().count(), 1 + count("timeline"), "{csv}");
    export(&["json", "-o", "rows.json"]).succeeds();
    assert_eq!(json(&place.path("rows.json")).as_array().map(Vec::len), Some(count("operations")));
    export(&["parquet"]).fails(2, &["--format parquet", "--output"]);
    export(&["parquet", "-o", "nowhere/rows.parquet"]).fails(2, &["nowhere/rows.parquet"]);
    export(&["parquet", "-o", "rows.parquet"]).succeeds();
    assert!(std::fs::read(place.path("rows.parquet")).expect("a file").starts_with(b"PAR1"));
    let hgrm = export(&["hgrm"]).succeeds();
    let measured = count("operations WHERE outcome = 'ok' AND NOT warmup");
    assert!(hgrm.contains(&format!("Total count    = {measured:12}]")), "{hgrm}");
    let max = hgrm.split("#[Max     =").nth(1).and_then(|rest| rest.split(',').next()).expect("a maximum");
    let max_ms: f64 = max.trim().parse().expect("a number");
    let longest = "SELECT max(response_ns) FROM operations WHERE outcome = 'ok' AND NOT warmup";
    let longest = place.run(&["analyze", "sql", "runs/x", longest, "--format", "csv"]).succeeds();
    let max_ns: u64 = longest.lines().nth(1).expect("a row").parse().expect("a number");
    assert!((max_ms - max_ns as f64 / 1e6).abs() <= 0.001 + max_ms / 500.0, "{max_ms} ms, {max_ns} ns: {hgrm}");
    let of_operation = |format: &str| export(&[format, "--operation", "view_profile"]).succeeds();
    assert_eq!(of_operation("csv").lines().count(), 1 + count("operations WHERE operation = 'view_profile'"));
    assert!(!of_operation("openmetrics").contains("list_friends"));
    export(&["csv", "--rows", "timeline", "--operation", "view_profile"]).fails(2, &["--operation", "timeline"]);
    export(&["hgrm", "--rows", "timeline"]).fails(2, &["--rows timeline"]);
    // Existing content of a file stays.
    let all = place.path("all.csv");
    std::fs::write(&all, "before\n").expect("a file");
    let end = File::options().append(true).open(&all).expect("the file");
    let appended = place.command(&["analyze", "export", "runs/x", "--format", "csv"]).stdout(end).status();
    assert!(appended.expect("it starts").success());
    let all = std::fs::read_to_string(all).expect("the file");
    assert!(
        all.starts_with("before\n") && all.lines().count() == 2 + count("operations"),
        "{} lines",
        all.lines().count()
    );
    assert!(!place.path(".tmp").exists(), "something was spilled where the user is");
    export(&["hgrm", "--operation", "poke"]).fails(2, &["--operation", "poke", "view_profile"]);
    export(&["csv", "--experiment", "9"]).fails(2, &["experiment 9"]);
    let metrics = export(&["openmetrics"]).succeeds();
    assert!(metrics.ends_with("# EOF\n"), "{metrics}");
    let profiles = count("operations WHERE outcome = 'ok' AND NOT warmup AND operation = 'view_profile'");
    let line = format!("operation=\"view_profile\",outcome=\"ok\"}} {profiles}\n");
    assert!(metrics.contains(&line), "{line} is not in {metrics}");
}

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON")
}
