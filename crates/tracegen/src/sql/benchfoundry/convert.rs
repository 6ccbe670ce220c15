//! From the files of BenchFoundry to a trace set.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use schemas::manifest::Manifest;
use schemas::vocabulary::Control;
use schemas::vocabulary::sql::text::Dialect;
use schemas::vocabulary::sql::{Parameter, Statement, Type};

use super::lists::{Operation, Set, custom_sets, operations, schema, sets};
use super::processes::{Call, Process, processes};
use super::{Files, ImportError, ImportOptions, Text};
use crate::sql::literals::{Literal, wider};
use crate::sql::{Act, Header, SetWriter, Step};

/// BenchFoundry's schema is logical: it belongs to no database.
const DIALECT: Dialect = Dialect::Logical;

/// The kinds of processes.
const KINDS: [&str; 2] = ["process", "warmup"];

/// The time between the start of the last process of the warm-up and the time 0 of the experiment.
const AFTER_WARMUP_US: u64 = 1_000_000;

/// The lists of the files, by their numbers.
struct Lists<'a> {
    files: &'a Files,
    operations: Vec<Operation>,
    /// The place of each statement.
    places: BTreeMap<i64, usize>,
    /// The types of its parameters, and the line of the set that decided each.
    types: Vec<Vec<Option<(Type, usize)>>>,
    sets: BTreeMap<i64, Set>,
    custom: BTreeMap<i64, Vec<String>>,
    /// Each statement's place with each set that it is called with.
    called: BTreeSet<(usize, i64)>,
}

/// See the module.
pub(super) fn convert(files: &Files, place: &Path, options: &ImportOptions) -> Result<Manifest, ImportError> {
    let operations = operations(&files.operations, DIALECT)?;
    let mut lists = Lists {
        files,
        places: operations.iter().enumerate().map(|(place, one)| (one.number, place)).collect(),
        types: operations.iter().map(|one| vec![None; one.effect.parameters]).collect(),
        operations,
        sets: sets(files.parameters.as_ref())?,
        custom: custom_sets(files.custom.as_ref())?,
        called: BTreeSet::new(),
    };
    let schema = schema(&files.schema, DIALECT)?;
    let read = |text: &Option<Text>| text.as_ref().map_or(Ok(Vec::new()), processes);
    let (load, warm, run) = (read(&files.load)?, read(&files.warm)?, processes(&files.run)?);
    if run.is_empty() {
        return Err(files.run.wrong(1, "has no process"));
    }
    for (text, processes) in [(&files.load, &load), (&files.warm, &warm)] {
        text.as_ref().map_or(Ok(()), |text| lists.check(text, processes))?;
    }
    lists.check(&files.run, &run)?;
    let wide = lists.wide();
    let header = Header {
        name: options.name.clone(),
        source: "benchfoundry".into(),
        dialect: DIALECT,
        schema,
        statements: lists.statements(),
        kinds: KINDS.map(String::from).to_vec(),
        fragments: options.fragments,
        log_results: options.log_results,
        checks: Vec::new(),
    };
    let mut writer = SetWriter::create(place, header)?;
    for call in load.iter().flat_map(|process| &process.transactions).flat_map(|transaction| &transaction.operations) {
        let (statement, parameters, _) = lists.call(call, &wide);
        writer.preload(statement, &parameters)?;
    }
    let starts = |processes: &[Process]| processes.iter().any(|process| process.start_ms > 0);
    let is_open = options.open_loop.unwrap_or_else(|| starts(&run));
    let mut client = 0;
    let warm = lists.sessions(&warm, &wide, 1, is_open, 0, &mut client);
    let after_us = warm.last().and_then(|last| last.due_us).map_or(0, |due_us| due_us + AFTER_WARMUP_US);
    warm.iter().try_for_each(|process| writer.warmup(process))?;
    let run = lists.sessions(&run, &wide, 0, is_open, after_us, &mut client);
    run.iter().try_for_each(|process| writer.process(process))?;
    Ok(writer.finish()?)
}

/// The values that a statement wants in a wider type than their set has: by the statement's place, the set and the
/// parameter.
type Wide = BTreeMap<(usize, i64, usize), Literal>;

