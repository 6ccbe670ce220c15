//! The plan of a comparison, as users write it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize};

use super::question::{Measure, Question, Wanted};
use super::store::{ComparedStore, Use};
use crate::files::{FileError, at};
use crate::pace::Overload;
use crate::plan::redact;
use crate::sla::Sla;
use crate::verdict::Between;

/// The highest arrival rate of a search, in sessions a second, as in `encore rate`.
const RATE_MAX: u32 = 100_000_000;

/// An error in a plan: the file, the key, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ComparisonPlanError {
    /// Not TOML, an unknown key or a value of the wrong type.
    #[error("{file}: {message}")]
    Syntax {
        /// The file.
        file: String,
        /// Line, column and reason.
        message: String,
    },
    /// An invalid value.
    #[error("{file}: {key}: {message}")]
    Value {
        /// The file.
        file: String,
        /// The dotted key; entries of a list are counted from 0.
        key: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
}

/// `encore compare`'s plan: several stores, or designs of one, each rated or
/// measured with the same trace set at every point of an axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComparisonPlan {
    /// The name of the comparison's folder.
    pub name: String,
    /// The heading of its table and chart.
    pub title: String,
    /// The workload specification, relative to the plan's own file.
    pub spec: PathBuf,
    /// Values of the specification that are replaced at every point, as `key=value`. The values
    /// of a point are applied after these.
    #[serde(default, deserialize_with = "settings", skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// The service level agreement, as text. Null: that of the specification. In a stored
    /// comparison it is never null.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::sla::as_text")]
    pub sla: Option<Sla>,
    /// δ: how long an experiment of the search runs, in seconds: a number or a list. Empty: the
    /// default of `encore rate`.
    #[serde(default, deserialize_with = "one_or_more", skip_serializing_if = "Vec::is_empty")]
    pub search_s: Vec<f64>,
    /// The highest T to try. Null: the default of `encore rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_threads: Option<u32>,
    /// The T to begin with. Null: the default of `encore rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_threads: Option<u32>,
    /// The highest arrival rate to try, in sessions a second, in a rating by rate. Null: the default of
    /// `encore rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rate: Option<u32>,
    /// The arrival rate to begin with, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_rate: Option<u32>,
    /// T of all experiments of a rating by rate. Null: the default of `encore rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// What happens in a rating by rate to a session that arrives when all threads are busy. Null: the
    /// default of `encore rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overload: Option<Overload>,
    /// Warm-up of each experiment, in the syntax of `encore rate --warmup`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup: Option<String>,
    /// What happens to the store between two experiments.
    #[serde(default)]
    pub between: Between,
    /// Whether every experiment ends with a closing read, if the family of the workload has one.
    #[serde(default = "default_true", skip_serializing_if = "is_true")]
    pub closing_read: bool,
    /// Whether the transactions of the trace set are used. A store may say otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<Use>,
    /// How often a transaction is tried that the store rolls back, as in `encore rate --tries`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tries: Option<u16>,
    /// The ratings to search; null if `measure` is given. A plan with neither of the two asks for
    /// both ratings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rating: Option<Wanted>,
    /// The figure to measure instead of a rating. No T is searched: each cell is one experiment
    /// with the T of its point, for the time of the SLA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure: Option<Measure>,
    /// What is varied. Null: each store is rated once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub axis: Option<Axis>,
    /// The stores, at least one.
    pub stores: Vec<ComparedStore>,
}

fn default_true() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_true(value: &bool) -> bool {
    *value
}

/// What a comparison varies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// Its name, for table and chart.
    pub label: String,
    /// Its points, in order, at least one.
    pub points: Vec<Point>,
}

/// A point of the axis: its own workload, or a number of threads.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table such as { label = \"100\", set = [\"data.members=100\"] }")]
pub struct Point {
    /// Its name, for table and chart.
    pub label: String,
    /// Values of the specification that are replaced, as `key=value`.
    #[serde(default, deserialize_with = "settings", skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// A specification instead of the plan's, relative to the plan's own file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<PathBuf>,
    /// T of the experiments at this point, when the comparison measures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
}

impl ComparisonPlan {
    /// Reads and checks a file.
    pub fn read(path: &Path) -> Result<ComparisonPlan, ComparisonPlanError> {
        let text = std::fs::read_to_string(path).map_err(at(path))?;
        ComparisonPlan::parse(&text, &path.display().to_string())
    }

