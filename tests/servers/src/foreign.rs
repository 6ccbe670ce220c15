//! Parses the URL of the user's own server.

/// `SCHEME://CREDENTIALS@HOSTS/DATABASE?PARAMETERS`, without the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// `SCHEME://` and `CREDENTIALS@`.
    start: String,
    /// `HOST:PORT`, several with commas between them.
    hosts: String,
    /// The text after the '?'.
    parameters: String,
}

impl Foreign {
    /// Splits a URL; a plain `HOST:PORT` has neither start nor parameters.
    pub fn parse(url: &str) -> Foreign {
        let after_scheme = url.find("://").map_or(0, |at| at + 3);
        // A password may contain a '/' or a '?'.
        let after_start = url.rfind('@').map_or(after_scheme, |at| at + 1).max(after_scheme);
        let (start, rest) = url.split_at(after_start);
        let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let hosts = place.split('/').next().unwrap_or(place);
        Foreign { start: start.to_string(), hosts: hosts.to_string(), parameters: parameters.to_string() }
    }

    /// The URL with a database; a plain `HOST:PORT` gets this scheme.
    pub fn url(&self, scheme: &str, database: &str) -> String {
        self.write(scheme, &self.hosts, database, &self.parameters)
    }

    /// The URL with a database, at another address. For MongoDB it names no replica set.
    pub fn url_at(&self, scheme: &str, address: &str, database: &str) -> String {
        if scheme != "mongodb" {
            return self.write(scheme, address, database, &self.parameters);
        }
        let kept = self.parameters.split('&').filter(|parameter| {
            let name = parameter.split('=').next().unwrap_or(parameter);
            !name.is_empty() && !["replicaSet", "directConnection"].contains(&name)
        });
        let parameters = kept.chain(["directConnection=true"]).collect::<Vec<_>>().join("&");
        self.write(scheme, address, database, &parameters)
    }

    /// `HOST:PORT` of the first host.
    pub fn address(&self, default_port: u16) -> String {
        let host = self.hosts.split(',').next().unwrap_or_default();
        let has_port = host.rsplit(']').next().is_some_and(|end| end.contains(':'));
        if has_port { host.to_string() } else { format!("{host}:{default_port}") }
    }

    fn write(&self, scheme: &str, hosts: &str, database: &str, parameters: &str) -> String {
        let start = if self.start.is_empty() { format!("{scheme}://") } else { self.start.clone() };
        let path = if database.is_empty() { String::new() } else { format!("/{database}") };
        let query = if parameters.is_empty() { String::new() } else { format!("?{parameters}") };
        format!("{start}{hosts}{path}{query}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_is_replaced_and_the_rest_kept() {
        let check = |url: &str, expect: &str| assert_eq!(Foreign::parse(url).url("x", "d"), expect);
        check("postgres://u:p@h:1/old?sslmode=disable", "postgres://u:p@h:1/d?sslmode=disable");
        check("mysql://u:a/b?c@h:1", "mysql://u:a/b?c@h:1/d");
        check("mongodb://h:1,i:2?replicaSet=r", "mongodb://h:1,i:2/d?replicaSet=r");
        check("h:1", "x://h:1/d");
    }

    #[test]
    fn another_address_is_one_server_alone() {
        let check = |url: &str, scheme: &str, expect: &str| {
            assert_eq!(Foreign::parse(url).url_at(scheme, "q:9", "d"), expect);
        };
        check("mongodb://h:1,i:2/x?replicaSet=r&w=1", "mongodb", "mongodb://q:9/d?w=1&directConnection=true");
        check("mongodb://h:1", "mongodb", "mongodb://q:9/d?directConnection=true");
        check("mysql://u:p@h:1/x?a=b", "mysql", "mysql://u:p@q:9/d?a=b");
    }

    #[test]
    fn a_missing_port_is_the_default() {
        let check = |url: &str, expect: &str| assert_eq!(Foreign::parse(url).address(5432), expect);
        check("postgres://u@h/x", "h:5432");
        check("postgres://u@h:1,i:2/x", "h:1");
        check("postgres://[::1]/x", "[::1]:5432");
        check("postgres://[::1]:7/x", "[::1]:7");
    }
}
