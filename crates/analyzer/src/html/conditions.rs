//! The conditions of the data: those of the experiments that were checked, and the rows that violate them.

use maud::{Markup, html};
use schemas::sla::short_time;
use schemas::verdict::{ConditionFigures, Verdict};

use super::RunData;
use super::layout::{Column, Section, section, statement, table};
use crate::error::AnalyzeError;
use crate::report::thousands as grouped;

/// None if no conditions were to be checked.
pub(super) fn conditions(data: &RunData<'_>, verdict: &Verdict) -> Result<Option<Section>, AnalyzeError> {
    let checked: Vec<(&Verdict, &ConditionFigures)> =
        data.verdicts.iter().filter_map(|own| Some((own, own.figures.conditions.as_ref()?))).collect();
    // The experiment in detail may be one of a search, which ends without a check.
    let Some((shown, figures)) =
        checked.iter().find(|(own, _)| own.experiment == verdict.experiment).or(checked.last()).copied()
    else {
        return Ok(None);
    };
    let sql = format!("SELECT * FROM checks WHERE experiment = {}", shown.experiment);
    let by_condition = by_condition(data, shown.experiment)?;
    let content = html! {
        @for (own, figures) in &checked {
            @for line in figures.lines() { p class=[figures.is_notable().then_some("fail")] { "Experiment " (own.experiment) ": " (line) "." } }
        }
        @if !by_condition.is_empty() {
            p { "After experiment " (shown.experiment) ", checked in " (short_time(figures.took_ns)) ":" }
            (table(&[Column::Words("condition"), Column::Words("title"), Column::Words("outcome"), Column::Number("rows"), Column::Words("the first of them")], &by_condition))
        }
        (statement(&sql))
    };
    Ok(Some(section("Conditions of the data", content)))
}

/// A row for each condition of an experiment; none if its file is not here.
fn by_condition(data: &RunData<'_>, experiment: u32) -> Result<Vec<Vec<Markup>>, AnalyzeError> {
    let sql = format!(
        "SELECT name, title, outcome, coalesce(violations, 0), coalesce(error, array_to_string(first_rows, '\n')) \
         FROM checks WHERE experiment = {experiment}"
    );
    let mut rows = Vec::new();
    data.database.each(&sql, |row| {
        let text = |column: usize| row.get::<_, String>(column);
        let (outcome, violations) = (text(2)?, row.get::<_, i64>(3)?);
        let is_good = matches!(outcome.as_str(), "holds" | "load only");
        let (name, title, first) = (text(0)?, text(1)?, text(4)?);
        rows.push(vec![
            html! { (name) },
            html! { (title) },
            html! { span class=(if is_good { "pass" } else { "fail" }) { (outcome) } },
            html! { (grouped(violations.unsigned_abs())) },
            html! { @for (place, line) in first.lines().enumerate() { @if place > 0 { br; } (line) } },
        ]);
        Ok(())
    })?;
    Ok(rows)
}
