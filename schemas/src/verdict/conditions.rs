//! What was found of the conditions that the data of a trace set keep.

use serde::{Deserialize, Serialize};

use crate::conditions::{Condition, Found, unchecked, violated, violating_rows};
use crate::words::plural;

/// What the check of the conditions after an experiment has found. `audit/checks.parquet` has the rows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ConditionFigures {
    /// Conditions that were checked, those whose query failed included.
    pub checked: u64,
    /// Those of them that hold.
    pub holds: u64,
    /// The others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<BrokenCondition>,
    /// The names of those that hold for a freshly loaded store only, and were not checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load_only: Vec<String>,
    /// How long all queries took.
    pub took_ns: u64,
    /// Why nothing was checked, in a sentence without a period; null if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

/// A condition that does not hold, or could not be checked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BrokenCondition {
    /// Its name.
    pub name: String,
    /// The condition in one line.
    pub title: String,
    /// How many rows violate it; null if its query failed.
    pub violations: Option<u64>,
    /// The first of them, as texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_rows: Vec<String>,
    /// Why its query failed; null if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl ConditionFigures {
    /// The figures of what was found.
    pub fn of(all: &[Condition]) -> ConditionFigures {
        let load_only = all.iter().filter(|one| one.found == Found::LoadOnly).map(|one| one.name.clone()).collect();
        let broken = all.iter().filter_map(|one| {
            let broken = BrokenCondition { name: one.name.clone(), title: one.title.clone(), ..Default::default() };
            Some(match &one.found {
                Found::Holds | Found::LoadOnly => return None,
                Found::Violated { rows, first } => {
                    let first_rows = first.iter().take(BrokenCondition::ROWS).cloned().collect();
                    BrokenCondition { violations: Some(*rows), first_rows, ..broken }
                }
                Found::Failed(why) => BrokenCondition { error: Some(why.clone()), ..broken },
            })
        });
        ConditionFigures {
            checked: all.iter().filter(|one| one.found != Found::LoadOnly).count() as u64,
            holds: all.iter().filter(|one| one.found == Found::Holds).count() as u64,
            broken: broken.collect(),
            load_only,
            took_ns: all.iter().map(|one| one.took_ns).sum(),
            missing: None,
        }
    }

    /// The figures if nothing is known, for this reason.
    pub fn missing(why: String) -> ConditionFigures {
        ConditionFigures { missing: Some(why), ..ConditionFigures::default() }
    }

    /// The names of the conditions that rows violate.
    pub fn violated(&self) -> Vec<&str> {
        self.broken.iter().filter(|one| one.violations.is_some()).map(|one| one.name.as_str()).collect()
    }

    /// Whether anything was checked: a store without SQL cannot check its conditions.
    pub fn is_checked(&self) -> bool {
        self.missing.is_none() && (self.checked > 0 || !self.broken.is_empty())
    }

    /// The names of all that do not hold, with commas between; None if nothing was checked.
    pub fn broken_names(&self) -> Option<String> {
        let names: Vec<&str> = self.broken.iter().map(|one| one.name.as_str()).collect();
        self.is_checked().then(|| names.join(", "))
    }

    /// Whether a user should look at it.
    pub fn is_notable(&self) -> bool {
        !self.broken.is_empty() || self.missing.is_some()
    }

    /// One line for each condition that does not hold or could not be checked. One line in all if there is none.
    ///
    /// ```
    /// use schemas::verdict::ConditionFigures;
    /// let figures = ConditionFigures { checked: 11, holds: 11, load_only: vec!["3.3.2.11".into()], ..Default::default() };
    /// assert_eq!(figures.lines(), ["11 of 11 conditions hold (3.3.2.11 is checked after a load only)"]);
    /// ```
    pub fn lines(&self) -> Vec<String> {
        if let Some(why) = &self.missing {
            return vec![format!("the conditions were not checked: {why}")];
        }
        if self.checked == 0 && self.broken.is_empty() {
            return vec!["no condition was checked, since the store cannot".to_string()];
        }
        if self.broken.is_empty() {
            let kept = match self.load_only.as_slice() {
                [] => String::new(),
                [one] => format!(" ({one} is checked after a load only)"),
                several => format!(" ({} are checked after a load only)", several.join(", ")),
            };
            return vec![all_hold(self.checked) + &kept];
        }
        self.broken.iter().map(BrokenCondition::in_words).collect()
    }

    /// The same. Lines with the first violating rows follow that of each violated condition, indented.
    pub fn lines_with_rows(&self) -> Vec<String> {
        if self.broken.is_empty() || self.missing.is_some() {
            return self.lines();
        }
        self.broken.iter().map(BrokenCondition::with_rows).collect()
    }
}

/// That all conditions of the data hold, of which so many were checked.
///
/// ```
/// assert_eq!(schemas::verdict::all_hold(12), "12 of 12 conditions hold");
/// ```
pub fn all_hold(checked: u64) -> String {
    let verb = if checked == 1 { "holds" } else { "hold" };
    format!("{checked} of {} {verb}", plural(checked, "condition"))
}

impl BrokenCondition {
    /// How many violating rows the figures keep.
    pub const ROWS: usize = 3;

    /// What is wrong, and the first violating rows, one a line, indented.
    pub fn with_rows(&self) -> String {
        self.in_words() + &violating_rows(&self.first_rows, self.violations.unwrap_or_default())
    }

    /// What is wrong, in one line.
    pub fn in_words(&self) -> String {
        match (&self.violations, &self.error) {
            (Some(rows), _) => violated(&self.name, &self.title, *rows),
            (None, error) => unchecked(&self.name, error.as_deref().unwrap_or("its query failed")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_each_condition_only_where_some_are_broken() {
        let condition = |name: &str, found| Condition { name: name.into(), title: "T".into(), found, took_ns: 2 };
        let lines = |all: &[Condition]| ConditionFigures::of(all).lines();
        let (holds, load) = (condition("1", Found::Holds), condition("2", Found::LoadOnly));
        let violated = condition("3", Found::Violated { rows: 1, first: vec![] });
        let failed = condition("4", Found::Failed("no".into()));
        assert_eq!(lines(&[holds.clone(), holds.clone()]), ["2 of 2 conditions hold"]);
        assert_eq!(lines(&[holds.clone(), load.clone()]), ["1 of 1 condition holds (2 is checked after a load only)"]);
        let all = [holds, load, violated, failed];
        assert_eq!(lines(&all), ["condition 3 is violated by 1 row: T", "condition 4 could not be checked: no"]);
        let figures = ConditionFigures::of(&all);
        assert_eq!((figures.checked, figures.holds, figures.took_ns), (3, 1, 8));
        assert_eq!(figures.violated(), ["3"]);
        let rows = condition(
            "5",
            Found::Violated { rows: 9, first: ["a = 1", "a = 2", "a = 3", "a = 4"].map(String::from).into() },
        );
        let lines = ConditionFigures::of(&[rows]).lines_with_rows();
        assert_eq!(lines, ["condition 5 is violated by 9 rows: T\n    a = 1\n    a = 2\n    a = 3\n    and 6 more"]);
        assert_eq!(figures.broken_names().as_deref(), Some("3, 4"));
        assert_eq!(ConditionFigures::missing("why".into()).broken_names(), None);
        assert_eq!(ConditionFigures::of(&[]).broken_names(), None);
        let read: ConditionFigures = serde_json::from_str(&serde_json::to_string(&figures).unwrap()).unwrap();
        assert_eq!(read, figures);
    }
}
