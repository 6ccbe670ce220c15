//! Loads that vary over time, from the specification to the page.

use std::path::Path;

use crate::support::Workplace;

/// The ready loads of ycsb-d-2016 come out in a chart of the wanted and the achieved rate. The first
/// two seconds of each are enough.
#[test]
fn the_page_shows_the_wanted_and_the_achieved_rate() {
    let place = Workplace::new();
    for (shape, first) in [("ramp", "100 to 123"), ("sine", "400 to 523"), ("spike", "200")] {
        let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces");
        let spec = traces.join(format!("ycsb-d-2016-{shape}.toml")).display().to_string();
        let short = ["--set", "data.records=1000", "--duration", "2s", "--threads", "4", "--name", shape];
        let said = place.run(&[&["run", &spec, "--store", "memory:"][..], &short].concat()).ends();
        assert!(said.contains("service time: p95"), "{shape}: {said}");
        let page = std::fs::read_to_string(place.path(&format!("runs/{shape}/report.html"))).expect("a page");
        assert!(page.contains("Wanted and achieved rate") && page.contains("both limits (M)"), "{shape}");
        let run = format!("runs/{shape}");
        let ask = |sql: &str| place.run(&["analyze", "sql", &run, sql, "--format", "csv"]).succeeds();
        let full = "to_s <= (SELECT counted_ns / 1e9 FROM experiments)";
        let slices = ask(&format!("SELECT count(*) AS n FROM timeline WHERE {full}"));
        let slices: usize = slices.trim().trim_start_matches("n\n").parse().expect("a number");
        for series in ["wanted", "achieved"] {
            let points = page.matches(&format!("<title>{series} ")).count();
            assert!(points == slices && slices >= 10, "{shape}: {points} of {series}, {slices} slices");
        }
        // The rate is that of the specification.
        let bounds: Vec<f64> = first.split(" to ").map(|rate| rate.parse().expect("a rate")).collect();
        let wanted = ask(&format!("SELECT min(due_per_s) AS low, max(due_per_s) AS high FROM timeline WHERE {full}"));
        let wanted: Vec<f64> = wanted.lines().nth(1).expect("a row").split(',').flat_map(str::parse).collect();
        let (low, high) = (bounds[0], bounds[bounds.len() - 1]);
        assert!(wanted.len() == 2 && wanted[0] >= low - 1e-6 && wanted[1] <= high + 1.0, "{shape}: {wanted:?}");
        assert!(wanted[0] <= low + 10.0 && wanted[1] >= high - 10.0, "{shape}: {wanted:?}");
    }
}
