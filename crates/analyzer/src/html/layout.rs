//! The layout that all pages share: sections with a table of contents, charts, tables.

use maud::{DOCTYPE, Markup, PreEscaped, html};
pub use schemas::program::quoted;

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

/// The whole page; sections without content are omitted. Its policy forbids loading anything and running scripts.
pub fn page(title: &str, head: &Markup, sections: &[Section]) -> String {
    let sections: Vec<&Section> = sections.iter().filter(|section| !section.content.0.is_empty()).collect();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:";
                title { (title) " – Encore" }
                // Browsers ask for an icon otherwise.
                link rel="icon" href="data:,";
                style { (PreEscaped(style())) }
            }
            body {
                header { (head) }
                nav aria-label="Contents" {
                    @for section in &sections { a href=(format!("#{}", slug(&section.title))) { (section.title) } }
                }
                @for section in &sections {
                    section { h2 id=(slug(&section.title)) { (section.title) } (section.content) }
                }
            }
        }
    };
    page.into_string()
}

/// The style sheet. The rows of a table become cards where the table would not fit: those of a
/// small table on a phone, those of a large one on a tablet too, and those of a huge one everywhere.
pub fn style() -> String {
    let cards = |table: &str| include_str!("cards.css").replace("TABLE", table);
    format!(
        "{}\n@media screen and (max-width: 47rem) {{\n{}}}\n@media screen and (max-width: 60rem) {{\n{}}}\n{}",
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
            @if !note.is_empty() { figcaption.soft { (note) } }
            (statement(sql))
        }
    })
}

/// The SQL statement below a chart.
pub(super) fn statement(sql: &str) -> Markup {
    html! { details { summary { "SQL" } pre { (sql.trim()) } } }
}

/// A chart in both shapes. The style sheet shows one of them. The name is unique on the page.
pub fn picture(chart: &impl Chart, name: &str) -> Result<Markup, ChartError> {
    let wide = embedded(&chart.svg(Shape::Wide)?, "wide", name);
    let narrow = embedded(&chart.svg(Shape::Narrow)?, "narrow", name);
    Ok(html! { (PreEscaped(wide)) (PreEscaped(narrow)) })
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
        .replace("\"#D6D6D6\"", "\"var(--grid)\"")
        .replace("aria-labelledby=\"title description\"", &format!("aria-labelledby=\"t-{own} d-{own}\""))
        .replace("<title id=\"title\">", &format!("<title id=\"t-{own}\">"))
        .replace("<desc id=\"description\">", &format!("<desc id=\"d-{own}\">"));
    for (step, colour) in HEAT_COLOURS.iter().enumerate() {
        svg = svg.replace(&format!("\"{colour}\""), &format!("\"var(--heat-{step})\""));
    }
    svg
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
            thead { tr { @for column in columns { th class=[column.class()] { (column.name()) } } } }
            tbody { @for row in rows {
                tr { @for (column, value) in columns.iter().zip(row) {
                    td class=[column.class()] data-label=(column.name()) { (value) }
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
        assert!(table.contains("<table class=\"small\">") && table.contains("<th>p95</th>"), "{table}");
        assert!(table.contains("<td class=\"word\" data-label=\"operation\">a</td><td data-label=\"p95\">1ms</td>"));
    }
}
