//! What a statement is by its first words, before a parser looks at it.

use super::lexer::Dialect;
use super::syntax::UNPARSABLE;

/// What a statement is for the import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// It reads or changes rows.
    Data,
    /// A transaction begins.
    Begin,
    /// The transaction ends, and has happened; with `AND CHAIN` another one begins.
    Commit {
        /// Whether another transaction begins.
        chains: bool,
    },
    /// The transaction ends, and has not happened.
    Abort {
        /// Whether another transaction begins.
        chains: bool,
    },
    /// A savepoint is set; see [`Savepoints`](super::savepoints::Savepoints).
    Savepoint,
    /// A savepoint is released.
    Release,
    /// What came after a savepoint is undone.
    GoBack,
    /// From now on statements form transactions without a BEGIN, or no longer; see [`autocommit`].
    Autocommit,
    /// It changes the schema.
    Definition,
    /// It is not taken, for this reason.
    Skipped(&'static str),
}

/// Settings of a session.
pub const SETTING: &str = "SET, RESET, SHOW, DISCARD, USE: settings of a session";
/// Savepoints.
pub const SAVEPOINT: &str = "SAVEPOINT, RELEASE, ROLLBACK TO: what they undo is left out";
/// Two-phase commit.
pub const TWO_PHASE: &str = "PREPARE TRANSACTION, COMMIT PREPARED, XA: two-phase commit";
/// COPY.
pub const COPY: &str = "COPY, LOAD DATA: rows outside of the log";
/// Prepared statements of SQL.
pub const PREPARED: &str = "PREPARE, EXECUTE, DEALLOCATE of SQL";
/// Cursors.
pub const CURSOR: &str = "DECLARE, FETCH, MOVE, CLOSE: cursors";
/// Maintenance.
pub const MAINTENANCE: &str = "VACUUM, ANALYZE, REINDEX and other maintenance";
/// Code.
pub const CODE: &str = "DO: code or expressions, without rows";
/// Plans.
pub const EXPLAIN: &str = "EXPLAIN, DESCRIBE: plans and columns";
/// Locks.
pub const LOCK: &str = "LOCK, UNLOCK: locks of tables";
/// Everything else that is known.
pub const NO_DATA: &str = "statement neither reads nor changes rows";

/// The class of a statement by its shape.
pub fn of(shape: &str, dialect: Dialect) -> Class {
    let upper: String = shape.chars().take(400).map(|letter| letter.to_ascii_uppercase()).collect();
    let mut words = upper.split([' ', '(', '"', '=', '\'']).filter(|word| !word.is_empty());
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let chains = upper.contains(" AND CHAIN");
    match first {
        "SELECT" | "INSERT" | "UPDATE" | "DELETE" | "WITH" | "VALUES" | "TABLE" | "MERGE" | "TRUNCATE" | "CALL"
        | "REPLACE" => Class::Data,
        "BEGIN" => Class::Begin,
        "START" if second == "TRANSACTION" => Class::Begin,
        "COMMIT" | "ROLLBACK" if second == "PREPARED" => Class::Skipped(TWO_PHASE),
        "COMMIT" | "END" => Class::Commit { chains },
        "ROLLBACK" | "ABORT" if words.any(|word| word == "TO") || second == "TO" => Class::GoBack,
        "ROLLBACK" | "ABORT" => Class::Abort { chains },
        "SAVEPOINT" => Class::Savepoint,
        "RELEASE" => Class::Release,
        "CREATE" | "ALTER" | "DROP" | "GRANT" | "REVOKE" | "COMMENT" | "REASSIGN" | "SECURITY" | "RENAME" => {
            Class::Definition
        }
        "SET" if dialect == Dialect::Mysql && upper.contains("AUTOCOMMIT") => Class::Autocommit,
        "SET" | "RESET" | "SHOW" | "DISCARD" | "USE" => Class::Skipped(SETTING),
        "PREPARE" if second == "TRANSACTION" => Class::Skipped(TWO_PHASE),
        "XA" => Class::Skipped(TWO_PHASE),
        "PREPARE" | "EXECUTE" | "DEALLOCATE" => Class::Skipped(PREPARED),
        "COPY" | "LOAD" => Class::Skipped(COPY),
        "DECLARE" | "FETCH" | "MOVE" | "CLOSE" => Class::Skipped(CURSOR),
        "VACUUM" | "ANALYZE" | "ANALYSE" | "REINDEX" | "CLUSTER" | "CHECKPOINT" | "REFRESH" | "OPTIMIZE" | "FLUSH"
        | "CHECK" | "REPAIR" => Class::Skipped(MAINTENANCE),
        // A query in parentheses, or one after a hint.
        _ if shape.starts_with('(') || shape.starts_with("/*") => Class::Data,
        "DO" => Class::Skipped(CODE),
        "EXPLAIN" | "DESCRIBE" | "DESC" => Class::Skipped(EXPLAIN),
        "LOCK" | "UNLOCK" => Class::Skipped(LOCK),
        "LISTEN" | "NOTIFY" | "UNLISTEN" | "START" | "HANDLER" | "KILL" | "HELP" | "SIGNAL" | "BINLOG" => {
            Class::Skipped(NO_DATA)
        }
        _ => Class::Skipped(UNPARSABLE),
    }
}

/// Whether a `SET autocommit = …` turns it on.
pub fn autocommit(text: &str) -> bool {
    let value = text.rsplit('=').next().unwrap_or_default().trim().to_ascii_lowercase();
    !matches!(value.as_str(), "0" | "off" | "false")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_told_apart_by_their_first_words() {
        for (shape, expect) in [
            ("select a FROM t", Class::Data),
            ("(SELECT a) UNION (SELECT b)", Class::Data),
            ("INSERT INTO t VALUES (1)", Class::Data),
            ("begin", Class::Begin),
            ("START TRANSACTION READ ONLY", Class::Begin),
            ("START REPLICATION", Class::Skipped(NO_DATA)),
            ("END", Class::Commit { chains: false }),
            ("COMMIT AND CHAIN", Class::Commit { chains: true }),
            ("COMMIT PREPARED 'x'", Class::Skipped(TWO_PHASE)),
            ("ROLLBACK", Class::Abort { chains: false }),
            ("ROLLBACK TO SAVEPOINT a", Class::GoBack),
            ("ROLLBACK WORK TO a", Class::GoBack),
            ("SAVEPOINT a", Class::Savepoint),
            ("RELEASE SAVEPOINT a", Class::Release),
            ("CREATE TABLE t (a int)", Class::Definition),
            ("VACUUM t", Class::Skipped(MAINTENANCE)),
            ("COPY t FROM STDIN", Class::Skipped(COPY)),
            ("SET search_path = a", Class::Skipped(SETTING)),
            ("DO $$ BEGIN END $$", Class::Skipped(CODE)),
            ("EXPLAIN ANALYZE DELETE FROM t", Class::Skipped(EXPLAIN)),
            ("NOTIFY a", Class::Skipped(NO_DATA)),
            ("SELEC 1", Class::Skipped(UNPARSABLE)),
        ] {
            assert_eq!(of(shape, Dialect::Postgres), expect, "{shape}");
        }
        assert_eq!(of("SET autocommit=0", Dialect::Mysql), Class::Autocommit);
        assert!(!autocommit("SET autocommit=0") && autocommit("set @@session.autocommit = ON"));
    }
}
