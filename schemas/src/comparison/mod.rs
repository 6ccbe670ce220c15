//! A comparison: its plan (TOML) and its result (`comparison.json`).
//!
//! ```
//! let plan = schemas::comparison::ComparisonPlan::parse(r#"
//!     name = "images"
//!     title = "View Profile by image size"
//!     spec = "view-profile.toml"
//!     sla = "95% < 100ms, 0.1% unpredictable, 10s"
//!
//!     [axis]
//!     label = "profile image"
//!     points = [
//!         { label = "none", set = ["data.image_bytes=0"] },
//!         { label = "2 KB", set = ["data.image_bytes=2048"] },
//!     ]
//!
//!     [[stores]]
//!     label = "in the member's row"
//!     url = "sqlite:?images=inline"
//! "#, "images.toml").unwrap();
//! assert_eq!(plan.points().len(), 2);
//! ```
//!
//! With `measure` instead of a rating, no T is searched: each store runs one experiment at each
//! point, with the point's number of threads.
//!
//! ```
//! use schemas::comparison::{ComparisonPlan, Measure, Question};
//!
//! let plan = ComparisonPlan::parse(r#"
//!     name = "staleness"
//!     title = "Unpredictable reads by threads"
//!     spec = "mix.toml"
//!     sla = "95% < 100ms, 0.1% unpredictable, 60s"
//!     measure = "unpredictable"
//!
//!     [axis]
//!     label = "threads"
//!     points = [{ label = "1", threads = 1 }, { label = "10", threads = 10 }]
//!
//!     [[stores]]
//!     label = "stale reads injected"
//!     url = "memory:?stale=0.01"
//! "#, "staleness.toml").unwrap();
//! assert_eq!(plan.question(), Question::Measure(Measure::Unpredictable));
//! ```

mod document;
mod plan;
mod question;
mod store;

pub use document::{
    Cell, ComparisonDocument, ComparisonFolder, Concern, Counted, Measurement, OperationTimes, Outcome,
    SettingDifference,
};
pub use plan::{Axis, ComparisonPlan, ComparisonPlanError, Point};
pub use question::{Measure, Question, Wanted};
pub use store::{ComparedStore, Use};
