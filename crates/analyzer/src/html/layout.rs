//! The layout that all pages share: their shell with design and script, sections with a table of contents, charts, tables.

use maud::{DOCTYPE, Markup, PreEscaped, html};
pub use schemas::program::quoted;

use super::numbers::{spaced, spaced_text};
use crate::chart::{Chart, ChartError, HEAT_COLOURS, Shape};

/// A part of a page, with an entry in its table of contents.
pub struct Section {
    title: String,
    content: Markup,
}

/// A part of the page.
pub fn section(title: &str, content: Markup) -> Section {
    Section { title: title.to_string(), content }
}

/// The script of all pages: it makes charts live and tables sortable, and requests nothing. A page that changes calls
/// `encore.charts(element)` and `encore.tables(element)` for its new parts, and `encore.update(script, data)` for the
/// new data of a chart, with its block `script.chart-data`.
pub const SCRIPT: &str = include_str!(concat!(env!("OUT_DIR"), "/page.js"));

/// What a policy names the script by.
pub const SCRIPT_HASH: &str = concat!("'sha256-", env!("ENCORE_SCRIPT_SHA256"), "'");

/// The policy of a page that is a file: it loads nothing, and runs no script but Encore's.
pub fn policy() -> String {
    format!(
        "default-src 'none'; script-src {SCRIPT_HASH}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
         form-action 'none'"
    )
}

