//! The way of a newcomer through the deck, in a real browser.

use std::process::Stdio;

use browser::{Browser, Colours, Page};

use super::Deck;
use super::pages::write_plan;
use crate::charts::{CUT, DRAWN};
use crate::support::Workplace;

/// Looks at a page in light, dark and narrow: axe-core finds nothing that keeps people out. Pictures stay where
/// ENCORE_SCREENSHOTS names a folder.
fn is_good(page: &Page<'_>, name: &str) {
    for (look, colours, width) in
        [("light", Colours::Light, 1280), ("dark", Colours::Dark, 1280), ("narrow", Colours::Light, 390)]
    {
        page.colours(colours);
        page.resize(width, 900);
        page.wait_for(DRAWN);
        assert_eq!(page.evaluate::<Vec<String>>(CUT), Vec::<String>::new(), "{name}, {look}");
        page.is_accessible(&format!("{name}, {look}"));
        if let Some(folder) = std::env::var_os("ENCORE_SCREENSHOTS") {
            page.screenshot(&std::path::Path::new(&folder).join(format!("deck-{name}-{look}.webp")), true);
        }
    }
    page.resize(1280, 900);
}

#[test]
fn a_newcomer_rates_sqlite() {
    let Some(browser) = Browser::start() else { return };
    let place = Workplace::alone();
    let deck = Deck::start(&place);
    let page = browser.open(&deck.url());
    page.until("document.body.innerText.includes('There is no run yet')");
    assert_eq!(page.evaluate::<String>("location.search"), "", "the key is not in the address bar");
    is_good(&page, "empty");
    page.click("main a.button.main");
    page.until("document.querySelector('#field-sla')");
    // One field is wrong, and the page says why.
    page.fill("#field-sla", "95% < soon");
    page.fill("#field-name", "first");
    page.click("button[value=start]");
    page.until("document.querySelector('#why-sla')");
    let why = page.text("#why-sla");
    assert!(why.contains("soon"), "{why}");
    assert_eq!(page.count("#field-sla[aria-invalid=true]"), 1);
    is_good(&page, "wrong");
    page.fill("#field-sla", "95% < 1s, 1% unpredictable, 3s");
    page.evaluate::<String>("document.querySelector('#field-rating').value = 'socialites'");
    page.evaluate::<Option<bool>>("document.querySelectorAll('details').forEach(part => { part.open = true; })");
    page.fill("#field-sessions", "30000");
    page.fill("#field-max-threads", "2");
    page.fill("#field-search-s", "2");
    page.click("button[value=start]");
    page.until("location.search === '?show=live' && document.querySelector('.tiles')");
    let times =
        "[...document.querySelectorAll('.tile b')].map(tile => tile.innerText).filter(text => /[mµ]?s$/.test(text))";
    page.until(&format!("{times}.length >= 4 && {times}.every(text => /^[\\d.]+\\u202f(ns|µs|ms|s)$/.test(text))"));
    // A reload in mid-run shows the same run again.
    page.reload();
    page.until("document.querySelector('[data-events]') || location.search === ''");
    page.until("location.pathname === '/runs/first' && location.search === ''");
    page.until("document.querySelector('a[href=\"/files/first/report.html\"]')");
    let commands = page.text("main");
    assert!(commands.contains("./encore rate --sessions=30000"), "{commands}");
    is_good(&page, "run");
    page.click("a[href='/files/first/report.html']");
    page.until("location.pathname.endsWith('/report.html') && document.querySelector('.plot .u-over')");
    let [left, top, width, height] = page.place_of(".plot .u-over");
    let middle = top + height / 2.0;
    page.drag((left + width * 0.1, middle), (left + width * 0.9, middle));
    page.until("document.querySelector('.live.is-zoomed')");
    page.go(&format!("http://{}/runs/first?show=sql", deck.address));
    page.until("document.querySelector('#q')");
    page.fill("#q", "SELECT experiment, threads, throughput_per_s FROM experiments ORDER BY experiment");
    page.click("form button.main");
    page.until("document.querySelector('td') && location.search.includes('throughput_per_s')");
    is_good(&page, "sql");
    let arguments = ["run", "busy.toml", "--store=memory:", "--threads=2", "--sessions=300", "--name=second"];
    place.run(&arguments).ends();
    page.go(&format!("http://{}/", deck.address));
    page.until("document.querySelectorAll('input[name=run]').length === 2");
    is_good(&page, "home");
    // Times sort as times.
    let began = "[...document.querySelectorAll('table tr')].map(row => row.cells[COLUMN]?.innerText ?? '')";
    let column = "[...document.querySelectorAll('thead th')].findIndex(head => head.innerText.includes('began'))";
    page.evaluate::<u8>(&format!(
        "(window.column = {column}, document.querySelectorAll('tbody tr').forEach((row, at) => {{ \
         row.cells[window.column].innerText = `2026-0${{at + 2}}-01 10:00 UTC`; }}), 1)"
    ));
    let began = began.replace("COLUMN", "window.column");
    for _ in 0..2 {
        page.evaluate::<u8>(
            "(document.querySelectorAll('thead th')[window.column].querySelector('button').click(), 1)",
        );
    }
    let descends = page.evaluate::<Vec<String>>(&began);
    let rows: Vec<&String> = descends.iter().filter(|text| text.starts_with("2026")).collect();
    let ascending =
        page.evaluate::<String>("document.querySelectorAll('thead th')[window.column].getAttribute('aria-sort')");
    let is_sorted = if ascending == "ascending" { rows.is_sorted() } else { rows.is_sorted_by(|a, b| a >= b) };
    assert!(rows.len() == 2 && is_sorted, "{ascending}: {rows:?}");
    page.reload();
    page.until("document.querySelectorAll('input[name=run]').length === 2");
    page.click("input[value=first]");
    page.click("input[value=second]");
    page.click("form[action='/compare'] button.main");
    page.until("location.pathname === '/compare' && document.querySelector('a.button.main')");
    is_good(&page, "compare");
    for kind in ["run", "compare", "trace"] {
        let selected = page.evaluate::<String>("location.href");
        page.go(&format!("http://{}/new?kind={kind}", deck.address));
        page.until("document.querySelector('form button.main')");
        is_good(&page, &format!("form-{kind}"));
        page.go(&selected);
        page.until("document.querySelector('a.button.main')");
    }
    let selected = page.evaluate::<String>("location.href");
    write_plan(&place, "0.3");
    place.run(&["compare", "pair.toml", "--name=both"]).ends();
    page.go(&format!("http://{}/runs/both", deck.address));
    page.until("document.querySelector('main h1')");
    is_good(&page, "comparison");
    // A browser complains of the status of a page that is not there, so it has a tab of its own.
    let other = browser.open(&deck.url());
    other.go(&format!("http://{}/runs/nowhere", deck.address));
    other.until("document.querySelector('main')");
    is_good(&other, "error");
    page.go(&selected);
    page.until("document.querySelector('a.button.main')");
    page.click("a.button.main");
    page.until("document.title.startsWith('Comparison of') && document.querySelector('svg')");
    page.is_quiet(&format!("http://{}/", deck.address));
}

