//! The report: a section for each group. A command replaces the sections of the groups that it
//! measures, and keeps the others, so that the groups can be measured one by one.

use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::sample::Sample;
use crate::table;

/// All sections, in the order of their first measurements.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// The sections.
    pub sections: Vec<Section>,
}

/// The results of a group.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Section {
    /// The group.
    pub group: String,
    /// Where it was measured.
    pub machine: Machine,
    /// The command that measured it.
    pub command: String,
    /// The tools.
    pub tools: Vec<Tool>,
    /// All samples as measured.
    pub samples: Vec<Sample>,
    /// What is demanded of the figures, and whether they are so.
    pub goals: Vec<String>,
    /// Why the measurement ended early.
    pub failure: Option<String>,
}

/// A tool of a group, or the reason why it was skipped.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tool {
    /// The tool.
    pub name: String,
    /// Its version; `None` when it was skipped.
    pub version: Option<String>,
    /// Its settings, or the reason why it was skipped.
    pub remark: String,
}

impl Report {
    /// Reads FILE.json. Without such a file the report is empty.
    pub fn read(output: &Path) -> anyhow::Result<Report> {
        let path = output.with_extension("json");
        if !path.exists() {
            return Ok(Report::default());
        }
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| {
            format!("{} is not a report of this program; choose another file with -o, or remove it", path.display())
        })
    }

    /// The section of a group.
    pub fn section(&self, group: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.group == group)
    }

    /// Puts a section in the place of the group's former one, or at the end.
    pub fn put(&mut self, section: Section) {
        match self.sections.iter_mut().find(|former| former.group == section.group) {
            Some(former) => *former = section,
            None => self.sections.push(section),
        }
    }

    /// Writes FILE.md and FILE.json.
    pub fn write(&self, output: &Path) -> anyhow::Result<()> {
        let json = serde_json::to_string_pretty(self)? + "\n";
        for (extension, content) in [("md", table::markdown(self)), ("json", json)] {
            let path = output.with_extension(extension);
            schemas::files::write_atomically(&path, content.as_bytes())
                .with_context(|| format!("cannot write {}; choose another file with -o", path.display()))?;
        }
        Ok(())
    }
}

impl Section {
    /// A section without results.
    pub fn new(group: &str, machine: &Machine, command: &str) -> Section {
        Section {
            group: group.into(),
            machine: machine.clone(),
            command: command.into(),
            tools: Vec::new(),
            samples: Vec::new(),
            goals: Vec::new(),
            failure: None,
        }
    }

    /// Adds a tool that takes part.
    pub fn here(&mut self, name: &str, version: &str, settings: &str) {
        self.add(name, Some(version), settings);
    }

    /// Adds a tool that is skipped.
    pub fn missing(&mut self, name: &str, why: &str) {
        eprintln!("benches: skipped {name}: {why}");
        self.add(name, None, why.lines().next().unwrap_or_default());
    }

    /// A tool that the section has already is replaced.
    fn add(&mut self, name: &str, version: Option<&str>, remark: &str) {
        let tool = Tool { name: name.into(), version: version.map(str::to_string), remark: remark.into() };
        match self.tools.iter_mut().find(|tool| tool.name == name) {
            Some(former) => *former = tool,
            None => self.tools.push(tool),
        }
    }

    /// Adds the result of a search for a tool, and returns the tool if it was found.
    pub fn find<T>(
        &mut self,
        name: &str,
        settings: &str,
        found: anyhow::Result<T>,
        version: impl Fn(&T) -> String,
    ) -> Option<T> {
        match found {
            Ok(tool) => {
                self.here(name, &version(&tool), settings);
                Some(tool)
            }
            Err(error) => {
                self.missing(name, &format!("{error:#}"));
                None
            }
        }
    }

    /// How often a tool was measured in a case.
    pub fn rounds(&self, case: &str, threads: u32, tool: &str) -> usize {
        let is_it = |sample: &&Sample| sample.case == case && sample.threads == threads && sample.tool == tool;
        self.samples.iter().filter(is_it).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Figures;

    #[test]
    fn commands_replace_their_own_sections_only() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("figures");
        let machine = Machine::current();
        let mut report = Report::read(&output).unwrap();
        for (group, command) in [("A", "first"), ("B", "second"), ("A", "third")] {
            let mut section = Section::new(group, &machine, command);
            let figures = Figures { operations_per_s: 7.0, ..Figures::default() };
            section.samples.push(Sample { case: "reads".into(), threads: 4, tool: "x".into(), figures });
            report.put(section);
        }
        report.write(&output).unwrap();
        let read = Report::read(&output).unwrap();
        let commands: Vec<_> = read.sections.iter().map(|section| (&*section.group, &*section.command)).collect();
        assert_eq!(commands, [("A", "third"), ("B", "second")]);
        let section = read.section("A").unwrap();
        assert_eq!((section.rounds("reads", 4, "x"), section.rounds("reads", 1, "x")), (1, 0));
        assert!(std::fs::read_to_string(output.with_extension("md")).unwrap().contains("| reads | 4 | x | 7 |"));
    }

    #[test]
    fn another_file_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("figures");
        std::fs::write(output.with_extension("json"), "{}").unwrap();
        let error = format!("{:#}", Report::read(&output).unwrap_err());
        assert!(error.contains("figures.json is not a report of this program; choose another file with -o"), "{error}");
    }
}
