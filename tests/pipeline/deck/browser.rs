//! The way of a newcomer through the deck, in a real browser.

use serde_json::json;

use super::Deck;
use super::protocol::Browser;
use crate::reports::browser;
use crate::support::Workplace;

/// Keeps a picture of the page where ENCORE_DECK_PICTURES names a folder, for people to look at.
fn keep(browser: &mut Browser, name: &str) {
    let Some(folder) = std::env::var_os("ENCORE_DECK_PICTURES") else { return };
    for (look, scheme, width) in [("light", "light", 1280), ("dark", "dark", 1280), ("narrow", "light", 390)] {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        browser.call("Emulation.setEmulatedMedia", json!({ "features": features }));
        let size = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        browser.call("Emulation.setDeviceMetricsOverride", size);
        let picture = browser.picture();
        let path = std::path::Path::new(&folder).join(format!("{name}-{look}.png.base64"));
        std::fs::write(path, picture).expect("the picture is written");
    }
    browser.call("Emulation.setEmulatedMedia", json!({ "features": [] }));
    browser.call("Emulation.clearDeviceMetricsOverride", json!({}));
}

#[test]
fn a_newcomer_rates_sqlite() {
    let Some(program) = browser() else { return };
    let place = Workplace::alone();
    let deck = Deck::start(&place);
    let mut page = Browser::start(program, &place.path("profile"));
    page.open(&deck.url());
    page.until("document.body.innerText.includes('There is no run yet')");
    assert_eq!(page.value("location.search"), "", "the key is not in the address bar");
    keep(&mut page, "empty");
    page.click("main a.button.main");
    page.until("document.querySelector('#field-sla')");
    // One field is wrong, and the page says why.
    page.fill("#field-sla", "95% < soon");
    page.fill("#field-name", "first");
    page.click("button[value=start]");
    page.until("document.querySelector('#why-sla')");
    let why = page.value("document.querySelector('#why-sla').innerText").to_string();
    assert!(why.contains("soon"), "{why}");
    assert_eq!(page.value("document.querySelector('#field-sla').getAttribute('aria-invalid')"), "true");
    keep(&mut page, "wrong");
    page.fill("#field-sla", "95% < 1s, 1% unpredictable, 3s");
    page.value("document.querySelector('#field-rating').value = 'socialites'");
    page.value("document.querySelectorAll('details').forEach((part) => { part.open = true; })");
    page.fill("#field-sessions", "30000");
    page.fill("#field-max-threads", "2");
    page.fill("#field-search-s", "2");
    page.click("button[value=start]");
    page.until("location.search === '?show=live' && document.querySelector('.tiles')");
    keep(&mut page, "live");
    // A reload in mid-run shows the same run again.
    page.call("Page.reload", json!({}));
    page.until("document.querySelector('[data-events]') || location.search === ''");
    page.until("location.pathname === '/runs/first' && location.search === ''");
    page.until("document.querySelector('a[href=\"/files/first/report.html\"]')");
    keep(&mut page, "run");
    page.click("a[href='/files/first/report.html']");
    page.until("location.pathname.endsWith('/report.html') && document.querySelector('svg')");
    page.open(&format!("http://{}/runs/first?show=sql", deck.address));
    page.until("document.querySelector('#q')");
    page.fill("#q", "SELECT experiment, threads, throughput_per_s FROM experiments ORDER BY experiment");
    page.click("form button.main");
    page.until("document.querySelector('td') && location.search.includes('throughput_per_s')");
    keep(&mut page, "sql");
    let arguments = ["run", "busy.toml", "--store=memory:", "--threads=2", "--sessions=300", "--name=second"];
    place.run(&arguments).ends();
    page.open(&format!("http://{}/", deck.address));
    page.until("document.querySelectorAll('input[name=run]').length === 2");
    keep(&mut page, "home");
    page.click("input[value=first]");
    page.click("input[value=second]");
    page.click("form[action='/compare'] button.main");
    page.until("location.pathname === '/compare' && document.querySelector('a.button.main')");
    page.click("a.button.main");
    page.until("document.title.startsWith('Comparison of') && document.querySelector('svg')");
    keep(&mut page, "comparison");
    assert_eq!(page.console, Vec::<String>::new());
    let own = format!("http://{}/", deck.address);
    let foreign: Vec<_> = page.requested.iter().filter(|url| !url.starts_with(&own)).collect();
    let foreign: Vec<_> =
        foreign.into_iter().filter(|url| !url.starts_with("data:") && *url != "about:blank").collect();
    assert_eq!(foreign, Vec::<&String>::new());
}
