//! The pages of the deck: forms with the errors of the command line, runs that they start, SQL.

use super::{Deck, encoded};
use crate::support::Workplace;

const SHORT: [(&str, &str); 3] = [("kind", "run"), ("threads", "2"), ("sessions", "300")];

#[test]
fn errors_stand_beside_their_fields() {
    let place = Workplace::new();
    let deck = Deck::start(&place);
    let check = |fields: &[(&str, &str)]| deck.post("/new", &[fields, &[("do", "check")]].concat()).body;
    let wrong = check(&[("kind", "rate"), ("name", "a"), ("sla", "fast"), ("max-threads", "0"), ("store", "memory:")]);
    for field in ["sla", "max-threads"] {
        assert!(wrong.contains(&format!("id=\"why-{field}\"")), "{field}: {wrong}");
    }
    assert!(!wrong.contains("id=\"why-store\""), "{wrong}");
    let unknown = check(&[("kind", "rate"), ("name", "a"), ("store", "oracle://x")]);
    assert!(unknown.contains("id=\"why-store\""), "{unknown}");
    let secret = check(&[("kind", "rate"), ("name", "a"), ("store", "postgres://me:hush-hush@127.0.0.1/x")]);
    assert!(secret.contains("id=\"why-store\"") && secret.contains("environment variable"), "{secret}");
    assert!(!secret.contains("hush-hush"), "{secret}");
    let variable = check(&[("kind", "rate"), ("name", "a"), ("store", "postgres://me:${DECK_PASSWORD}@127.0.0.1/x")]);
    assert!(variable.contains("All is correct") && !variable.contains("hush-hush"), "{variable}");
    assert!(variable.contains("${DECK_PASSWORD}"), "the command names the variable: {variable}");
    let spec = check(&[("kind", "rate"), ("name", "a"), ("text", "name = \"x\"\nseed = 1\n[data]\nmembers = -1\n")]);
    assert!(spec.contains("id=\"why-spec\""), "{spec}");
    let right = check(&[("kind", "rate"), ("name", "a"), ("spec", "busy.toml"), ("store", "memory:")]);
    assert!(right.contains("All is correct") && right.contains("rate busy.toml --store=memory: --name=a"), "{right}");
    // A form with errors and an empty form show their commands too.
    assert!(wrong.contains("rate --max-threads=0 --store=memory: --sla=fast --name=a"), "{wrong}");
    let blank = deck.get("/new?kind=rate").body;
    assert!(blank.contains("The same in a terminal") && blank.contains("rate --name=quickstart-"), "{blank}");
    assert!(deck.get("/new").head.contains("/new?kind=rate"), "a form without its kind is that of a rating");
    let link =
        wrong.split("href=\"/new?kind=rate&amp;").nth(1).and_then(|rest| rest.split('"').next()).expect("a link");
    let again = deck.get(&format!("/new?kind=rate&{}", link.replace("&amp;", "&"))).body;
    assert!(again.contains("value=\"fast\"") && again.contains("--max-threads=0"), "{again}");
    assert!(deck.get("/new?kind=trace").body.contains("trace gen runs/.deck/quickstart.toml --output=runs/"));
    assert!(deck.get("/new?kind=compare").body.contains("compare PLAN --name="));
    assert!(!place.path("runs/a").exists());
}

