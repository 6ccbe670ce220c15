//! The address of a replayer, as in `--replayer HOST:PORT*WEIGHT`.

use std::fmt;
use std::str::FromStr;

/// A replayer to connect to, and its share of the work.
#[derive(Debug, Clone, PartialEq)]
pub struct Address {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Fragments, and threads with them, are split in this proportion.
    pub weight: f64,
}

/// A text that is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a replayer address; write HOST:PORT (db7:7070, 10.0.0.5:7070, [::1]:7070), and append *2 \
     for twice the share"
)]
pub struct AddressError {
    text: String,
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Address, AddressError> {
        let wrong = || AddressError { text: text.to_string() };
        let (host_and_port, weight) = match text.split_once('*') {
            Some((host_and_port, weight)) => (host_and_port, weight.parse().map_err(|_| wrong())?),
            None => (text, 1.0),
        };
        let (host, port) = host_and_port.rsplit_once(':').ok_or_else(wrong)?;
        let port = port.parse().map_err(|_| wrong())?;
        let is_ip6 = host.starts_with('[') && host.ends_with(']');
        let is_host = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c) || (is_ip6 && "[]:".contains(c));
        let is_weight = |weight: f64| weight.is_finite() && (0.001..=1000.0).contains(&weight);
        if host.is_empty() || port == 0 || !host.chars().all(is_host) || !is_weight(weight) {
            return Err(wrong());
        }
        Ok(Address { host: host.to_string(), port, weight })
    }
}

impl fmt::Display for Address {
    /// Without the weight.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_with_their_weights() {
        for (text, name, weight) in
            [("db7:7070", "db7:7070", 1.0), ("10.0.0.5:1*2", "10.0.0.5:1", 2.0), ("[::1]:70*0.5", "[::1]:70", 0.5)]
        {
            let address: Address = text.parse().unwrap();
            assert_eq!((address.to_string().as_str(), address.weight), (name, weight));
        }
        for wrong in
            ["", "db7", ":7070", "db7:0", "db7:99999", "db7:70*", "db7:70*0", "db7:70*-1", "a b:70", "a/b:70", "::1:x"]
        {
            let error = wrong.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains(&format!("{wrong:?}")) && error.contains("HOST:PORT"), "{error}");
        }
    }
}