/// A whole page around its body: design, policy, script. A page from a server needs a policy of its own for what it
/// requests; [`SCRIPT_HASH`] belongs into its `script-src`.
pub fn shell(title: &str, policy: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(policy);
                title { (title) " – Encore" }
                // Browsers ask for an icon otherwise.
                link rel="icon" href="data:,";
                style { (PreEscaped(style())) }
            }
            body {
                (body)
                // At the end, so that the page is seen before the script is read.
                script id="page-script" { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

/// The whole page; sections without content are omitted.
pub fn page(title: &str, head: &Markup, sections: &[Section]) -> String {
    let sections: Vec<&Section> = sections.iter().filter(|section| !section.content.0.is_empty()).collect();
    let body = html! {
        header { (head) }
        nav aria-label="Contents" {
            @for section in &sections { a href=(format!("#{}", slug(&section.title))) { (section.title) } }
        }
        main {
            @for section in &sections {
                section { h2 id=(slug(&section.title)) { (section.title) } (section.content) }
            }
        }
    };
    shell(title, &policy(), &body)
}

/// The style sheet. The rows of a table become cards where the table would not fit: those of a
/// small table on a phone, those of a large one on a tablet too, and those of a huge one everywhere.
pub fn style() -> String {
    let cards = |table: &str| include_str!("cards.css").replace("TABLE", table);
    format!(
        "{}{}\n@media screen and (max-width: 47rem) {{\n{}}}\n@media screen and (max-width: 60rem) {{\n{}}}\n{}",
        include_str!(concat!(env!("OUT_DIR"), "/chart.css")),
        include_str!("style.css"),
        cards("table.small"),
        cards("table.large"),
        cards("table.huge")
    )
}

/// A title as an id.
fn slug(title: &str) -> String {
    title.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
}

/// A chart with the SQL statement whose answer it draws.
pub fn figure(chart: &impl Chart, name: &str, note: &str, sql: &str) -> Result<Markup, ChartError> {
    Ok(html! {
        figure {
            (picture(chart, name)?)
            @let notes = [Some(note.to_string()).filter(|note| !note.is_empty()), chart.left_out()];
            @let notes: Vec<String> = notes.into_iter().flatten().collect();
            @if !notes.is_empty() { figcaption.soft { (notes.join(" ")) } }
            (statement(sql))
        }
    })
}

/// The SQL statement below a chart.
pub fn statement(sql: &str) -> Markup {
    html! { details { summary { "SQL" } pre { (sql.trim()) } } }
}

/// A chart in both shapes, of which the style sheet shows one, and its data for the script. The name is unique on the
/// page.
pub fn picture(chart: &impl Chart, name: &str) -> Result<Markup, ChartError> {
    let wide = embedded(&chart.svg(Shape::Wide)?, "wide", name);
    let narrow = embedded(&chart.svg(Shape::Narrow)?, "narrow", name);
    // No text can end the script that holds the data.
    let data = chart.data().map(|data| data.to_string().replace('<', "\\u003c"));
    Ok(html! {
        div.chart {
            (PreEscaped(wide)) (PreEscaped(narrow))
            @if let Some(data) = data { script.chart-data type="application/json" { (PreEscaped(data)) } }
        }
    })
}

/// A picture for the page: it uses the page's colours, and its ids are unique.
fn embedded(svg: &str, shape: &str, name: &str) -> String {
    let own = format!("{shape}-{}", slug(name));
    // Quotation marks in texts are escaped, so only attributes are replaced.
    let mut svg = svg
        .replacen("<svg ", &format!("<svg class=\"{shape}\" "), 1)
        .replace("\"#FFFFFF\"", "\"var(--paper)\"")
        .replace("\"#222222\"", "\"var(--ink)\"")
        .replace("\"#000000\"", "\"var(--ink)\"")
        // What is so anyway: thousands of marks have it.
        .replace(" opacity=\"1\"", "")
        .replace(" font-family=\"sans-serif\"", "")
        .replace(" stroke=\"none\"", "")
        .replace("\"#D6D6D6\"", "\"var(--grid)\"")
        .replace("aria-labelledby=\"title description\"", &format!("aria-labelledby=\"t-{own} d-{own}\""))
        .replace("<title id=\"title\">", &format!("<title id=\"t-{own}\">"))
        .replace("<desc id=\"description\">", &format!("<desc id=\"d-{own}\">"));
    for (step, colour) in HEAT_COLOURS.iter().enumerate() {
        svg = svg.replace(&format!("\"{colour}\""), &format!("\"var(--heat-{step})\""));
    }
    spaced_text(&svg)
}

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub enum Column<'a> {
    /// Of words, aligned to the left. They may take several lines.
    Words(&'a str),
    /// Of numbers, aligned to the right.
    Number(&'a str),
}

impl<'a> Column<'a> {
    fn name(self) -> &'a str {
        match self {
            Column::Words(name) | Column::Number(name) => name,
        }
    }

    fn shown(self, value: &Markup) -> Markup {
        match self {
            Column::Words(_) => value.clone(),
            Column::Number(_) => spaced(value),
        }
    }

    fn class(self) -> Option<&'static str> {
        matches!(self, Column::Words(_)).then_some("word")
    }
}

/// A table. Where it does not fit, its rows become cards in which each value has the name of its
/// column.
pub fn table(columns: &[Column], rows: &[Vec<Markup>]) -> Markup {
    let size = match columns.len() {
        0..=6 => "small",
        7..=12 => "large",
        _ => "huge",
    };
    html! {
        table class=(size) {
            thead { tr { @for column in columns { th scope="col" class=[column.class()] { (column.name()) } } } }
            tbody { @for row in rows {
                tr { @for (column, value) in columns.iter().zip(row) {
                    td class=[column.class()] data-label=(column.name()) { (column.shown(value)) }
                } }
            } }
        }
    }
}

/// A command line, quoted for a shell.
pub fn command_line(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Across, LineChart, LinePoint, LineSeries, Mark, Rule, Scale};

    #[test]
    fn each_section_has_an_entry_in_the_contents() {
        let sections = [section("Over <time>", html! { p { "x" } }), section("Nothing", html! {})];
        let page = page("t", &html! { h1 { "t" } }, &sections);
        assert!(page.contains("<a href=\"#over--time-\">Over &lt;time&gt;</a>"), "{page}");
        assert!(page.contains("<h2 id=\"over--time-\">") && !page.contains("Nothing"), "{page}");
    }

    /// A card names each value, because it has no row of column names.
    #[test]
    fn each_value_names_its_column() {
        let columns = [Column::Words("operation"), Column::Number("p95")];
        let table = table(&columns, &[vec![html! { "a" }, html! { "1ms" }]]).into_string();
        assert!(table.contains("<table class=\"small\">") && table.contains("<th scope=\"col\">p95</th>"), "{table}");
        assert!(
            table.contains("<td class=\"word\" data-label=\"operation\">a</td><td data-label=\"p95\">1\u{202f}ms</td>")
        );
    }

    /// A name with the end of a script in it stays data.
    #[test]
    fn no_text_ends_the_data_of_a_chart() {
        let hostile = "</script><script>alert(1)</script><!--";
        let series = LineSeries {
            label: hostile.into(),
            points: vec![LinePoint { x: 1.0, y: 2.0, mark: Mark::Filled }],
            tooltips: vec![hostile.into()],
            ..LineSeries::default()
        };
        let chart = LineChart {
            title: hostile.into(),
            description: hostile.into(),
            x_label: hostile.into(),
            y_label: hostile.into(),
            across: Across::Points(vec![hostile.into()]),
            y_scale: Scale::Linear,
            series: vec![series],
            rules: vec![Rule::at(1.0, hostile.into())],
        };
        let figure = figure(&chart, hostile, hostile, hostile).expect("a figure").into_string();
        assert_eq!((figure.matches("<script").count(), figure.matches("</script").count()), (1, 1), "{figure}");
        assert!(!figure.contains("<!--"), "{figure}");
        let data = figure.split("application/json\">").nth(1).and_then(|rest| rest.split("</script>").next());
        let data: serde_json::Value = serde_json::from_str(data.expect("data")).expect("JSON");
        assert_eq!((data["title"].as_str(), data["series"][0]["tips"][0].as_str()), (Some(hostile), Some(hostile)));
    }

    /// The policy allows the script of the page, and no other.
    #[test]
    fn the_policy_names_the_script() {
        let page = page("t", &html! { h1 { "t" } }, &[]);
        assert_eq!(page.matches("<script").count() - SCRIPT.matches("<script").count(), 1);
        assert!(page.contains(&format!("default-src 'none'; script-src {SCRIPT_HASH};")), "{page}");
        assert!(SCRIPT_HASH.starts_with("'sha256-") && SCRIPT_HASH.len() == "'sha256-'".len() + 44, "{SCRIPT_HASH}");
        assert!(!SCRIPT.contains("</script"), "the script would end too early");
    }
}