/// The live page shows each new second without loading again: a chart keeps its zoom, and gets the new data. A reload
/// shows the same run.
#[test]
fn a_live_page_goes_on() {
    let Some(browser) = Browser::start() else { return };
    let place = Workplace::alone();
    let deck = Deck::start(&place);
    let run = [
        "run",
        "busy.toml",
        "--store=memory:?latency_us=500",
        "--threads=4",
        "--duration=40s",
        "--rate=400",
        "--name=long",
    ];
    let mut child = place.command(&run).stdout(Stdio::null()).spawn().expect("the run starts");
    deck.until("/runs/long?show=live", "operations/s");
    let page = browser.open(&deck.url());
    page.go(&format!("http://{}/runs/long?show=live", deck.address));
    let elapsed = "Number(document.querySelector('progress[aria-label=Time]').value)";
    let goes_on = || {
        page.until("document.querySelector('#live-rate-title, [data-events] .chart .u-over')");
        page.evaluate::<u8>(&format!("(window.began = {elapsed}, document.querySelector('.chart').kept = true, 1)"));
        page.until(&format!("window.began > 0 && {elapsed} >= window.began + 2"));
        assert!(page.evaluate::<bool>("document.querySelector('.chart').kept === true"), "the chart was made anew");
        page.evaluate::<f64>("window.began")
    };
    let first = goes_on();
    is_good(&page, "live");
    // New figures keep the zoom of a chart.
    let [left, top, width, height] = page.place_of(".plot .u-over");
    page.drag((left + width * 0.1, top + height / 2.0), (left + width * 0.9, top + height / 2.0));
    page.until("document.querySelector('.live.is-zoomed')");
    page.point_at((1.0, 1.0));
    goes_on();
    assert_eq!(page.count(".live.is-zoomed"), 1, "the zoom is lost");
    // Who walks along the points keeps the place, while the figures go on.
    page.focus(".chart .plot");
    page.press("ArrowRight");
    goes_on();
    assert!(page.evaluate::<bool>("document.activeElement.classList.contains('plot')"), "the chart has lost the focus");
    page.press("Escape");
    page.evaluate::<u8>("(document.activeElement.blur(), 1)");
    page.reload();
    page.until("window.began === undefined && document.querySelector('[data-events] .chart .u-over')");
    let second = goes_on();
    assert!(second > first, "{second} s after {first} s");
    // It leads to the page of the run at the end.
    page.until("location.search === '' && document.querySelector('a[href=\"/files/long/report.html\"]')");
    child.wait().expect("the run ends");
    page.is_quiet(&format!("http://{}/", deck.address));
}