impl Lists<'_> {
    /// Refuses operations that the lists do not have, and collects the types of parameters.
    fn check(&mut self, text: &Text, processes: &[Process]) -> Result<(), ImportError> {
        let calls = processes.iter().flat_map(|process| &process.transactions).flat_map(|one| &one.operations);
        for call in calls {
            let wrong = |message: String| Err(text.wrong(call.line, message));
            let Some(place) = self.places.get(&call.statement).copied() else {
                let list = self.files.operations.file.display();
                return wrong(format!("statement {} is not in {list}", call.statement));
            };
            let expected = self.types[place].len();
            let found = match call.set {
                None => 0,
                Some(number) => match self.sets.get(&number) {
                    Some(set) => set.values.len(),
                    None => return wrong(format!("set {number} of parameters does not exist")),
                },
            };
            // A statement without parameters ignores its set, as BenchFoundry does.
            if found != expected && expected > 0 {
                let line = call
                    .set
                    .and_then(|number| self.sets.get(&number))
                    .map_or(String::new(), |set| format!(" (line {} of the parameters)", set.line));
                return wrong(format!(
                    "statement {} has {expected} parameters, and the set has {found}{line}",
                    call.statement
                ));
            }
            if let Some(number) = call.custom.filter(|number| !self.custom.contains_key(number)) {
                return wrong(format!("set {number} of custom parameters does not exist"));
            }
            let Some(set) = call.set.and_then(|number| self.sets.get(&number)).filter(|_| expected > 0) else {
                continue;
            };
            self.called.extend(call.set.map(|number| (place, number)));
            for (parameter, (known, value)) in self.types[place].iter_mut().zip(&set.values).enumerate() {
                let Some(kind) = value.kind() else { continue };
                let wider = known.map_or(Some(kind), |(known, _)| wider(known, kind));
                match (wider, *known) {
                    (Some(wider), Some((known, _))) if wider == known => {}
                    (Some(wider), _) => *known = Some((wider, set.line)),
                    (None, first) => {
                        let (first, line) = first.unwrap_or((kind, set.line));
                        let message = format!(
                            "parameter {} of statement {} is of type {kind} (line {} of the parameters), and of type \
                             {first} in line {line} of them; write values of one type",
                            parameter + 1,
                            call.statement,
                            set.line
                        );
                        return wrong(message);
                    }
                }
            }
        }
        Ok(())
    }

    /// Widens the values of the sets that statements have been called with.
    fn wide(&self) -> Wide {
        let mut wide = Wide::new();
        for (place, set) in &self.called {
            let values = self.sets.get(set).map_or(&[][..], |set| &set.values[..]);
            for (parameter, (kind, value)) in self.types[*place].iter().zip(values).enumerate() {
                let Some((kind, _)) = kind.filter(|(kind, _)| value.kind().is_some_and(|own| own != *kind)) else {
                    continue;
                };
                wide.extend(value.widened(kind).map(|value| ((*place, *set, parameter), value)));
            }
        }
        wide
    }

    fn statements(&self) -> Vec<Statement> {
        let types = self.types.iter().map(|types| types.iter().map(|kind| kind.map_or(Type::Text, |(kind, _)| kind)));
        let statement = |(one, types): (&Operation, Vec<Type>)| Statement {
            name: one.number.to_string(),
            text: one.text.clone(),
            parameters: types,
            reads: one.effect.reads,
            writes: one.effect.writes,
            ordered: one.effect.ordered,
        };
        self.operations.iter().zip(types.map(Iterator::collect)).map(statement).collect()
    }

    /// The number of a call's statement, its parameters and its custom parameters. It was checked.
    fn call<'a>(&'a self, call: &Call, wide: &'a Wide) -> (u32, Vec<Parameter<'a>>, Vec<&'a str>) {
        let place = self.places.get(&call.statement).copied().unwrap_or_default();
        let number = call.set.unwrap_or(-1);
        let values = self.sets.get(&number).map_or(&[][..], |set| &set.values[..]);
        let parameters =
            values.iter().take(self.types[place].len()).enumerate().map(|(parameter, value)| {
                Parameter::Value(wide.get(&(place, number, parameter)).unwrap_or(value).value())
            });
        let custom = call.custom.and_then(|number| self.custom.get(&number)).map_or(&[][..], |values| &values[..]);
        (place as u32, parameters.collect(), custom.iter().map(String::as_str).collect())
    }

    /// The processes as sessions, ordered by their due times in an open loop.
    fn sessions<'a>(
        &'a self,
        processes: &[Process],
        wide: &'a Wide,
        kind: usize,
        is_open: bool,
        after_us: u64,
        client: &mut u64,
    ) -> Vec<crate::sql::Process<'a>> {
        let mut sessions: Vec<_> = processes
            .iter()
            .map(|process| {
                let delay_ms = process.transactions.first().map_or(0, |first| first.delay_ms);
                let start_us = process.start_ms.saturating_add(delay_ms).saturating_mul(1_000);
                let due_us = is_open.then(|| start_us.saturating_add(after_us));
                crate::sql::Process { kind, client: 0, due_us, steps: self.steps(process, wide, is_open) }
            })
            .collect();
        // The delay before the first transaction may change the order.
        sessions.sort_by_key(|session| session.due_us);
        for session in &mut sessions {
            session.client = *client;
            *client += 1;
        }
        sessions
    }

    fn steps<'a>(&'a self, process: &Process, wide: &'a Wide, is_open: bool) -> Vec<Step<'a>> {
        let mut steps = Vec::new();
        for transaction in &process.transactions {
            let is_first = steps.is_empty();
            let think_us = if is_first && is_open { 0 } else { transaction.delay_ms.saturating_mul(1_000) };
            let think_us = u32::try_from(think_us).unwrap_or(u32::MAX);
            steps.push(Step { think_us, act: Act::Control(Control::Begin) });
            for call in &transaction.operations {
                let (number, parameters, custom) = self.call(call, wide);
                steps.push(Step { think_us: 0, act: Act::Statement { number, parameters, custom, is_kept: false } });
            }
            steps.push(Step { think_us: 0, act: Act::Control(Control::Commit) });
        }
        steps
    }
}
