//! The consistency of the registers of an experiment: their histories, from its sealed operations, and
//! what `crate::consistency` says of them.

mod text;

use schemas::plan::Plan;
use schemas::run::RunFolder;
use schemas::verdict::Verdict;

use crate::consistency::availability::Availability;
use crate::consistency::history::{Access, Clients, History, INITIAL};
use crate::consistency::measure::Measured;
use crate::consistency::summary::{ConsistencyFigures, Register, Summary};
use crate::error::AnalyzeError;
use crate::families::AnyFamily;
use crate::fragments::read_plan;
use crate::sql::Database;
use crate::validate::{FOREVER, Interval};
pub(crate) use text::text;

/// In place of the value of a read that says nothing: no write has it.
const NOTHING: i64 = i64::MIN;

/// The consistency of an experiment. `most` is how many registers to keep that are not linearizable.
pub(crate) fn consistency(
    run: &RunFolder,
    database: &Database,
    family: &dyn AnyFamily,
    verdict: &Verdict,
    most: usize,
) -> Result<ConsistencyFigures, AnalyzeError> {
    let plan = read_plan(&run.existing_experiment(verdict.experiment, verdict.threads))?;
    let slice_ns = (verdict.figures.timeline.slice_s * 1e9) as i64;
    let mut summary = Summary::new(if slice_ns > 0 { slice_ns } else { 1_000_000_000 }, most);
    let is_torn = !verdict.figures.missing.is_empty();
    each_history(database, family, &plan, verdict.experiment, is_torn, |register, history| {
        summary.add(register, &Measured::of(history));
    })?;
    Ok(summary.figures())
}

/// The availability of an experiment.
pub(crate) fn availability(verdict: &Verdict) -> Availability {
    let timeline = &verdict.figures.timeline;
    Availability::of(timeline.slice_s, timeline.slices.iter().map(|slice| (slice.ok, slice.errors)))
}

/// Calls `take` with each register that was written, and its history.
fn each_history(
    database: &Database,
    family: &dyn AnyFamily,
    plan: &Plan,
    experiment: u32,
    is_torn: bool,
    mut take: impl FnMut(&Register, History),
) -> Result<(), AnalyzeError> {
    let statement = include_str!("registers.sql")
        .replace("{experiment}", &experiment.to_string())
        .replace("{is_torn}", if is_torn { "true" } else { "false" });
    // What a session before the experiment wrote is an initial value.
    let is_earlier = |value: i64| {
        family.writer(value).is_some_and(|writer| {
            let own = plan.fragments.iter().find(|fragment| i64::from(fragment.fragment) == writer.fragment);
            own.is_some_and(|own| own.is_before(writer.session as u64))
        })
    };
    let mut register = Register { fragment: -1, item: String::new(), owner: 0, element: None };
    let (mut writes, mut reads) = (Vec::new(), Vec::new());
    database.each(&statement, |row| {
        let (fragment, owner, element): (i64, i64, Option<i64>) = (row.get(0)?, row.get(2)?, row.get(3)?);
        let item = row.get_ref(1)?;
        let item = item.as_str().unwrap_or_default();
        if (fragment, owner, element) != (register.fragment, register.owner, register.element) || item != register.item
        {
            if !writes.is_empty() {
                take(&register, History::new(std::mem::take(&mut writes), std::mem::take(&mut reads)));
            }
            register = Register { fragment, item: item.to_string(), owner, element };
        }
        let (value, start, end): (Option<i64>, i64, i64) = (row.get(4)?, row.get(5)?, row.get(6)?);
        let (is_write, is_known): (bool, bool) = (row.get(7)?, row.get(8)?);
        let by = Clients { thread: row.get(9)?, actor: row.get::<_, i64>(10)? as u64 };
        let at = Interval { start, end: if is_known { end } else { FOREVER } };
        let value = value.unwrap_or(NOTHING);
        if is_write {
            writes.push(Access { value, at, by });
        } else {
            let value = if is_earlier(value) { INITIAL } else { value };
            reads.push(Access { value, at, by });
        }
        Ok(())
    })?;
    if !writes.is_empty() {
        take(&register, History::new(writes, reads));
    }
    Ok(())
}
