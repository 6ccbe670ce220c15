//! The part of the URL that says where the store is: user, hosts, keyspace.

use crate::stores::StoreError;
use crate::stores::url::StoreUrl;

/// The port of a host without one.
pub const DEFAULT_PORT: u16 = 9042;

/// The keyspaces of the server itself.
const OF_THE_SERVER: [&str; 7] = [
    "system",
    "system_auth",
    "system_distributed",
    "system_schema",
    "system_traces",
    "system_views",
    "system_virtual_schema",
];

/// Cassandra's own limit.
const KEYSPACE_CHARACTERS_MAX: usize = 48;

/// Where the store is.
#[derive(Clone)]
pub struct Place {
    /// HOST:PORT of some nodes.
    pub hosts: Vec<String>,
    /// The name and the password.
    pub user: Option<(String, String)>,
    /// The keyspace.
    pub keyspace: String,
}

impl Place {
    /// That of a URL.
    pub fn of(url: &StoreUrl) -> Result<Place, StoreError> {
        let refused = |message: String| StoreError::usage(url, message);
        let no_keyspace = || refused("names no keyspace; write cassandra://HOST:PORT/KEYSPACE".into());
        let place = url.place().strip_prefix("//").ok_or_else(no_keyspace)?;
        let (credentials, place) = match place.rsplit_once('@') {
            Some((credentials, place)) => (Some(credentials), place),
            None => (None, place),
        };
        let (hosts, keyspace) = place.split_once('/').ok_or_else(no_keyspace)?;
        if keyspace.is_empty() {
            return Err(no_keyspace());
        }
        let is_name = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name(keyspace) || keyspace.len() > KEYSPACE_CHARACTERS_MAX {
            return Err(refused(format!(
                "{keyspace:?} is not the name of a keyspace; use letters, digits and _, at most \
                 {KEYSPACE_CHARACTERS_MAX} characters"
            )));
        }
        url.not_of_the_server(keyspace, &OF_THE_SERVER)?;
        let user = credentials.map(|text| {
            let (name, password) = text.split_once(':').unwrap_or((text, ""));
            Some((decoded(name)?, decoded(password)?))
        });
        let wrong_escape =
            || refused("contains a % that two hexadecimal digits do not follow; write %25 for a percent sign".into());
        Ok(Place {
            hosts: hosts.split(',').map(|host| with_port(url, host)).collect::<Result<_, _>>()?,
            user: user.map(|user| user.ok_or_else(wrong_escape)).transpose()?,
            keyspace: keyspace.to_string(),
        })
    }

    /// The name of a table, for a statement.
    pub fn table(&self, name: &str) -> String {
        format!("\"{}\".{name}", self.keyspace)
    }
}

/// HOST:PORT of a host.
pub fn with_port(url: &StoreUrl, host: &str) -> Result<String, StoreError> {
    // The colons of an IPv6 address stand in brackets.
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    };
    if name.is_empty() {
        return Err(StoreError::usage(url, "names no server; write cassandra://HOST:PORT/KEYSPACE"));
    }
    match port.map_or(Ok(DEFAULT_PORT), str::parse::<u16>) {
        Ok(port) => Ok(format!("{name}:{port}")),
        Err(_) => Err(StoreError::usage(url, format!("{:?} is not a port", port.unwrap_or_default()))),
    }
}

/// A text without its percent escapes; None if one of them is incomplete.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        bytes.push(match first {
            b'%' => {
                let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
                rest = &rest[2..];
                digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u8::from_str_radix(digits, 16).ok())??
            }
            other => *other,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_hosts_a_user_and_a_keyspace() {
        let place = Place::of(&StoreUrl::parse("cassandra://u:p%40s%2fs@h,[::1],i:7/Keys").unwrap()).unwrap();
        assert_eq!(place.hosts, ["h:9042", "[::1]:9042", "i:7"]);
        assert_eq!(place.user, Some(("u".to_string(), "p@s/s".to_string())));
        assert_eq!(place.table("usertable"), "\"Keys\".usertable");
        let place = Place::of(&StoreUrl::parse("cassandra://h/k").unwrap()).unwrap();
        assert_eq!((place.user, place.keyspace.as_str()), (None, "k"));
    }
}
