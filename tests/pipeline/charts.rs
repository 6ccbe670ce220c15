//! Uses the pages of runs as a reader does: points at charts, hides lines, zooms, sorts, follows points, with mouse and
//! keyboard, in light and dark, on a phone. A page complains about nothing and requests nothing.

use std::path::Path;

use browser::{Browser, Colours, Page};

use crate::support::Workplace;

/// What does not fit: elements that leave the page, or whose contents leave them. What scrolls may be wider.
pub(crate) const CUT: &str = r"[...document.querySelectorAll('body *')]
  .filter(e => e.getClientRects().length && !e.closest('svg, .u-over, .unseen, .wide-table, textarea, input, select'))
  .filter(e => { const box = e.getBoundingClientRect(); return box.left < -1 || box.right > innerWidth + 1
    || (!e.closest('.plot') && e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1); })
  .map(e => `${e.localName}.${e.className}: ${e.textContent.slice(0, 40)}`)";

/// Whether all charts have the width of their places: they follow a window that changes, a little later.
pub(crate) const DRAWN: &str = "[...document.querySelectorAll('.plot')]\
  .every(p => Math.abs(p.clientWidth - p.querySelector('canvas').clientWidth) < 2)";

/// The pixels of a canvas that are not transparent: of a copy, because browsers warn of canvases that are read often.
const PAINTED: &str = "(c => {
  const copy = new OffscreenCanvas(c.width, c.height).getContext('2d', { willReadFrequently: true });
  copy.drawImage(c, 0, 0);
  return copy.getImageData(0, 0, c.width, c.height).data.filter((v, i) => i % 4 == 3 && v > 0).length;
})";

fn address(place: &Workplace, page: &str) -> String {
    format!("file://{}", place.path(page).display())
}

fn opened<'a>(browser: &'a Browser, place: &Workplace, page: &str) -> Page<'a> {
    let page = browser.open(&address(place, page));
    page.wait_for(
        "document.querySelectorAll('.chart canvas').length === document.querySelectorAll('.chart-data').length",
    );
    page
}

/// Requires that a page is readable for everybody, in light and dark, on a desk and a phone, and quiet.
fn is_good(page: &Page<'_>, name: &str) {
    for (width, height) in [(1280, 900), (390, 844)] {
        page.resize(width, height);
        page.wait_for(DRAWN);
        assert_eq!(page.evaluate::<Vec<String>>(CUT), Vec::<String>::new(), "{name}, {width} wide");
        for colours in [Colours::Light, Colours::Dark] {
            page.colours(colours);
            page.is_accessible(&format!("{name}, {width} wide, {colours:?}"));
            keep(page, &format!("{name}-{width}-{colours:?}").to_lowercase());
        }
    }
    page.colours(Colours::Light);
    page.resize(1280, 900);
    page.is_quiet("file://");
}

/// Keeps a picture of the whole page, if somebody wants to look at it, and a small one of what the window shows.
fn keep(page: &Page<'_>, name: &str) {
    if let Some(folder) = std::env::var_os("ENCORE_SCREENSHOTS") {
        page.screenshot(&Path::new(&folder).join(format!("{name}.png")), true);
        page.screenshot(&Path::new(&folder).join(format!("{name}.webp")), false);
    }
}

/// The middle of a plot, and a share of its width and height from there.
fn in_plot(page: &Page<'_>, chart: &str, across: f64, up: f64) -> (f64, f64) {
    let [left, top, width, height] = page.place_of(&format!("{chart} .u-over"));
    (left + width * across, top + height * (1.0 - up))
}