#[test]
fn a_run_is_started_watched_and_asked() {
    let place = Workplace::new();
    let deck = Deck::start(&place);
    let own = [("name", "first"), ("spec", "busy.toml"), ("store", "memory:"), ("do", "start")];
    let started = deck.post("/new", &[&SHORT[..], &own].concat());
    assert!(started.status == 303 && started.head.contains("/runs/first?show=live"), "{}", started.head);
    let page = deck.until("/runs/first", ">complete<");
    assert!(page.contains("/files/first/report.html") && page.contains("run busy.toml"), "{page}");
    assert!(deck.get("/files/first/report.html").body.contains("</html>"));
    // The live page of a run that has ended is the page of the run.
    let live = deck.get("/runs/first?show=live");
    assert!(live.status == 303 && live.head.to_lowercase().contains("location: /runs/first\r"), "{}", live.head);
    let question = "SELECT operation, count(*) AS n FROM operations GROUP BY ALL ORDER BY n";
    let answer = deck.get(&format!("/runs/first?show=sql&q={}", encoded(question))).body;
    assert!(answer.contains("view_profile") && answer.contains("unpredictable"), "{answer}");
    let lines = "SELECT i, i * i AS square FROM range(10) AS t(i)";
    let drawn = deck.get(&format!("/runs/first?show=sql&q={}", encoded(lines))).body;
    assert!(drawn.contains("<svg") && drawn.contains("square by i"), "{drawn}");
    let csv = deck.get(&format!("/answer?run=first&format=csv&q={}", encoded(lines)));
    assert!(csv.body.starts_with("i,square\n0,0\n1,1\n") && csv.head.contains("attachment"), "{}", csv.body);
    for (statement, expect) in [
        ("SELECT * FROM read_csv('/etc/passwd')", "not allowed"),
        ("SELECT * FROM read_text('/etc/passwd')", "not allowed"),
        ("DROP VIEW operations", "only statements that read"),
        ("COPY operations TO 'x.csv'", "only statements that read"),
        ("SET enable_external_access = true", "only statements that read"),
    ] {
        let refused = deck.get(&format!("/runs/first?show=sql&q={}", encoded(statement))).body;
        assert!(refused.contains(expect), "{statement}: {refused}");
    }
    let export = deck.get("/export?run=first&rows=experiments&format=csv");
    assert!(export.status == 200 && export.body.contains("experiment"), "{}", export.body);
    // A name that is taken is an error beside its field.
    let again = deck.post("/new", &[&SHORT[..], &own].concat());
    assert!(again.status == 200 && again.body.contains("id=\"why-name\""), "{}", again.body);
    // Two runs beside each other.
    place.run(&["run", "busy.toml", "--store=memory:", "--threads=2", "--sessions=300", "--name=second"]).ends();
    let home = deck.get("/?filter=second").body;
    assert!(home.contains("/runs/second") && !home.contains("/runs/first"), "{home}");
    let compared = deck.get("/compare?run=first&run=second").body;
    assert!(compared.contains("analyze compare runs/first runs/second"), "{compared}");
    let page = deck.get("/compare?run=first&run=second&page=1");
    assert!(page.status == 200 && page.body.contains("Comparison of first and second"), "{}", page.body);
}

/// Two clicks on the button start one command, and both lead to its run. A run may be a link to another disk.
#[test]
fn two_clicks_start_one_run() {
    let place = Workplace::new();
    let deck = Deck::start(&place);
    let fields = [("kind", "run"), ("threads", "2"), ("duration", "2s"), ("name", "first"), ("spec", "busy.toml")];
    let fields = [&fields[..], &[("store", "memory:?latency_us=500"), ("do", "start")]].concat();
    let answers: Vec<_> = std::thread::scope(|scope| {
        let clicks: Vec<_> = (0..2).map(|_| scope.spawn(|| deck.post("/new", &fields))).collect();
        clicks.into_iter().map(|click| click.join().expect("an answer")).collect()
    });
    for answer in answers {
        assert!(
            answer.status == 303 && answer.head.contains("/runs/first?show=live"),
            "{} {}",
            answer.head,
            answer.body
        );
    }
    let page = deck.until("/runs/first", ">complete<");
    let said = std::fs::read_to_string(place.path("runs/.deck/first.log")).expect("what it printed");
    assert_eq!((said.matches("$ ").count(), said.matches("[ended with exit code").count()), (1, 1), "{said}");
    assert!(
        page.contains("with 2\u{202f}threads") || page.contains("with 2 threads"),
        "the page has no answer: {page}"
    );
    std::os::unix::fs::symlink(place.path("runs/first"), place.path("runs/linked")).expect("a link");
    assert_eq!(deck.get("/files/linked/report.html").status, 200);
    std::fs::remove_file(place.path("runs/first/report.html")).expect("a report");
    std::os::unix::fs::symlink(place.path("busy.toml"), place.path("runs/first/report.html")).expect("a link");
    assert_eq!(deck.get("/files/first/report.html").status, 404, "a link out of the run is no result");
}

