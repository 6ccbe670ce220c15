//! What an error of the driver means: for a write's fate, and in words for users.

use mongodb::error::{Error, ErrorKind, SYSTEM_OVERLOADED_ERROR, TRANSIENT_TRANSACTION_ERROR, WriteFailure};

use crate::stores::Fate;

/// Error codes (MongoDB's manual, "Error Codes").
mod code {
    pub const HOST_UNREACHABLE: i32 = 6;
    pub const HOST_NOT_FOUND: i32 = 7;
    pub const UNAUTHORIZED: i32 = 13;
    pub const NETWORK_TIMEOUT: i32 = 89;
    pub const MAX_TIME_EXPIRED: i32 = 50;
    pub const WRITE_CONCERN_TIMEOUT: i32 = 64;
    pub const SHUTDOWN_IN_PROGRESS: i32 = 91;
    pub const WRITE_CONFLICT: i32 = 112;
    pub const PRIMARY_STEPPED_DOWN: i32 = 189;
    pub const EXCEEDED_TIME_LIMIT: i32 = 262;
    pub const SOCKET_EXCEPTION: i32 = 9001;
    pub const INTERRUPTED_AT_SHUTDOWN: i32 = 11600;
    pub const INTERRUPTED: i32 = 11601;
    pub const INTERRUPTED_BY_STATE_CHANGE: i32 = 11602;
    pub const NOT_PRIMARY_OR_SECONDARY: i32 = 13436;
}

/// What became of the command that an error ended.
pub fn fate(error: &Error) -> Fate {
    match &*error.kind {
        ErrorKind::Command(command) => match command.code {
            code::WRITE_CONFLICT => Fate::RolledBack,
            // The driver gives this label to lost connections too; here the server has set it.
            _ if error.contains_label(TRANSIENT_TRANSACTION_ERROR) => Fate::RolledBack,
            code => of_code(code),
        },
        ErrorKind::Write(WriteFailure::WriteError(write)) if write.code == code::WRITE_CONFLICT => Fate::RolledBack,
        ErrorKind::Write(WriteFailure::WriteError(write)) => of_code(write.code),
        // The write is done, and may be lost later.
        ErrorKind::Write(WriteFailure::WriteConcernError(_)) => Fate::Lost,
        // The driver marks what went wrong before a connection was usable.
        ErrorKind::Io(_) if error.contains_label(SYSTEM_OVERLOADED_ERROR) => Fate::Refused,
        // Nothing was sent.
        ErrorKind::ServerSelection { .. }
        | ErrorKind::DnsResolve { .. }
        | ErrorKind::Authentication { .. }
        | ErrorKind::InvalidTlsConfig { .. }
        | ErrorKind::InvalidArgument { .. }
        | ErrorKind::IncompatibleServer { .. }
        | ErrorKind::SessionsNotSupported
        | ErrorKind::Transaction { .. }
        | ErrorKind::Shutdown => Fate::Refused,
        // A broken connection, or an answer that cannot be read. Also a cleared pool, whose
        // connections are interrupted at any point.
        _ => Fate::Lost,
    }
}

/// Whether the driver found no server within its time limit.
pub fn is_without_server(error: &Error) -> bool {
    matches!(*error.kind, ErrorKind::ServerSelection { .. })
}

/// Most codes say that the server has not done the command. The exceptions are codes of a server
/// that went away or was stopped during the command, or that called such a server.
fn of_code(code: i32) -> Fate {
    match code {
        code::HOST_UNREACHABLE
        | code::HOST_NOT_FOUND
        | code::NETWORK_TIMEOUT
        | code::MAX_TIME_EXPIRED
        | code::WRITE_CONCERN_TIMEOUT
        | code::SHUTDOWN_IN_PROGRESS
        | code::PRIMARY_STEPPED_DOWN
        | code::EXCEEDED_TIME_LIMIT
        | code::SOCKET_EXCEPTION
        | code::INTERRUPTED_AT_SHUTDOWN
        | code::INTERRUPTED
        | code::INTERRUPTED_BY_STATE_CHANGE
        | code::NOT_PRIMARY_OR_SECONDARY => Fate::Lost,
        _ => Fate::Refused,
    }
}