    /// Reads and checks a text; errors name `file`.
    pub fn parse(text: &str, file: &str) -> Result<ComparisonPlan, ComparisonPlanError> {
        let mut plan: ComparisonPlan = toml::from_str(text)
            .map_err(|e| ComparisonPlanError::Syntax { file: file.into(), message: e.to_string().trim_end().into() })?;
        plan.check(file)?;
        if let Question::Rate(wanted) = plan.question() {
            plan.rating = Some(wanted);
        }
        Ok(plan)
    }

    /// The points of the axis; without one, a single point without a label.
    pub fn points(&self) -> Vec<Point> {
        self.axis.as_ref().map_or_else(|| vec![Point::default()], |axis| axis.points.clone())
    }

    /// What the comparison determines for each cell.
    pub fn question(&self) -> Question {
        match self.measure {
            Some(measure) => Question::Measure(measure),
            None => Question::Rate(self.rating.unwrap_or_default()),
        }
    }

    /// The SLA that all cells are judged by.
    pub fn sla(&self) -> Sla {
        self.sla.unwrap_or_default()
    }

    /// The plan without secrets, as it may be written to a file.
    pub fn redacted(&self) -> ComparisonPlan {
        let mut plan = self.clone();
        let urls = plan.stores.iter_mut().flat_map(|store| store.urls_mut());
        urls.for_each(|(_, url)| *url = redact(url));
        plan
    }

    fn check(&self, file: &str) -> Result<(), ComparisonPlanError> {
        let wrong = |key: String, message: String| Err(ComparisonPlanError::Value { file: file.into(), key, message });
        if !crate::files::is_plain_name(&self.name) {
            return wrong("name".into(), format!("{:?} is not a name of letters, digits, '-', '_' and '.'", self.name));
        }
        let mut labels = vec![("title".to_string(), &self.title)];
        let mut settings = vec![("set".to_string(), &self.set)];
        if let Some(axis) = &self.axis {
            labels.push(("axis.label".into(), &axis.label));
            if axis.points.is_empty() {
                return wrong("axis.points".into(), "is empty; give at least one point, or remove the axis".into());
            }
            for (i, point) in axis.points.iter().enumerate() {
                labels.push((format!("axis.points.{i}.label"), &point.label));
                settings.push((format!("axis.points.{i}.set"), &point.set));
            }
            if let Some((i, label)) = repeated(axis.points.iter().map(|p| p.label.as_str())) {
                return wrong(format!("axis.points.{i}.label"), format!("{label:?} is the label of another point"));
            }
        }
        if self.stores.is_empty() {
            return wrong("stores".into(), "is empty; give at least one".into());
        }
        for (i, store) in self.stores.iter().enumerate() {
            labels.push((format!("stores.{i}.label"), &store.label));
            if let Some((key, message)) = self.wrong_url(store) {
                return wrong(format!("stores.{i}.{key}"), message);
            }
        }
        if let Some(i) = self.stores.iter().position(|store| store.replayers == Some(0)) {
            return wrong(format!("stores.{i}.replayers"), "is 0; give at least 1, or remove it".into());
        }
        if let Some((i, label)) = repeated(self.stores.iter().map(|s| s.label.as_str())) {
            return wrong(format!("stores.{i}.label"), format!("{label:?} is the label of another store"));
        }
        if let Some((key, label)) =
            labels.into_iter().find(|(_, l)| l.trim().is_empty() || l.contains(char::is_control))
        {
            return wrong(key, format!("{label:?} is empty or has control characters; write a short text"));
        }
        for (key, list) in settings {
            if let Some(setting) = list.iter().find(|setting| !setting.contains('=')) {
                return wrong(key, format!("{setting:?} is not key=value"));
            }
        }
        if let Some(seconds) = self.search_s.iter().find(|s| !(s.is_finite() && **s > 0.0)) {
            return wrong("search_s".into(), format!("{seconds} is not a number of seconds above 0"));
        }
        for (key, rate) in [("max_rate", self.max_rate), ("first_rate", self.first_rate)] {
            if rate.is_some_and(|rate| !(1..=RATE_MAX).contains(&rate)) {
                return wrong(key.into(), "is not between 1 and 100,000,000 sessions a second".into());
            }
        }
        let mut threads = vec![("max_threads".to_string(), self.max_threads)];
        threads.extend([("first_threads".into(), self.first_threads), ("threads".into(), self.threads)]);
        threads.extend(self.points().iter().enumerate().map(|(i, p)| (format!("axis.points.{i}.threads"), p.threads)));
        for (key, threads) in threads {
            if threads.is_some_and(|t| !(1..=1_000_000).contains(&t)) {
                return wrong(key, "is not between 1 and 1,000,000".into());
            }
        }
        match self.question_mismatch() {
            Some((key, message)) => wrong(key, message.into()),
            None => Ok(()),
        }
    }