#[test]
fn a_report_is_used() {
    let Some(browser) = Browser::start() else { return };
    let place = Workplace::new();
    let rate =
        ["rate", "busy.toml", "--store", "memory:?latency_us=300&stale=0.2", "--name", "r", "--sessions", "60000"];
    let how = ["--max-threads", "4", "--sla", "50% < 100ms, 60% unpredictable, 1s", "--search-s", "0.5"];
    let said = place.run(&[&rate[..], &how].concat()).stdout();
    assert!(said.contains("report    runs/r/report.html"), "{said}");
    let page = opened(&browser, &place, "runs/r/report.html");
    is_good(&page, "report");

    // A chart is as wide as its page, and painted.
    let [_, _, width, _] = page.place_of(".plot");
    assert!(width > 1100.0, "{width}");
    assert!(page.evaluate::<u32>(&format!("{PAINTED}(document.querySelector('.plot canvas'))")) > 2_000);

    // The crosshair has the values of all series, by mouse and by keyboard.
    let over_time = "figure:has(.plot[aria-label^='Percentiles of response times'])";
    page.point_at(in_plot(&page, over_time, 0.5, 0.5));
    let read = page.text(&format!("{over_time} .readout"));
    assert!(["seconds", "p50: ", "p95: ", "p99: ", "max: "].iter().all(|part| read.contains(part)), "{read}");
    assert!(read.contains('\u{202f}') && read.contains("ms"), "{read}");
    page.focus(&format!("{over_time} .plot"));
    page.press("Home");
    let first = page.text(&format!("{over_time} .readout"));
    page.press("ArrowRight");
    let second = page.text(&format!("{over_time} .readout"));
    assert!(first.contains("p50: ") && second.contains("p50: ") && first != second, "{first} {second}");

    // A line that the legend hides is in no crosshair; the keyboard shows it again.
    let key = format!("{over_time} .key:first-child");
    let painted = format!("{PAINTED}(document.querySelector(`{over_time} canvas`))");
    let before: u32 = page.evaluate(&painted);
    page.click(&key);
    assert_eq!(page.count(&format!("{key}[aria-pressed=false]")), 1);
    page.wait_for(&format!("{painted} !== {before}"));
    page.point_at(in_plot(&page, over_time, 0.5, 0.5));
    assert!(!page.text(&format!("{over_time} .readout")).contains("p50: "));
    page.focus(&key);
    page.press("Space");
    assert_eq!(page.count(&format!("{key}[aria-pressed=true]")), 1);

    // A drag zooms, and the button undoes it.
    let reset = format!("{over_time} .reset");
    assert_eq!(page.text(&reset), "");
    page.drag(in_plot(&page, over_time, 0.3, 0.5), in_plot(&page, over_time, 0.6, 0.5));
    page.wait_for(&format!("document.querySelector(`{over_time} .is-zoomed`)"));
    assert_eq!(page.text(&reset), "Reset zoom");
    page.focus(&format!("{over_time} .plot"));
    page.press("Home");
    assert_ne!(page.text(&format!("{over_time} .readout")), first, "the first place of the zoomed window");
    page.click(&reset);
    page.wait_for(&format!("!document.querySelector(`{over_time} .is-zoomed`)"));

    // A finger that moves sideways zooms too; one that moves up scrolls the page.
    page.swipe(in_plot(&page, over_time, 0.3, 0.5), in_plot(&page, over_time, 0.6, 0.5));
    page.wait_for(&format!("document.querySelector(`{over_time} .is-zoomed`)"));
    page.click(&reset);
    page.wait_for(&format!("!document.querySelector(`{over_time} .is-zoomed`)"));
    let before: f64 = page.evaluate("scrollY");
    page.swipe(in_plot(&page, over_time, 0.5, 0.2), in_plot(&page, over_time, 0.6, 0.9));
    page.wait_for(&format!("scrollY > {before} && !document.querySelector(`{over_time} .is-zoomed`)"));

    // A point leads to the row of its experiment.
    let by_load = "figure:has(.plot[aria-label^='Throughput by'])";
    page.focus(&format!("{by_load} .plot"));
    page.press("Home");
    assert!(page.text(&format!("{by_load} .readout")).contains("experiment "));
    page.press("Enter");
    page.wait_for("location.hash.startsWith('#experiment-') && document.querySelector(':target') !== null");
    // Reads and writes show the operations that decide the SLA first, and offer the others.
    let reads = "figure:has(.plot[aria-label^='Response times by percentile'])";
    assert!(page.count(&format!("{reads} .key")) > 0);

    sorts(&page);
    page.is_quiet("file://");
}