/// An error in one line. The driver's own text contains the server's whole answer.
pub fn words(error: &Error) -> String {
    match &*error.kind {
        ErrorKind::Command(command) => format!("{} ({})", command.message, command.code),
        ErrorKind::Write(WriteFailure::WriteError(write)) => format!("{} ({})", write.message, write.code),
        ErrorKind::Write(WriteFailure::WriteConcernError(concern)) => {
            format!("write concern not met: {} ({})", concern.message, concern.code)
        }
        ErrorKind::InsertMany(insert) => {
            let errors = insert.write_errors.as_deref().unwrap_or_default();
            match (errors.first(), &insert.write_concern_error) {
                (Some(first), _) => format!("{} ({}), in all {} of them", first.message, first.code, errors.len()),
                (None, Some(concern)) => format!("write concern not met: {} ({})", concern.message, concern.code),
                (None, None) => error.kind.to_string(),
            }
        }
        ErrorKind::ServerSelection { message, .. } => match cause(message) {
            Some(cause) => format!("cannot connect: {cause}"),
            None => "found no server to use within the time limit".to_string(),
        },
        // An error that this store has found itself.
        ErrorKind::Custom(_) => error.get_custom::<String>().cloned().unwrap_or_default(),
        kind => kind.to_string(),
    }
}

/// The last error of a connection, in the driver's description of all servers.
fn cause(description: &str) -> Option<String> {
    let (_, error) = description.rsplit_once("I/O error: ")?;
    let error = error.split([',', '}']).next()?.split(" (os error").next()?.trim();
    let first = error.chars().next()?.to_lowercase();
    Some(first.chain(error.chars().skip(1)).collect())
}

/// What to do about an error, if there is any advice.
pub fn advice(error: &Error, database: &str) -> Option<String> {
    match &*error.kind {
        ErrorKind::Authentication { .. } => Some(
            "check the user and the password of the URL, and authSource= for the database that the user is of".into(),
        ),
        ErrorKind::Command(command) if command.code == code::UNAUTHORIZED => Some(format!(
            "grant the user the role readWrite on {database} and on {database}_encore_loaded, or add reset=reload to \
             the URL"
        )),
        ErrorKind::ServerSelection { message, .. } if cause(message).is_some() => {
            Some("is the server running, and is the address right?".into())
        }
        ErrorKind::ServerSelection { .. } => {
            Some("is the server running, is the address right, and has its replica set a primary?".into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mongodb::bson::{Document, deserialize_from_document, doc};
    use mongodb::error::{CommandError, WriteConcernError, WriteError};

    fn error(kind: impl Into<ErrorKind>) -> Error {
        Error::from(kind.into())
    }

    fn command(code: i32) -> Error {
        let answer: Document = doc! { "code": code, "codeName": "Some", "errmsg": "words" };
        let command: CommandError = deserialize_from_document(answer).unwrap();
        error(ErrorKind::Command(command))
    }

    #[test]
    fn the_cause_is_taken_out_of_the_description_of_the_servers() {
        let description = "Server selection timeout: No available servers. Topology: { Type: Unknown, Servers: [ { \
                           Address: 127.0.0.1:1, Type: Unknown, Error: Kind: I/O error: Connection refused (os error \
                           111), labels: {\"RetryableError\"}, source: None, server response: None } ] }";
        assert_eq!(cause(description).as_deref(), Some("connection refused"));
        assert_eq!(cause("Server selection timeout: No available servers. Topology: { Type: Unknown }"), None);
    }

    #[test]
    fn the_server_says_what_did_not_happen() {
        // Not primary (two codes), no document of that kind, not allowed, too large.
        for code in [10107, 13435, 2, 13, 10334] {
            assert_eq!(fate(&command(code)), Fate::Refused, "{code}");
        }
        let duplicate: WriteError =
            deserialize_from_document(doc! { "code": 11000, "errmsg": "E11000 duplicate key" }).unwrap();
        assert_eq!(fate(&error(ErrorKind::Write(WriteFailure::WriteError(duplicate)))), Fate::Refused);
        assert_eq!(fate(&command(112)), Fate::RolledBack);
    }

    #[test]
    fn what_may_have_happened_is_of_unknown_fate() {
        for code in [91, 189, 11600, 11602, 13436, 9001] {
            assert_eq!(fate(&command(code)), Fate::Lost, "{code}");
        }
        let late: WriteConcernError =
            deserialize_from_document(doc! { "code": 64, "codeName": "WriteConcernFailed", "errmsg": "late" }).unwrap();
        let late = error(ErrorKind::Write(WriteFailure::WriteConcernError(late)));
        assert_eq!(fate(&late), Fate::Lost);
        assert_eq!(words(&late), "write concern not met: late (64)");
        assert_eq!(fate(&error(std::io::ErrorKind::ConnectionReset)), Fate::Lost);
        assert_eq!(fate(&error(std::io::ErrorKind::TimedOut)), Fate::Lost);
    }
}
