//! Requires that a page shows everything that is on it, on a desktop, a tablet, a phone and paper.
//!
//! A measuring page holds the page in frames of these widths, and a script in it looks for contents
//! that are wider than their box, or outside their picture. The script of the page is left out: charts.rs looks at what it draws.

use std::path::Path;

use crate::reports::open;

/// Paper of A4 has 718 pixels between its margins.
const WIDTHS: [(&str, u32); 5] = [("desktop", 1280), ("laptop", 1024), ("tablet", 768), ("phone", 390), ("paper", 718)];

const MEASURE: &str = r"
function measure(frame, found) {
  const page = frame.contentDocument.body, width = frame.contentDocument.documentElement.clientWidth;
  const report = (e, why) => found.push(`${frame.name}: ${e.tagName} ${e.className.baseVal ?? e.className} ${why}: ${e.textContent.trim().slice(0, 60)}`);
  const seen = { table: 0, text: 0, h2: 0 };
  for (const e of page.querySelectorAll('*')) {
    if (e.getClientRects().length === 0) continue;
    const box = e.getBoundingClientRect(), picture = e.closest('svg')?.getBoundingClientRect();
    if (e.localName in seen) seen[e.localName] += 1;
    if (e.localName === 'text' && e.textContent.trim()) {
      const leaves = box.left < picture.left - 1 || box.right > picture.right + 1
        || box.top < picture.top - 1 || box.bottom > picture.bottom + 1;
      if (leaves) report(e, 'leaves its picture');
      if (e.textContent.includes('…')) report(e, 'is shortened');
    }
    if (!picture && e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1)
      report(e, `is ${e.scrollWidth} wide in ${e.clientWidth}`);
    if ((!picture || e.localName === 'svg') && (box.left < -1 || box.right > width + 1)) report(e, 'leaves the page');
  }
  for (const [kind, count] of Object.entries(seen)) if (count === 0) found.push(`${frame.name}: no ${kind}`);
}
addEventListener('load', () => {
  const found = [];
  for (const frame of document.querySelectorAll('iframe')) measure(frame, found);
  document.body.textContent = `FOUND ${found.length}\n${found.join('\n')}\nEND`;
});
";

/// Requires that nothing on the page is cut at any width.
pub fn nothing_is_cut(browser: &str, page: &Path, folder: &Path) {
    let html = without_script(&std::fs::read_to_string(page).expect("a page"));
    let frames = WIDTHS.map(|(name, width)| {
        let shown = if name == "paper" { printed(&html) } else { html.clone() };
        let shown = shown.replace('&', "&amp;").replace('"', "&quot;");
        format!("<iframe name={name} style='width:{width}px;height:900px;border:0' srcdoc=\"{shown}\"></iframe>\n")
    });
    let measuring = folder.join("measuring.html");
    let whole = format!("<!DOCTYPE html><meta charset=utf-8><body>{}<script>{MEASURE}</script>", frames.concat());
    std::fs::write(&measuring, whole).expect("the measuring page is written");
    let seen = open(browser, &measuring, folder);
    let found = seen.dom.split("FOUND ").nth(1).and_then(|rest| rest.split("END").next());
    let found = found.unwrap_or_else(|| panic!("nothing was measured: {:?}", seen.console));
    assert_eq!(found.trim(), "0", "{}", page.display());
}

/// The page as readers without scripts see it: with its pictures.
fn without_script(html: &str) -> String {
    let (before, rest) = html.split_once("<script id=\"page-script\">").expect("a script");
    let (_, after) = rest.split_once("</script>").expect("the end of the script");
    format!("{before}{after}")
}

/// The page with the rules for paper in place of those for screens.
fn printed(html: &str) -> String {
    let (style, rest) = html.split_once("</style>").expect("a style sheet");
    let style = style.replace("screen", "\u{1}").replace("print", "screen").replace('\u{1}', "print");
    format!("{style}</style>{rest}")
}