/// A rating is stopped and resumed by the buttons of its page. The page of a deck that is gone says so.
#[test]
fn a_rating_is_stopped_and_resumed_by_hand() {
    let Some(browser) = Browser::start() else { return };
    let place = Workplace::alone();
    let deck = Deck::start(&place);
    let address = deck.address.clone();
    let rate = [
        "rate",
        "busy.toml",
        "--store=memory:?latency_us=500",
        "--sla=95% < 100ms, 1% unpredictable, 3s",
        "--rating=socialites",
        "--search-s=1",
        "--max-threads=4",
        "--name=r",
    ];
    let mut child =
        place.command(&rate).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the rating starts");
    deck.until("/runs/r?show=live", "experiment-2");
    let page = browser.open(&deck.url());
    page.go(&format!("http://{address}/runs/r?show=live"));
    // The experiments that have ended are links to their rows, in the table and in the chart.
    page.until("document.querySelector('a[href=\"/runs/r#experiment-1\"]')");
    page.until("document.querySelector('#live-search-title, [data-events] .chart .u-over')");
    // A link that has the focus keeps it while pictures come.
    page.focus("a[href='/runs/r#experiment-1']");
    page.evaluate::<u8>("(document.activeElement.kept = true, 1)");
    page.until(
        "document.activeElement.getAttribute('href') === '/runs/r#experiment-1' && !document.activeElement.kept",
    );
    drop(deck);
    page.until("document.querySelector('[data-connection]').innerText.includes('trying again')");
    // A deck that was started again has another key.
    let deck = Deck::with(&place, &[&format!("--listen={address}")], None);
    page.until("document.querySelector('[data-connection]').innerText.includes('open the URL that it has printed')");
    page.go(&deck.url());
    page.go(&format!("http://{address}/runs/r?show=live"));
    page.click("button[value=stop]");
    page.until("document.body.innerText.includes('Stopping') || document.querySelector('button[value=resume]')");
    child.wait().expect("the rating ends");
    page.go(&format!("http://{address}/runs/r"));
    page.until("document.querySelector('button[value=resume]')");
    page.click("button[value=resume]");
    page.until("location.search === '?show=live' || document.body.innerText.includes('complete')");
    page.until("document.querySelector('a[href=\"/files/r/report.html\"]')");
}
