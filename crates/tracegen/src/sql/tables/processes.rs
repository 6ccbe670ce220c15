//! From rows of operations to processes, one at a time.

use std::path::Path;

use schemas::files::at;
use schemas::vocabulary::Control;

use super::ImportError;
use super::adjacent::Seen;
use super::arguments::Argument;
use super::lists::Lists;
use super::rows::Place;
use super::steps::{Does, Steps};
use crate::sql;

/// The most steps of a process.
const STEPS_MAX: usize = i16::MAX as usize;

/// The kind of processes whose rows say none.
const KIND: &str = "process";

/// The most kinds of processes: a trace holds the kind in a byte.
const KINDS_MAX: usize = 256;

/// Adds the kind of a row to those that are known.
pub(super) fn add_kind(steps: &Steps, kinds: &mut Vec<String>) -> Result<(), ImportError> {
    let kind = steps.kind().unwrap_or(KIND);
    if !kinds.iter().any(|known| known == kind) {
        if kinds.len() == KINDS_MAX {
            return Err(steps.0.wrong(format!("{kind:?} is one kind more than {KINDS_MAX}, which a trace can have")));
        }
        kinds.push(kind.to_string());
    }
    Ok(())
}

/// A process with values of its own.
pub(super) struct Process {
    name: String,
    /// The row of its first step.
    place: Place,
    kind: usize,
    client: u64,
    due_us: Option<u64>,
    /// Whether it is one of the warm-up.
    pub(super) is_warmup: bool,
    steps: Vec<Step>,
    /// The row that began a transaction which is open.
    open: Option<Place>,
}

struct Step {
    think_us: u32,
    act: Act,
}

enum Act {
    Control(Control),
    Statement { number: u32, arguments: Vec<Argument>, custom: Vec<String>, is_kept: bool },
}

impl Process {
    /// The process as the writer takes it.
    pub(super) fn borrowed(&self) -> sql::Process<'_> {
        sql::Process {
            kind: self.kind,
            client: self.client,
            due_us: self.due_us,
            steps: self.steps.iter().map(Step::borrowed).collect(),
        }
    }

    /// The error of its first row.
    pub(super) fn wrong(&self, message: String) -> ImportError {
        ImportError::Row { place: self.place.clone(), message }
    }
}

impl Step {
    fn borrowed(&self) -> sql::Step<'_> {
        let act = match &self.act {
            Act::Control(control) => sql::Act::Control(*control),
            Act::Statement { number, arguments, custom, is_kept } => sql::Act::Statement {
                number: *number,
                parameters: arguments.iter().map(Argument::parameter).collect(),
                custom: custom.iter().map(String::as_str).collect(),
                is_kept: *is_kept,
            },
        };
        sql::Step { think_us: self.think_us, act }
    }
}

/// Reads processes.
pub(super) struct Processes<'a> {
    path: &'a Path,
    lists: &'a Lists,
    kinds: &'a [String],
    closed_loop: bool,
    steps: Steps,
    seen: Seen,
    count: u64,
    /// The due time of the process before; None before the first one.
    due_us: Option<Option<u64>>,
    /// Whether the process before is measured.
    is_measured: bool,
    /// Whether the current row belongs to the next process.
    is_ahead: bool,
}

