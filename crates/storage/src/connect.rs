//! Connections to a store: settings and credentials from the environment, time limits, and TLS where it is needed.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::{BackoffConfig, ClientConfigKey, ObjectStore, RetryConfig};

use crate::error::StorageError;
use crate::place::{Scheme, Url};

/// A store, and its host or name for messages.
pub(crate) struct Connection {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) endpoint: String,
}

/// The limits of one request. A large part may take its time, so the whole has no limit of its own: what counts is
/// that bytes flow.
const LIMITS: [(ClientConfigKey, &str); 3] = [
    (ClientConfigKey::ConnectTimeout, "5 seconds"),
    (ClientConfigKey::ReadTimeout, "60 seconds"),
    (ClientConfigKey::Timeout, "1 day"),
];

/// Retries of one request. With the limit for connections, a store that is not there is reported within 20 seconds.
fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(2),
            base: 2.0,
        },
        max_retries: 6,
        retry_timeout: Duration::from_secs(12),
    }
}

/// Variables of an environment: names and values.
pub(crate) type Variables = [(String, String)];

/// Connects to the store of a URL. It asks the store for nothing yet; but if no variable has credentials, it asks the
/// cloud's own machine for them.
pub(crate) async fn connect(url: &Url, variables: &Variables) -> Result<Connection, StorageError> {
    // It is set once for the process; the second call changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match url.scheme {
        Scheme::S3 => s3(url, variables).await,
        Scheme::Gs => gs(url, variables).await,
    }
}

/// The settings among the variables whose names begin so: those that the library knows.
fn settings<K: FromStr>(variables: &Variables, start: &str) -> impl Iterator<Item = (K, String)> {
    let own = variables.iter().filter(move |(name, value)| name.starts_with(start) && !value.is_empty());
    own.filter_map(|(name, value)| Some((name.to_ascii_lowercase().parse().ok()?, value.clone())))
}

async fn s3(url: &Url, variables: &Variables) -> Result<Connection, StorageError> {
    let mut builder = AmazonS3Builder::new().with_retry(retries());
    for (key, value) in settings(variables, "AWS_") {
        builder = builder.with_config(key, value);
    }
    // Not every store that speaks S3 deletes several objects at once.
    builder = builder.with_bucket_name(&url.bucket).with_disable_bulk_delete(true);
    for (key, value) in LIMITS {
        builder = builder.with_config(AmazonS3ConfigKey::Client(key), value);
    }
    let set = |key| builder.get_config_value(&key).filter(|value| !value.is_empty());
    let is_set = |key| set(key).is_some_and(|value| value == "true");
    let endpoint = Endpoint {
        variable: "AWS_ENDPOINT_URL",
        url: set(AmazonS3ConfigKey::S3Endpoint).or_else(|| set(AmazonS3ConfigKey::Endpoint)),
        may_be_plain: is_set(AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp)),
        service: format!("Amazon S3 in {}", set(AmazonS3ConfigKey::Region).unwrap_or_else(|| "us-east-1".to_string())),
    };
    let is_signed = !is_set(AmazonS3ConfigKey::SkipSignature);
    let has_other = [
        AmazonS3ConfigKey::AccessKeyId,
        AmazonS3ConfigKey::WebIdentityTokenFile,
        AmazonS3ConfigKey::ContainerCredentialsRelativeUri,
        AmazonS3ConfigKey::ContainerCredentialsFullUri,
    ];
    // Amazon's tools do not ask the machine itself then either.
    let asks_no_machine = variables.iter().any(|(name, value)| name == "AWS_EC2_METADATA_DISABLED" && value == "true");
    if is_signed && asks_no_machine && !has_other.into_iter().any(|key| set(key).is_some()) {
        let cause = "AWS_EC2_METADATA_DISABLED is set, and no other source is".to_string();
        return Err(StorageError::NoCredentials { url: url.clone(), cause });
    }
    let (is_plain, endpoint) = endpoint.check()?;
    let builder = if is_plain { builder.with_allow_http(true) } else { builder };
    let store = builder.build().map_err(|error| unbuilt(&error, url))?;
    if is_signed {
        let found = store.credentials().get_credential().await;
        found.map_err(|error| without_credentials(&error, url))?;
    }
    Ok(Connection { store: Arc::new(store), endpoint })
}

