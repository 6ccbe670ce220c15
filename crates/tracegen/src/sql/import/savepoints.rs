//! Savepoints of an open transaction, so that what a session undid is not in the trace.

/// A place in a transaction to which its session can go back.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Savepoint {
    name: String,
    /// How many steps came before it.
    steps: usize,
    /// Whether one of them had failed.
    has_failed: bool,
}

/// The savepoints of a transaction, the latest last.
#[derive(Debug, Default)]
pub struct Savepoints(Vec<Savepoint>);

impl Savepoints {
    /// SAVEPOINT. A later one hides an earlier one of the same name.
    pub fn set(&mut self, text: &str, steps: usize, has_failed: bool) {
        self.0.push(Savepoint { name: name(text), steps, has_failed });
    }

    /// RELEASE: the savepoint goes, with those after it. What they hold stays.
    pub fn release(&mut self, text: &str) {
        if let Some(at) = self.find(text) {
            self.0.truncate(at);
        }
    }

    /// ROLLBACK TO: how many steps are left, and whether one of them had failed. The savepoint stays, and those
    /// after it go. None if there is no such savepoint.
    pub fn go_back(&mut self, text: &str) -> Option<(usize, bool)> {
        let at = self.find(text)?;
        self.0.truncate(at + 1);
        self.0.last().map(|savepoint| (savepoint.steps, savepoint.has_failed))
    }

    fn find(&self, text: &str) -> Option<usize> {
        let name = name(text);
        self.0.iter().rposition(|savepoint| savepoint.name == name)
    }
}

/// The name of a savepoint, which is the last word of its statement. Without quotes it is the same in capitals.
fn name(text: &str) -> String {
    let text = text.trim_end_matches(|letter: char| letter == ';' || letter.is_whitespace());
    for quote in ['"', '`'] {
        let quoted = text.strip_suffix(quote).and_then(|text| text.rsplit(quote).next());
        if let Some(quoted) = quoted {
            return quoted.to_string();
        }
    }
    text.rsplit(char::is_whitespace).next().unwrap_or_default().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn going_back_keeps_the_savepoint_and_drops_later_ones() {
        let mut savepoints = Savepoints::default();
        savepoints.set("SAVEPOINT a", 1, false);
        savepoints.set("savepoint \"B c\";", 2, false);
        savepoints.set("SAVEPOINT a", 3, true);
        assert_eq!(savepoints.go_back("ROLLBACK TO SAVEPOINT A ;"), Some((3, true)));
        assert_eq!(savepoints.go_back("ROLLBACK TO \"B c\""), Some((2, false)));
        assert_eq!(savepoints.go_back("ROLLBACK WORK TO a"), Some((1, false)));
        assert_eq!(savepoints.go_back("ROLLBACK TO `B c`"), None);
        savepoints.release("RELEASE a");
        assert_eq!(savepoints.go_back("ROLLBACK TO a"), None);
    }
}