impl<'a> Processes<'a> {
    pub(super) fn open(
        path: &'a Path,
        lists: &'a Lists,
        kinds: &'a [String],
        closed_loop: bool,
    ) -> Result<Processes<'a>, ImportError> {
        let steps = Steps::open(path)?;
        let seen = Seen::new();
        Ok(Processes {
            path,
            lists,
            kinds,
            closed_loop,
            steps,
            seen,
            count: 0,
            due_us: None,
            is_measured: false,
            is_ahead: false,
        })
    }

    /// The next process; None after the last one.
    pub(super) fn next_process(&mut self) -> Result<Option<Process>, ImportError> {
        if !self.is_ahead && !self.steps.0.next_row()? {
            return Ok(None);
        }
        let mut process = self.begin()?;
        self.add_step(&mut process)?;
        self.is_ahead = false;
        while self.steps.0.next_row()? {
            if self.steps.process()? != process.name {
                self.is_ahead = true;
                break;
            }
            self.check_same(&process)?;
            self.add_step(&mut process)?;
        }
        if let Some(place) = process.open {
            let message =
                format!("process {} leaves its transaction open; end it with a commit or an abort", process.name);
            return Err(ImportError::Row { place, message });
        }
        Ok(Some(process))
    }

    /// Refuses a process that came twice.
    pub(super) fn finish(self) -> Result<u64, ImportError> {
        let repeated = self.seen.repeated().map_err(at(self.path))?;
        match repeated {
            None => Ok(self.count),
            Some(row) => Err(ImportError::Row {
                place: self.steps.0.place().with_number(row),
                message: "the process began in an earlier row; sort the rows so that those of a process are adjacent"
                    .into(),
            }),
        }
    }

    /// The process that begins in this row.
    fn begin(&mut self) -> Result<Process, ImportError> {
        let name = self.steps.process()?.to_string();
        let place = self.steps.0.place();
        if let Err(descends) = self.seen.add(&name, place.number()).map_err(at(self.path))? {
            return Err(self.steps.0.wrong(format!(
                "process {name} follows process {}; sort the rows so that those of a process are adjacent and numbers of \
                 processes ascend",
                descends.last
            )));
        }
        let kind = self.steps.kind().unwrap_or(KIND);
        let kind = self.kinds.iter().position(|known| known == kind);
        let kind = kind.ok_or_else(|| self.steps.0.wrong("the file has changed during the import; import it again"))?;
        let due_us = self.steps.due_us()?;
        self.check_due(due_us)?;
        let is_warmup = self.steps.warmup()?.unwrap_or_default();
        if is_warmup && self.is_measured {
            return Err(self.steps.0.wrong(format!(
                "process {name} is one of the warm-up, and the process in front of it is not; put the warm-up first"
            )));
        }
        self.is_measured = !is_warmup;
        let client = self.steps.client()?.unwrap_or(self.count);
        self.count += 1;
        let due_us = due_us.filter(|_| !self.closed_loop);
        Ok(Process { name, place, kind, client, due_us, is_warmup, steps: Vec::new(), open: None })
    }

    /// Processes are in the order of their due times, and all of them have one or none has.
    fn check_due(&mut self, due_us: Option<u64>) -> Result<(), ImportError> {
        let before = self.due_us.replace(due_us);
        match (before, due_us) {
            (Some(Some(before)), Some(due_us)) if due_us < before => Err(self.steps.0.wrong(format!(
                "starts at {due_us} us, before the process in front of it ({before} us); sort the processes by due_us"
            ))),
            (Some(Some(_)), None) => Err(self.steps.0.wrong("has no due_us, and the process in front of it has")),
            (Some(None), Some(_)) => Err(self.steps.0.wrong("has a due_us, and the process in front of it has none")),
            _ => Ok(()),
        }
    }

    /// What a process has once is the same in all its rows, or empty after the first.
    fn check_same(&self, process: &Process) -> Result<(), ImportError> {
        let differs = |what: &str| {
            let message = format!(
                "has another {what} than the first row of process {}; repeat it or leave it empty",
                process.name
            );
            Err(self.steps.0.wrong(message))
        };
        if self.steps.kind().is_some_and(|kind| self.kinds.get(process.kind).is_none_or(|own| own != kind)) {
            return differs("kind");
        }
        if self.steps.client()?.is_some_and(|client| client != process.client) {
            return differs("client");
        }
        if self.steps.warmup()?.is_some_and(|is_warmup| is_warmup != process.is_warmup) {
            return differs("warmup");
        }
        let due_us = self.steps.due_us()?;
        if due_us.is_some() && Some(due_us) != self.due_us {
            return differs("due_us");
        }
        Ok(())
    }

    /// Adds the step of this row.
    fn add_step(&self, process: &mut Process) -> Result<(), ImportError> {
        let rows = &self.steps.0;
        if process.steps.len() == STEPS_MAX {
            return Err(rows.wrong(format!("process {} has more than {STEPS_MAX} steps; divide it", process.name)));
        }
        let think_us = self.steps.think_us()?;
        let act = match self.steps.does()? {
            Does::Control(control) => {
                if self.steps.parameters().is_some() {
                    return Err(rows.wrong("begin, commit and abort have no parameters; leave them empty"));
                }
                match (control, process.open.is_some()) {
                    (Control::Begin, true) => {
                        return Err(rows.wrong("begins a transaction inside of another one; add commit before it"));
                    }
                    (Control::Begin, false) => process.open = Some(rows.place()),
                    (_, false) => return Err(rows.wrong("ends a transaction, and none has begun")),
                    (_, true) => process.open = None,
                }
                Act::Control(control)
            }
            Does::Statement(name) => {
                let number = self.lists.number(rows, name)?;
                let arguments = self.lists.arguments(rows, number, self.steps.parameters())?;
                self.keep_results(process, &arguments)?;
                Act::Statement { number, arguments, custom: self.steps.custom()?, is_kept: false }
            }
        };
        process.steps.push(Step { think_us, act });
        Ok(())
    }

    /// Marks the earlier steps whose results a step uses.
    fn keep_results(&self, process: &mut Process, arguments: &[Argument]) -> Result<(), ImportError> {
        for (at, argument) in arguments.iter().enumerate() {
            let Argument::Result(result) = argument else { continue };
            let step = process.steps.get_mut(result.step as usize).map(|step| &mut step.act);
            match step {
                Some(Act::Statement { number, is_kept, .. }) if self.lists.statement(*number).reads => *is_kept = true,
                _ => {
                    let message = format!(
                        "parameter {} is the result of step {}, which is no earlier statement of the process that \
                         returns rows; steps count from 0",
                        at + 1,
                        result.step
                    );
                    return Err(self.steps.0.wrong(message));
                }
            }
        }
        Ok(())
    }
}
