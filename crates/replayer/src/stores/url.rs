//! A store's URL: scheme, place and parameters. Unknown parameters are refused.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::StoreError;

/// A parsed URL, `SCHEME:PLACE?NAME=VALUE&…`.
#[derive(Debug, Clone)]
pub struct StoreUrl {
    text: String,
    scheme: String,
    place: String,
    parameters: BTreeMap<String, String>,
}

/// The address of a server that a parameter names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// A name, or an address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl StoreUrl {
    /// Splits a URL.
    pub fn parse(text: &str) -> Result<StoreUrl, StoreError> {
        let mut url = StoreUrl {
            text: text.to_string(),
            scheme: String::new(),
            place: String::new(),
            parameters: BTreeMap::new(),
        };
        let (scheme, rest) = text.split_once(':').ok_or_else(|| {
            StoreError::usage(&url, "is not a store URL; write it like sqlite:PATH, memory: or null:")
        })?;
        url.scheme = scheme.to_string();
        if rest.strip_prefix("//").is_some_and(schemas::plan::has_raw_password) {
            let message = "has a password that must be percent-encoded: / as %2F, ? as %3F, # as %23, @ as %40";
            return Err(StoreError::usage(&url, message));
        }
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        url.place = place.to_string();
        for parameter in query.split('&').filter(|p| !p.is_empty()) {
            let (name, value) = parameter
                .split_once('=')
                .ok_or_else(|| StoreError::usage(&url, "a parameter has no value; write name=value"))?;
            if url.parameters.insert(name.to_string(), value.to_string()).is_some() {
                return Err(StoreError::usage(&url, format!("parameter {name} is given twice")));
            }
        }
        Ok(url)
    }

    /// What stands before the first ':'.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// What stands between the scheme and the parameters.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The whole URL without secrets.
    pub fn redacted(&self) -> String {
        schemas::plan::redact(&self.text)
    }

    /// Refuses parameters that the store does not know.
    pub fn allow(&self, known: &[&str]) -> Result<(), StoreError> {
        match self.parameters.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) if known.is_empty() => {
                Err(StoreError::usage(self, format!("unknown parameter {name}; {}: has no parameters", self.scheme)))
            }
            Some(name) => {
                let known = known.join(", ");
                Err(StoreError::usage(self, format!("unknown parameter {name}; {}: supports {known}", self.scheme)))
            }
        }
    }

    /// Refuses a database that is the server's own: a load would overwrite it.
    pub fn not_of_the_server(&self, database: &str, own: &[&str]) -> Result<(), StoreError> {
        if own.contains(&database) {
            let message = format!(
                "{database:?} is a system database, and Encore overwrites the database of the URL; choose another"
            );
            return Err(StoreError::usage(self, message));
        }
        Ok(())
    }

    /// A parameter as a number, or the default.
    pub fn number<N: FromStr>(&self, name: &str, default: N) -> Result<N, StoreError> {
        match self.parameters.get(name) {
            None => Ok(default),
            Some(text) => text
                .parse()
                .map_err(|_| StoreError::usage(self, format!("parameter {name}: {text:?} is not a number in range"))),
        }
    }

    /// A parameter as a number of things, at least one; none where it is not given.
    pub fn count(&self, name: &str) -> Result<Option<u32>, StoreError> {
        match self.number(name, u32::MAX)? {
            _ if !self.parameters.contains_key(name) => Ok(None),
            0 => Err(StoreError::usage(self, format!("parameter {name}: 0 is too few; give at least 1"))),
            count => Ok(Some(count)),
        }
    }

    /// A parameter as `HOST:PORT`; none where it is not given.
    pub fn address(&self, name: &str) -> Result<Option<Address>, StoreError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let parts = text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
        match parts.filter(|(host, _)| !host.is_empty()) {
            Some((host, port)) => Ok(Some(Address { host: host.trim_matches(['[', ']']).to_string(), port })),
            None => Err(StoreError::usage(self, format!("parameter {name}: {text:?} is not HOST:PORT"))),
        }
    }

    /// A parameter's text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// The URL without Encore's own parameters, which a driver must not see.
    pub fn without(&self, own: &[&str]) -> String {
        let others = self.parameters.iter().filter(|(name, _)| !own.contains(&name.as_str()));
        let others: Vec<String> = others.map(|(name, value)| format!("{name}={value}")).collect();
        let query = if others.is_empty() { String::new() } else { format!("?{}", others.join("&")) };
        format!("{}:{}{query}", self.scheme, self.place)
    }

    /// A parameter as a probability, or 0.
    pub fn probability(&self, name: &str) -> Result<f64, StoreError> {
        let value = self.number(name, 0.0)?;
        if (0.0..=1.0).contains(&value) {
            Ok(value)
        } else {
            Err(StoreError::usage(self, format!("parameter {name}: {value} is not between 0 and 1")))
        }
    }

    /// What the word of a parameter stands for; without the parameter, the first choice.
    pub fn choice<C: Clone>(&self, name: &str, choices: &[(&str, C)]) -> Result<C, StoreError> {
        let chosen = match self.parameters.get(name) {
            None => choices.first(),
            Some(text) => choices.iter().find(|(word, _)| word == text),
        };
        chosen.map(|(_, choice)| choice.clone()).ok_or_else(|| {
            let text = self.parameters.get(name).map_or("", String::as_str);
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            StoreError::usage(self, format!("parameter {name}: {text:?} is not one of {}", words.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_address_has_a_host_and_a_port() {
        let of = |text: &str| {
            let url = super::StoreUrl::parse(&format!("postgres://h/d?replica={text}")).ok()?;
            url.address("replica").ok()?.map(|address| address.to_string())
        };
        for address in ["127.0.0.1:7", "[::1]:7", "name:5432"] {
            assert_eq!(of(address).as_deref(), Some(address));
        }
    }
}