/// A table of the page sorts by mouse and by keyboard, and keeps its total at the end.
fn sorts(page: &Page<'_>) {
    let table = "table:has(.total)";
    let column = |number: usize| -> Vec<String> {
        page.evaluate(&format!(
            "[...document.querySelectorAll(`{table} tbody tr`)].map(r => r.cells[{number}].innerText)"
        ))
    };
    let count = |text: &String| text.replace('\u{202f}', "").parse::<u64>().expect("a count");
    page.click(&format!("{table} th:nth-child(2) button"));
    assert_eq!(page.count(&format!("{table} th:nth-child(2)[aria-sort=descending]")), 1);
    let sorted = column(1);
    let operations: Vec<u64> = sorted[..sorted.len() - 1].iter().map(count).collect();
    assert!(operations.len() > 3 && operations.is_sorted_by(|a, b| a >= b), "{operations:?}");
    assert_eq!(column(0).last().map(String::as_str), Some("all"));
    page.focus(&format!("{table} th:nth-child(1) button"));
    page.press("Enter");
    assert_eq!(page.count(&format!("{table} th[aria-sort]")), 1);
    let names = column(0);
    assert!(names[..names.len() - 1].is_sorted(), "{names:?}");
    assert_eq!(names.last().map(String::as_str), Some("all"));
}

/// On paper, and without scripts, a page has its pictures.
#[test]
fn pictures_stay_where_no_script_runs() {
    let Some(browser) = Browser::start() else { return };
    let place = Workplace::new();
    let run = [
        "run",
        "busy.toml",
        "--store",
        "memory:?latency_us=300",
        "--threads",
        "2",
        "--sessions",
        "3000",
        "--name",
        "s",
    ];
    place.run(&[&run[..], &["--sla", "50% < 100ms, 1s"]].concat()).stdout();
    let page = opened(&browser, &place, "runs/s/report.html");
    let seen = |selector: &str| -> bool {
        page.evaluate(&format!("[...document.querySelectorAll('{selector}')].some(e => e.getClientRects().length > 0)"))
    };
    assert!(seen(".live canvas") && !seen(".is-live > svg"));
    page.as_printed(true);
    assert!(!seen(".live canvas") && seen(".is-live > svg.wide") && !seen("nav") && !seen("details"));
    page.resize(718, 1000);
    keep(&page, "report-printed");
    page.as_printed(false);
    page.scripts(false);
    page.go(&address(&place, "runs/s/report.html"));
    assert!(!seen("canvas") && seen(".chart > svg.wide") && !seen("th button"));
    page.resize(390, 844);
    assert!(seen(".chart > svg.narrow") && !seen(".chart > svg.wide"));
}

/// The bars of a comparison lead to the pages of their runs.
#[test]
fn a_comparison_is_used() {
    let Some(browser) = Browser::start() else { return };
    let place = Workplace::new();
    let plan = "name = \"c\"\ntitle = \"Two stores\"\nspec = \"busy.toml\"\nsla = \"50% < 100ms, 90% unpredictable, 0.3s\"\n\
                search_s = 0.2\nmax_threads = 2\nrating = \"soar\"\n[axis]\nlabel = \"members\"\n\
                [[axis.points]]\nlabel = \"few\"\nset = [\"data.members=100\"]\n\
                [[axis.points]]\nlabel = \"more\"\nset = [\"data.members=200\"]\n\
                [[stores]]\nlabel = \"true\"\nurl = \"memory:?latency_us=300\"\n\
                [[stores]]\nlabel = \"stale\"\nurl = \"memory:?latency_us=300&stale=0.2\"\n";
    std::fs::write(place.path("plan.toml"), plan).expect("the plan is written");
    place.run(&["compare", "plan.toml", "--set", "sessions=30000"]).stdout();
    let page = opened(&browser, &place, "runs/c/comparison.html");
    is_good(&page, "comparison");
    page.point_at(in_plot(&page, "figure", 0.25, 0.5));
    let read = page.text(".readout");
    assert!(read.contains("few") && read.contains("true: ") && read.contains("stale: "), "{read}");
    page.focus(".plot");
    page.press("Home");
    page.press("Enter");
    page.wait_for("location.pathname.endsWith('/few-true/report.html')");
    page.wait_for("document.querySelectorAll('.live').length > 3");
    page.is_quiet("file://");
}
