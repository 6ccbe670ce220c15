//! The other tests require that pages do nothing wrong. This one requires that the browser would notice.

use browser::{Browser, Colours};

const PAGE: &str = "<!DOCTYPE html><html lang=en><title>t</title><main><h1>Title</h1>
<label>name <input id=name></label><button>Press</button><p id=said></p></main>
<style>@media (prefers-color-scheme: dark) { p { color: red } }</style>
<script>
  const say = text => { document.getElementById('said').textContent += text; };
  document.querySelector('button').onclick = () => say(`clicked ${document.getElementById('name').value};`);
  document.onmousemove = event => { if (event.buttons) say('d'); };
  document.onkeydown = event => say(event.key);
</script>";

fn write(folder: &tempfile::TempDir, name: &str, html: &str) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, html).expect("a page");
    format!("file://{}", path.display())
}

#[test]
fn a_page_is_used_as_by_a_user() {
    let Some(browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let page = browser.open(&write(&folder, "good.html", PAGE));
    page.fill("#name", "Ada");
    page.click("button");
    page.wait_for("document.getElementById('said').textContent.includes('clicked Ada;')");
    page.press("Enter");
    page.wait_for("document.getElementById('said').textContent.includes('Enter')");
    page.drag((10.0, 10.0), (100.0, 100.0));
    assert!(page.text("#said").contains('d'));
    page.colours(Colours::Dark);
    assert_eq!(page.evaluate::<String>("getComputedStyle(document.getElementById('said')).color"), "rgb(255, 0, 0)");
    page.resize(390, 844);
    assert_eq!(page.evaluate::<u32>("innerWidth"), 390);
    page.is_quiet("file://");
    page.screenshot(&folder.path().join("page.png"), true);
    assert!(std::fs::read(folder.path().join("page.png")).expect("a picture").starts_with(b"\x89PNG"));
}

#[test]
fn what_a_page_does_wrong_is_found() {
    let Some(browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let bad = "<!DOCTYPE html><html><title>t</title><img src='http://127.0.0.1:9/picture'><script>console.error('there')</script>";
    let page = browser.open(&write(&folder, "bad.html", bad));
    assert!(page.complaints().iter().any(|line| line.contains("there")), "{:?}", page.complaints());
    assert!(page.requests().iter().any(|url| url.starts_with("http://127.0.0.1:9/")), "{:?}", page.requests());
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| page.is_accessible("bad")));
    assert!(found.is_err(), "a picture without words is no violation");
}
