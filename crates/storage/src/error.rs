//! What can go wrong with object storage, in words that name the URL and say what to do.

use std::error::Error;

use object_store::client::{HttpError, HttpErrorKind};
use schemas::files::FileError;

use crate::place::{Scheme, Url};

/// Why objects cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The scheme of a URL is not known.
    #[error(
        "{scheme}:// is not a place that Encore knows; give a local folder, s3://BUCKET/PREFIX or gs://BUCKET/PREFIX"
    )]
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// A URL is wrong.
    #[error("{url}: {message}")]
    Url {
        /// The URL, without what may be a secret.
        url: String,
        /// What is wrong, and what to do.
        message: String,
    },
    /// A variable of the environment is wrong.
    #[error("{variable}: {message}")]
    Setting {
        /// The variable.
        variable: &'static str,
        /// What is wrong, and what to do.
        message: String,
    },
    /// There are no credentials.
    #[error("{url}: there are no credentials ({cause}); {}", how_to_sign_in(.url.scheme))]
    NoCredentials {
        /// The prefix.
        url: Url,
        /// Why there are none.
        cause: String,
    },
    /// The store refuses the credentials.
    #[error(
        "{url}: the store refuses these credentials ({cause}); check that they are right and allow this bucket: {}",
        how_to_sign_in(.url.scheme)
    )]
    Refused {
        /// The prefix or object.
        url: Url,
        /// What the store says.
        cause: String,
    },
    /// The bucket does not exist.
    #[error("{url}: there is no bucket {}; create it, or correct the URL or the endpoint", .url.bucket)]
    NoBucket {
        /// The prefix or object.
        url: Url,
    },
    /// The object does not exist.
    #[error("{url}: there is no such object; check the URL, or write it first")]
    NoObject {
        /// The object.
        url: Url,
    },
    /// The store does not answer.
    #[error("{url}: cannot reach {endpoint} ({cause}); check the network and {}", endpoint_variable(.url.scheme))]
    Unreachable {
        /// The prefix or object.
        url: Url,
        /// The host, or the name of the service.
        endpoint: String,
        /// The innermost cause.
        cause: String,
    },
    /// The store fails in another way.
    #[error("{url}: the store failed: {cause}")]
    Failed {
        /// The prefix or object.
        url: Url,
        /// What the store or the connection says.
        cause: String,
    },
    /// A local file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The user asked to stop.
    #[error("{url}: interrupted; no object appears in part")]
    Interrupted {
        /// The prefix.
        url: Url,
    },
    /// The program cannot start what it needs for connections.
    #[error("cannot start connections to object storage: {0}")]
    Start(#[source] std::io::Error),
}

fn how_to_sign_in(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::S3 => "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        Scheme::Gs => "set GOOGLE_APPLICATION_CREDENTIALS to the file of a service account",
    }
}

fn endpoint_variable(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::S3 => "AWS_ENDPOINT_URL (Amazon's own: AWS_REGION)",
        Scheme::Gs => "GOOGLE_BASE_URL, if it is set",
    }
}

/// Codes of S3 that mean wrong credentials, also where the status is another one than 403.
const CREDENTIAL_CODES: [&str; 9] = [
    "AccessDenied",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "InvalidSecurity",
    "InvalidToken",
    "ExpiredToken",
    "AuthorizationHeaderMalformed",
    "RequestTimeTooSkewed",
    "AccountProblem",
];

impl StorageError {
    /// Whether the user can correct it. Otherwise the store, the network or the disk is the cause.
    pub fn is_of_user(&self) -> bool {
        match self {
            StorageError::Unreachable { .. } | StorageError::Failed { .. } | StorageError::Start(_) => false,
            StorageError::File(error) => schemas::files::is_about_the_name(error.source.kind()),
            _ => true,
        }
    }

    /// An error of the library, in words. `endpoint` is the host or the name of the service.
    pub(crate) fn of(error: &object_store::Error, url: &Url, endpoint: &str) -> StorageError {
        let url = url.clone();
        let chain = Chain::of(error);
        let code = chain.tag("Code");
        let status = |number: &str| chain.text.contains(&format!("status code: {number}"));
        match code.as_deref() {
            Some("NoSuchBucket") => return StorageError::NoBucket { url },
            Some("NoSuchKey") => return StorageError::NoObject { url },
            _ => {}
        }
        let is_refused =
            matches!(error, object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. })
                || status("401")
                || status("403")
                || code.as_deref().is_some_and(|code| CREDENTIAL_CODES.contains(&code));
        if is_refused {
            return StorageError::Refused { url, cause: chain.said("status 403") };
        }
        if matches!(error, object_store::Error::NotFound { .. }) {
            return StorageError::NoObject { url };
        }
        if chain.is_unreachable {
            return StorageError::Unreachable { url, endpoint: endpoint.to_string(), cause: chain.innermost };
        }
        let cause = chain.said(&chain.innermost);
        StorageError::Failed { url, cause }
    }
}

/// What an error and its causes say.
struct Chain {
    text: String,
    innermost: String,
    is_unreachable: bool,
}

/// The most of a text from outside that a message shows.
const SHOWN_CHARS: usize = 300;

impl Chain {
    fn of(error: &object_store::Error) -> Chain {
        let mut chain = Chain { text: error.to_string(), innermost: String::new(), is_unreachable: false };
        let mut next: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(error) = next {
            if let Some(http) = error.downcast_ref::<HttpError>() {
                chain.is_unreachable |= matches!(http.kind(), HttpErrorKind::Connect | HttpErrorKind::Timeout);
            }
            chain.innermost = shown(&error.to_string());
            next = error.source();
        }
        chain
    }

    /// The content of an element of the store's answer, which is XML.
    fn tag(&self, name: &str) -> Option<String> {
        let (_, rest) = self.text.split_once(&format!("<{name}>"))?;
        let (content, _) = rest.split_once(&format!("</{name}>"))?;
        Some(shown(content))
    }

    /// The code and the message of the store's answer, if it has any.
    fn said(&self, otherwise: &str) -> String {
        match (self.tag("Code"), self.tag("Message")) {
            (Some(code), Some(message)) => format!("{code}: {}", message.trim_end_matches('.')),
            (Some(code), None) => code,
            _ => otherwise.to_string(),
        }
    }
}

/// The first part of a text from outside, on one line.
fn shown(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(SHOWN_CHARS).collect::<String>().trim().to_string()
}