/// A run is stopped as by Ctrl-C, and goes on where it stood, also under a deck that was started later.
#[test]
fn a_rating_is_stopped_and_resumed() {
    let place = Workplace::new();
    let deck = Deck::start(&place);
    let rating = [
        ("kind", "rate"),
        ("name", "r"),
        ("spec", "busy.toml"),
        ("store", "memory:"),
        ("sla", "95% < 100ms, 1% unpredictable, 2s"),
        ("max-threads", "2"),
        ("rating", "socialites"),
        ("search-s", "1"),
        ("do", "start"),
    ];
    let started = deck.post("/new", &rating);
    assert_eq!(started.status, 303, "{}", started.body);
    deck.until("/runs/r?show=live", "operations/s");
    drop(deck);
    let deck = Deck::start(&place);
    assert!(deck.get("/runs/r").body.contains(">running<"), "the run outlives its deck");
    assert_eq!(deck.post("/runs/r", &[("act", "stop")]).status, 303);
    // More clicks send no second interrupt, which would abandon operations.
    for _ in 0..3 {
        let page = deck.get("/runs/r").body;
        assert!(!page.contains("Stop it safely"), "{page}");
        assert_eq!(deck.post("/runs/r", &[("act", "stop")]).status, 303);
    }
    let stopped = deck.until("/runs/r", ">interrupted<");
    assert!(stopped.contains("Resume it") && stopped.contains("rate --resume runs/r"), "{stopped}");
    assert!(!stopped.contains("operations in flight are abandoned"), "{stopped}");
    assert_eq!(deck.post("/runs/r", &[("act", "resume")]).status, 303);
    deck.until("/runs/r", ">complete<");
}

/// A question that asks for too much ends with an error that says so, and the deck answers the next one.
#[test]
fn questions_have_limits() {
    let place = Workplace::new();
    place.run(&["run", "busy.toml", "--store=memory:", "--threads=1", "--sessions=50", "--name=one"]).ends();
    let deck = Deck::start(&place);
    let ask = |statement: &str| deck.get(&format!("/runs/one?show=sql&q={}", encoded(statement))).body;
    let download =
        |statement: &str, format: &str| deck.get(&format!("/answer?run=one&format={format}&q={}", encoded(statement)));
    // One row after the other, without an end.
    let endless = "WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM t) SELECT max(i) FROM t";
    let late = ask(endless);
    assert!(late.contains("role=\"alert\"") && late.contains("stopped after 30 s"), "{late}");
    let large = ask("SELECT len(list(i)) FROM range(500000000) AS t(i)");
    assert!(
        large.contains("role=\"alert\"") && large.contains("the question needs more than 1GiB of memory"),
        "{large}"
    );
    let long = ask("SELECT i FROM range(501) AS t(i)");
    assert!(long.contains("500 rows") && long.contains("the first of more"), "{long}");
    assert!(!ask("SELECT i FROM range(500) AS t(i)").contains("the first of more"));
    let whole = download("SELECT 1 AS a FROM range(1000000)", "csv");
    assert!(whole.status == 200 && whole.body.lines().count() == 1_000_001, "{}", whole.head);
    for format in ["csv", "json"] {
        let cut = download("SELECT 1 AS a FROM range(1000001)", format);
        assert!(cut.status == 422 && cut.body.contains("more than 1,000,000 rows"), "{}", cut.body);
    }
    let heavy = download("SELECT repeat('x', 1000) AS a FROM range(100000)", "csv");
    assert!(heavy.status == 422 && heavy.body.contains("more than 64 MB"), "{}", heavy.body);
    assert!(ask("SELECT 42 AS answer").contains(">42<"), "the deck goes on");
}

/// A plan of two stores, with experiments of this length.
pub fn write_plan(place: &Workplace, seconds: &str) {
    let plan = format!(
        "name = \"pair\"\ntitle = \"Two speeds\"\nspec = \"busy.toml\"\nsla = \"50% < 10s, {seconds}s\"\n\
         search_s = 0.2\nmax_threads = 1\n[axis]\nlabel = \"size\"\npoints = [{{ label = \"small\" }}]\n\
         [[stores]]\nlabel = \"fast\"\nurl = \"memory:\"\n[[stores]]\nlabel = \"slow\"\n\
         url = \"memory:?latency_us=1000\"\n"
    );
    std::fs::write(place.path("pair.toml"), plan).expect("a plan");
}