    /// The key of a URL that is none, or is at no point of the axis, and what to do.
    fn wrong_url(&self, store: &ComparedStore) -> Option<(String, String)> {
        let points = self.points();
        if let Some(label) = store.from.keys().find(|label| points.iter().all(|point| point.label != **label)) {
            let labels = points.iter().map(|point| format!("{:?}", point.label)).collect::<Vec<_>>().join(", ");
            return Some((
                format!("from.{label:?}"),
                format!("is the label of no point of the axis; use one of {labels}"),
            ));
        }
        // The value of a variable is not known here.
        let (key, url) = store.urls().find(|(_, url)| !url.contains(':') && !url.contains("${"))?;
        let message = "is not the URL of a store; write it like sqlite:?images=table or memory:";
        Some((key, format!("{url:?} {message}")))
    }

    /// A key that belongs to the other kind of comparison, or that is missing in this one, and
    /// what to do.
    fn question_mismatch(&self) -> Option<(String, &'static str)> {
        let points = self.points();
        let threads = |is_given| {
            let found = points.iter().position(|point| point.threads.is_some() == is_given)?;
            Some(format!("axis.points.{found}.threads"))
        };
        let given = |keys: &[(&'static str, bool)]| keys.iter().find(|(_, is_given)| *is_given).map(|(key, _)| *key);
        let of_threads = [("max_threads", self.max_threads.is_some()), ("first_threads", self.first_threads.is_some())];
        let of_rate = [
            ("max_rate", self.max_rate.is_some()),
            ("first_rate", self.first_rate.is_some()),
            ("threads", self.threads.is_some()),
            ("overload", self.overload.is_some()),
        ];
        if let Question::Rate(wanted) = self.question() {
            let needless = "is only for comparisons with `measure`; a rating searches T: remove it, or add `measure`";
            let (others, message) = match wanted {
                Wanted::Rate => (&of_threads[..], "is only for ratings by threads; use `max_rate` and `first_rate`"),
                _ => (&of_rate[..], "is only for ratings by arrival rate; remove it, or write `rating = \"rate\"`"),
            };
            let other = given(others).map(|key| (key.into(), message));
            return threads(true).map(|key| (key, needless)).or(other);
        }
        if self.rating.is_some() {
            return Some(("measure".into(), "`measure` and `rating` exclude each other; remove one"));
        }
        if self.axis.is_none() {
            let message = "is missing; with `measure` the axis needs points, each with its `threads`";
            return Some(("axis.points".into(), message));
        }
        if let Some(key) = threads(false) {
            return Some((key, "is missing; with `measure` every point needs `threads`"));
        }
        let of_ratings = [("search_s", !self.search_s.is_empty()), ("between", self.between == Between::Continue)];
        let key = given(&of_ratings).or(given(&of_threads)).or(given(&of_rate))?;
        Some((
            key.into(),
            "is only for ratings; with `measure` each cell is one experiment from a loaded store, for the time of \
             `sla`: remove it",
        ))
    }
}

/// The first label that equals an earlier one, with its index.
fn repeated<'a>(labels: impl Iterator<Item = &'a str>) -> Option<(usize, &'a str)> {
    let mut seen = BTreeSet::new();
    labels.enumerate().find(|(_, label)| !seen.insert(label.trim().to_lowercase()))
}

fn settings<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "set is a list of texts, such as set = [\"data.members=100\"]")]
    enum Settings {
        All(Vec<String>),
    }
    let Settings::All(settings) = Settings::deserialize(deserializer)?;
    Ok(settings)
}

fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "search_s is a number of seconds, or a list of such numbers")]
    enum Seconds {
        One(f64),
        More(Vec<f64>),
    }
    Ok(match Seconds::deserialize(deserializer)? {
        Seconds::One(seconds) => vec![seconds],
        Seconds::More(seconds) => seconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
name = "n"
title = "a title"
spec = "w.toml"
sla = "95% < 100ms, 1s"
search_s = 0.5
[axis]
label = "size"
points = [{ label = "a", set = ["data.members=9"] }, { label = "b", spec = "v.toml" }]
[[stores]]
label = "one"
url = "memory:"
[[stores]]
label = "two"
url = "postgres://me:hush@db/x"
"#;

    fn check(change: &str, to: &str, expect: &str) {
        let text = GOOD.replacen(change, to, 1);
        assert_ne!(text, GOOD, "the case changes nothing");
        let error = ComparisonPlan::parse(&text, "p.toml").unwrap_err().to_string();
        assert!(error.starts_with("p.toml: ") && error.contains(expect), "{error:?} lacks {expect:?}");
    }

    #[test]
    fn wrong_keys_and_values_are_named() {
        check("title", "titel", "titel");
        check("name = \"n\"", "name = \"../n\"", "name: \"../n\" is not a name");
        check("title = \"a title\"", "title = \" \"", "title: \" \" is empty");
        check("spec = \"w.toml\"", "", "missing field `spec`");
        check("95% < 100ms", "95 < 100ms", "sla = \"95 < 100ms");
        check("search_s = 0.5", "search_s = [0.5, -1]", "search_s: -1 is not");
        check("search_s = 0.5", "search_s = \"long\"", "search_s is a number of seconds, or a list");
        check("search_s = 0.5", "max_threads = 0", "max_threads: is not between");
        check("search_s = 0.5", "between = \"reload\"", "between = \"reload\"");
        check("search_s = 0.5", "rating = \"all\"", "unknown variant `all`");
        check("search_s = 0.5", "max_rate = 9", "max_rate: is only for ratings by arrival rate");
        check("search_s = 0.5", "threads = 9", "threads: is only for ratings by arrival rate");
        check(
            "search_s = 0.5",
            "rating = \"soar\"\noverload = \"skip\"",
            "overload: is only for ratings by arrival rate",
        );
        check("search_s = 0.5", "rating = \"rate\"\nmax_threads = 9", "max_threads: is only for ratings by threads");
        check("search_s = 0.5", "rating = \"rate\"\nfirst_rate = 0", "first_rate: is not between 1");
        check("search_s = 0.5", "rating = \"rate\"\noverload = \"wait\"", "unknown variant `wait`");
        let list = "set is a list of texts, such as set = [\"data.members=100\"]";
        check("search_s = 0.5", "set = { members = 9 }", list);
        check("[\"data.members=9\"]", "{ members = 9 }", list);
        check("label = \"size\"", "labl = \"size\"", "labl");
        check("label = \"b\"", "label = \"A\"", "axis.points.1.label: \"A\" is the label of another point");
        check("data.members=9", "data.members", "axis.points.0.set: \"data.members\" is not key=value");
        check("label = \"two\"", "label = \"one\"", "stores.1.label: \"one\" is the label of another store");
        check("label = \"two\"", "label = \"t\\nwo\"", "stores.1.label: \"t\\nwo\" is empty or has control");
        check("\"memory:\"", "\"memory\"", "stores.0.url: \"memory\" is not the URL");
        let none = GOOD.split("[[stores]]").next().unwrap().replace("[axis]", "stores = []\n[axis]");
        let error = ComparisonPlan::parse(&none, "p.toml").unwrap_err().to_string();
        assert_eq!(error, "p.toml: stores: is empty; give at least one");
    }

    /// [`GOOD`] as a plan that measures.
    fn measuring() -> String {
        let text = GOOD.replace("search_s = 0.5", "measure = \"unpredictable\"");
        text.replace("set = [\"data.members=9\"]", "threads = 1").replace("spec = \"v.toml\"", "threads = 10")
    }

    #[test]
    fn a_plan_rates_or_measures() {
        let plan = ComparisonPlan::parse(&measuring(), "p.toml").unwrap();
        assert_eq!((plan.rating, plan.question()), (None, Question::Measure(Measure::Unpredictable)));
        assert_eq!(plan.points().iter().map(|point| point.threads).collect::<Vec<_>>(), [Some(1), Some(10)]);
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<ComparisonPlan>(&json).unwrap(), plan);

        check("spec = \"v.toml\"", "threads = 4", "axis.points.1.threads: is only for comparisons with `measure`");
        let check = |change: &str, to: &str, expect: &str| {
            let text = measuring().replacen(change, to, 1);
            let error = ComparisonPlan::parse(&text, "p.toml").unwrap_err().to_string();
            assert!(error.starts_with("p.toml: ") && error.contains(expect), "{error:?} lacks {expect:?}");
        };
        check("\"unpredictable\"", "\"stale\"", "unknown variant `stale`");
        check("[axis]", "rating = \"both\"\n[axis]", "measure: `measure` and `rating` exclude each other; remove one");
        check(", threads = 10", "", "axis.points.1.threads: is missing");
        check("threads = 10", "threads = 0", "axis.points.1.threads: is not between 1");
        check("[axis]", "search_s = 1\n[axis]", "search_s: is only for ratings");
        check("[axis]", "between = \"continue\"\n[axis]", "between: is only for ratings");
        check("[axis]", "max_rate = 9\n[axis]", "max_rate: is only for ratings; with `measure`");
        let (before, after) = GOOD.split_once("[axis]").unwrap();
        let bare = format!("{before}measure = \"throughput\"\n{}", &after[after.find("[[stores]]").unwrap()..]);
        let error = ComparisonPlan::parse(&bare, "p.toml").unwrap_err().to_string();
        assert!(error.starts_with("p.toml: axis.points: is missing"), "{error}");
    }

    #[test]
    fn a_written_plan_reads_the_same_and_has_no_secrets() {
        let plan = ComparisonPlan::parse(GOOD, "p.toml").unwrap();
        assert_eq!((plan.search_s.as_slice(), plan.sla().delta_s), ([0.5].as_slice(), 1.0));
        assert_eq!((plan.rating, plan.question()), (Some(Wanted::Both), Question::Rate(Wanted::Both)));
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<ComparisonPlan>(&json).unwrap(), plan);
        let redacted = plan.redacted();
        assert_eq!(redacted.stores[1].url, "postgres://me:***@db/x");
        assert_eq!(redacted.redacted(), redacted);
    }

    /// An adaptive client is a schedule along the axis.
    #[test]
    fn a_store_may_have_another_url_from_a_point_on() {
        let with = |from: &str| GOOD.replacen("url = \"memory:\"", &format!("url = \"memory:\"\n{from}"), 1);
        let plan = ComparisonPlan::parse(&with("from = { b = \"postgres://me:secret@db/y\" }"), "p.toml").unwrap();
        let store = plan.stores.iter().find(|store| !store.from.is_empty()).unwrap();
        let point = |label: &str| Point { label: label.into(), ..Point::default() };
        let points = ["a", "b", "c"].map(point);
        let urls = [0, 1, 2].map(|index| store.url_at(&points, index).1);
        assert_eq!(urls, ["memory:", "postgres://me:secret@db/y", "postgres://me:secret@db/y"]);
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<ComparisonPlan>(&json).unwrap(), plan);
        let shown = plan.redacted().stores.iter().map(ComparedStore::urls_in_words).collect::<String>();
        assert!(shown.contains("memory:; from b on: postgres://me:***@db/y"), "{shown}");
        check(
            "url = \"memory:\"",
            "url = \"memory:\"\nfrom = { c = \"memory:\" }",
            "is the label of no point of the axis; use one of \"a\", \"b\"",
        );
        check(
            "url = \"memory:\"",
            "url = \"memory:\"\nfrom = { b = \"memory\" }",
            "from.\"b\": \"memory\" is not the URL of a store",
        );
    }

    #[test]
    fn a_plan_may_rate_by_arrival_rate() {
        let keys = "rating = \"rate\"\nfirst_rate = 50\nmax_rate = 5000\nthreads = 16\noverload = \"skip\"";
        let plan = ComparisonPlan::parse(&GOOD.replace("search_s = 0.5", keys), "p.toml").unwrap();
        assert_eq!(plan.question(), Question::Rate(Wanted::Rate));
        assert_eq!((plan.first_rate, plan.max_rate, plan.threads), (Some(50), Some(5000), Some(16)));
        assert_eq!(plan.overload, Some(Overload::Skip));
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<ComparisonPlan>(&json).unwrap(), plan);
    }

    #[test]
    fn a_plan_without_an_axis_has_one_point() {
        let text =
            GOOD.split("[axis]").next().unwrap().to_string() + "[[stores]]\nlabel = \"one\"\nurl = \"memory:\"\n";
        let plan = ComparisonPlan::parse(&text, "p.toml").unwrap();
        assert_eq!(plan.points(), [Point::default()]);
    }
}
