//! Errors of the driver: what became of the statement, in words, and what a user should do about them.

use scylla::errors::{
    ConnectionError, ConnectionPoolError, ConnectionSetupRequestErrorKind, DbError, ExecutionError, MetadataError,
    NewSessionError, PrepareError, RequestAttemptError,
};

use crate::stores::Fate;
use crate::stores::link::Refusal;

/// What became of a statement.
pub fn fate(error: &ExecutionError) -> Fate {
    match error {
        // Nothing was sent.
        ExecutionError::BadQuery(_)
        | ExecutionError::EmptyPlan
        | ExecutionError::PrepareError(_)
        | ExecutionError::ConnectionPoolError(_) => Fate::Refused,
        ExecutionError::LastAttemptError(error) => fate_of_attempt(error),
        _ => Fate::Lost,
    }
}

fn fate_of_attempt(error: &RequestAttemptError) -> Fate {
    match error {
        RequestAttemptError::SerializationError(_)
        | RequestAttemptError::CqlRequestSerialization(_)
        | RequestAttemptError::UnableToAllocStreamId => Fate::Refused,
        // The coordinator knows it before it asks a replica.
        RequestAttemptError::DbError(
            DbError::SyntaxError
            | DbError::Invalid
            | DbError::Unauthorized
            | DbError::ConfigError
            | DbError::AlreadyExists { .. }
            | DbError::Unprepared { .. }
            | DbError::IsBootstrapping
            | DbError::Unavailable { .. },
            _,
        ) => Fate::Refused,
        // Some replicas may have it, or may get it later.
        _ => Fate::Lost,
    }
}

/// An error of a statement in one line.
pub fn words(error: &ExecutionError) -> String {
    match error {
        ExecutionError::EmptyPlan => "cannot connect to any node".to_string(),
        ExecutionError::ConnectionPoolError(error) => of_pool(error),
        ExecutionError::PrepareError(error) => of_prepare(error),
        ExecutionError::LastAttemptError(error) => of_attempt(error),
        error => in_one_line(error),
    }
}

/// An error of the preparation of a statement.
pub fn of_prepare(error: &PrepareError) -> String {
    match error {
        PrepareError::ConnectionPoolError(error) => of_pool(error),
        PrepareError::AllAttemptsFailed { first_attempt } => of_attempt(first_attempt),
        error => in_one_line(error),
    }
}

/// An error of the first connection.
pub fn of_session(error: &NewSessionError) -> String {
    match error {
        NewSessionError::FailedToResolveAnyHostname(hosts) => format!("cannot connect: no host {}", hosts.join(", ")),
        NewSessionError::MetadataError(MetadataError::ConnectionPoolError(error)) => of_pool(error),
        error => format!("cannot connect: {}", in_one_line(error)),
    }
}

fn of_pool(error: &ConnectionPoolError) -> String {
    match error {
        ConnectionPoolError::Broken { last_connection_error } => {
            format!("cannot connect: {}", of_connection(last_connection_error))
        }
        ConnectionPoolError::Initializing => "cannot connect: there is no connection yet".to_string(),
        error => format!("cannot connect: {}", in_one_line(error)),
    }
}

fn of_connection(error: &ConnectionError) -> String {
    match error {
        ConnectionError::ConnectTimeout => "timed out".to_string(),
        ConnectionError::IoError(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            "connection refused".to_string()
        }
        ConnectionError::IoError(error) => error.to_string(),
        ConnectionError::ConnectionSetupRequestError(error) => match error.get_error() {
            ConnectionSetupRequestErrorKind::DbError(_, message) => message.clone(),
            ConnectionSetupRequestErrorKind::MissingAuthentication => NO_USER.to_string(),
            _ => in_one_line(error),
        },
        error => in_one_line(error),
    }
}

/// What the driver says of it is for programmers.
const NO_USER: &str = "the server requires a user";

fn of_attempt(error: &RequestAttemptError) -> String {
    match error {
        RequestAttemptError::DbError(_, message) if !message.is_empty() => one_line(message),
        error => in_one_line(error),
    }
}

fn in_one_line(error: &dyn std::error::Error) -> String {
    one_line(&error.to_string())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a user should do about an error, by its words.
pub fn advice(words: &str) -> Option<&'static str> {
    match () {
        _ if words.contains("connection refused") => Some("is the server running, and is the address right?"),
        _ if words.contains(NO_USER) => {
            Some("give user and password in the URL: cassandra://USER:PASSWORD@HOST/KEYSPACE")
        }
        _ if words.contains("credentials") || words.contains("username and/or password") => {
            Some("check user and password")
        }
        _ if words.contains("onnection broken") => {
            Some("does the server require TLS? Encore does not encrypt connections to Cassandra")
        }
        _ if words.contains("consistency level ALL") => {
            Some("a load and a check need every replica: start the nodes that are down")
        }
        _ => None,
    }
}

impl From<ExecutionError> for Refusal {
    fn from(error: ExecutionError) -> Refusal {
        Refusal { fate: fate(&error), message: words(&error) }
    }
}

#[cfg(test)]
mod tests {
    use scylla::errors::WriteType;
    use scylla::statement::Consistency;

    use super::*;

    fn of_server(error: DbError) -> ExecutionError {
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, "some\n words".to_string()))
    }

    #[test]
    fn what_no_replica_was_asked_did_not_happen() {
        let unavailable = DbError::Unavailable { consistency: Consistency::Quorum, required: 2, alive: 1 };
        for error in [unavailable, DbError::Invalid, DbError::Unauthorized, DbError::IsBootstrapping] {
            assert_eq!(fate(&of_server(error.clone())), Fate::Refused, "{error:?}");
        }
        assert_eq!(fate(&ExecutionError::EmptyPlan), Fate::Refused);
        assert_eq!(fate(&ExecutionError::ConnectionPoolError(ConnectionPoolError::Initializing)), Fate::Refused);
    }

    #[test]
    fn what_a_replica_may_have_done_is_of_unknown_fate() {
        let timeout = DbError::WriteTimeout {
            consistency: Consistency::Quorum,
            received: 1,
            required: 2,
            write_type: WriteType::Simple,
        };
        for error in [timeout, DbError::ServerError, DbError::Overloaded] {
            assert_eq!(fate(&of_server(error.clone())), Fate::Lost, "{error:?}");
        }
        assert_eq!(fate(&ExecutionError::RequestTimeout(std::time::Duration::ZERO)), Fate::Lost);
        assert_eq!(words(&of_server(DbError::ServerError)), "some words");
    }
}