/// A comparison is running until its process ends, also between two cells. A second process cannot resume it meanwhile.
#[test]
fn a_comparison_is_stopped_and_resumed() {
    let place = Workplace::new();
    write_plan(&place, "1");
    let deck = Deck::start(&place);
    let fields = [("kind", "compare"), ("name", "both"), ("spec", "pair.toml"), ("do", "start")];
    let started = deck.post("/new", &fields);
    assert_eq!(started.status, 303, "{}", started.body);
    let first = deck.until("/runs/both", "Cells");
    assert!(first.contains(">running<") && first.contains("Stop it safely"), "{first}");
    let second = place.run(&["compare", "pair.toml", "--name=both", "--resume"]);
    second.fails(2, &["runs/both", "locked by another coordinator"]);
    let stopped = deck.post("/runs/both", &[("act", "stop")]);
    assert!(stopped.status == 303 && !stopped.head.contains("show=live"), "{}", stopped.head);
    let ended = deck.until("/runs/both", ">interrupted<");
    assert!(ended.contains("Resume it") && ended.contains("compare pair.toml --name=both --resume"), "{ended}");
    let resumed = deck.post("/runs/both", &[("act", "resume")]);
    assert!(resumed.status == 303 && !resumed.head.contains("show=live"), "{}", resumed.head);
    deck.until("/runs/both", ">complete<");
}

/// Another specification is shown, and what else was typed stays.
#[test]
fn a_choice_keeps_the_form() {
    let place = Workplace::new();
    let deck = Deck::start(&place);
    let typed = [("kind", "rate"), ("spec", "busy.toml"), ("store", "memory:?stale=0.5"), ("sla", "90% < 7ms")];
    let own = deck.post("/new", &[&typed[..], &[("name", "mine"), ("suggested", "s"), ("do", "choose")]].concat()).body;
    for part in ["memory:?stale=0.5", "90% &lt; 7ms", "value=\"mine\"", "<option value=\"busy.toml\" selected"] {
        assert!(own.contains(part), "{part}: {own}");
    }
    assert!(own.contains("name = &quot;busy&quot;") || own.contains("members"), "{own}");
    let suggested =
        deck.post("/new", &[&typed[..], &[("name", "s"), ("suggested", "s"), ("do", "choose")]].concat()).body;
    assert!(suggested.contains("value=\"busy-2"), "{suggested}");
    assert!(!place.path("runs").join("mine").exists());
}

#[test]
fn a_comparison_is_started_and_ends() {
    let place = Workplace::new();
    write_plan(&place, "0.3");
    let deck = Deck::start(&place);
    let fields = [("kind", "compare"), ("name", "both"), ("spec", "pair.toml")];
    let checked = deck.post("/new", &[&fields[..], &[("do", "check")]].concat()).body;
    assert!(checked.contains("All is correct") && checked.contains("compare pair.toml --name=both"), "{checked}");
    // An edited plan is a file of the deck's own, which names the same specification.
    let plan = std::fs::read_to_string(place.path("pair.toml")).expect("a plan");
    let check = |text: &str| deck.post("/new", &[&fields[..], &[("text", text), ("do", "check")]].concat()).body;
    let unknown = check(&plan.replace("search_s", "serch_s"));
    assert!(unknown.contains("id=\"why-spec\"") && unknown.contains("serch_s"), "{unknown}");
    let secret = check(&plan.replace("\"memory:\"", "\"postgres://me:hush-hush@127.0.0.1/x\""));
    assert!(secret.contains("write ${VARIABLE} in its place") && !secret.contains("hush-hush"), "{secret}");
    let edited = plan.replace("Two speeds", "Two edited speeds").replace('\n', "\r\n");
    let fields = [&fields[..], &[("text", edited.as_str())]].concat();
    let checked = deck.post("/new", &[&fields[..], &[("do", "check")]].concat()).body;
    assert!(
        checked.contains("All is correct") && checked.contains("compare runs/.deck/both.toml --name=both"),
        "{checked}"
    );
    let started = deck.post("/new", &[&fields[..], &[("do", "start")]].concat());
    assert!(started.status == 303 && started.head.contains("/runs/both"), "{}", started.head);
    let page = deck.until("/runs/both", ">complete<");
    assert!(page.contains("SoAR ") && page.contains("/files/both/comparison.json"), "{page}");
    assert!(page.contains("Open the comparison") && page.contains("fast") && page.contains("slow"), "{page}");
    assert!(deck.get("/files/both/comparison.html").body.contains("Two edited speeds"));
    let stored = std::fs::read_to_string(place.path("runs/.deck/both.toml")).expect("the edited plan");
    assert_eq!(stored, plan.replace("Two speeds", "Two edited speeds").replace("\"busy.toml\"", "\"../../busy.toml\""));
    let cells = deck.get(&format!("/runs/both?show=sql&q={}", encoded("SELECT store FROM cells ORDER BY store"))).body;
    assert!(cells.contains("fast") && cells.contains("slow"), "{cells}");
}