async fn gs(url: &Url, variables: &Variables) -> Result<Connection, StorageError> {
    let mut builder = GoogleCloudStorageBuilder::new().with_retry(retries());
    for (key, value) in settings(variables, "GOOGLE_") {
        builder = builder.with_config(key, value);
    }
    builder = builder.with_bucket_name(&url.bucket);
    for (key, value) in LIMITS {
        builder = builder.with_config(GoogleConfigKey::Client(key), value);
    }
    let set = |key| builder.get_config_value(&key).filter(|value| !value.is_empty());
    let is_set = |key| set(key).is_some_and(|value| value == "true");
    let endpoint = Endpoint {
        variable: "GOOGLE_BASE_URL",
        url: set(GoogleConfigKey::BaseUrl),
        may_be_plain: is_set(GoogleConfigKey::Client(ClientConfigKey::AllowHttp)),
        service: "Google Cloud Storage".to_string(),
    };
    let is_signed = !is_set(GoogleConfigKey::SkipSignature);
    let (is_plain, endpoint) = endpoint.check()?;
    let allowed = if is_plain { "true" } else { "false" };
    let builder = builder.with_config(GoogleConfigKey::Client(ClientConfigKey::AllowHttp), allowed);
    let store = builder.build().map_err(|error| unbuilt(&error, url))?;
    if is_signed {
        let found = store.credentials().get_credential().await;
        found.map_err(|error| without_credentials(&error, url))?;
    }
    Ok(Connection { store: Arc::new(store), endpoint })
}

/// A store that cannot be described, for example because a file of credentials is missing.
fn unbuilt(error: &object_store::Error, url: &Url) -> StorageError {
    StorageError::NoCredentials { url: url.clone(), cause: causes(error) }
}

fn without_credentials(error: &object_store::Error, url: &Url) -> StorageError {
    StorageError::NoCredentials { url: url.clone(), cause: causes(error) }
}

/// The innermost cause of an error, which names neither headers nor answers.
fn causes(error: &object_store::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Where the store is, as the environment says it.
struct Endpoint {
    variable: &'static str,
    url: Option<String>,
    may_be_plain: bool,
    service: String,
}

impl Endpoint {
    /// Whether the connection may be without TLS, and the endpoint for messages. On loopback, nobody else listens.
    fn check(self) -> Result<(bool, String), StorageError> {
        let Some(text) = self.url else { return Ok((false, self.service)) };
        let variable = self.variable;
        let wrong = |message: String| StorageError::Setting { variable, message };
        let url = url::Url::parse(&text).ok().filter(|url| url.has_host());
        let Some(url) = url else {
            return Err(wrong("is not a URL; write https://HOST or https://HOST:PORT".to_string()));
        };
        let host = url.host_str().unwrap_or_default();
        let port = url.port().map_or(String::new(), |port| format!(":{port}"));
        let shown = format!("{}://{host}{port}", url.scheme());
        let is_loopback = match url.host() {
            Some(url::Host::Ipv4(address)) => address.is_loopback(),
            Some(url::Host::Ipv6(address)) => address.is_loopback(),
            Some(url::Host::Domain(name)) => name == "localhost",
            None => false,
        };
        match url.scheme() {
            "https" => Ok((false, shown)),
            "http" if is_loopback || self.may_be_plain => Ok((true, shown)),
            "http" => {
                let allow = if variable.starts_with("AWS") { "AWS_ALLOW_HTTP" } else { "GOOGLE_ALLOW_HTTP" };
                Err(wrong(format!(
                    "{shown} sends data and signatures unencrypted; use https, or set {allow}=true in a network that \
                     you trust"
                )))
            }
            _ => Err(wrong(format!("{shown} is neither https nor http; write https://HOST"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(url: &str, may_be_plain: bool) -> Result<(bool, String), String> {
        let service = "Amazon S3".to_string();
        let endpoint = Endpoint { variable: "AWS_ENDPOINT_URL", url: Some(url.to_string()), may_be_plain, service };
        endpoint.check().map_err(|error| error.to_string())
    }

    #[test]
    fn plain_connections_leave_the_machine_only_if_the_user_says_so() {
        for url in ["http://127.0.0.1:9000", "http://localhost:9000", "http://[::1]:9000"] {
            assert!(endpoint(url, false).expect(url).0, "{url}");
        }
        assert_eq!(endpoint("https://minio.example", false), Ok((false, "https://minio.example".to_string())));
        assert!(endpoint("http://minio.example", true).expect("allowed").0);
        let refused = endpoint("http://minio.example:9000", false).expect_err("refused");
        assert!(refused.contains("AWS_ALLOW_HTTP=true") && refused.contains("http://minio.example:9000"), "{refused}");
        let shown = endpoint("http://me:hush@minio.example", false).expect_err("refused");
        assert!(!shown.contains("hush"), "{shown}");
        assert!(endpoint("minio:9000", false).expect_err("no URL").contains("AWS_ENDPOINT_URL"));
    }
}
