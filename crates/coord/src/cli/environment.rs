//! Replaces environment variables in store URLs. The address of a server differs from machine to
//! machine, while the plan of a comparison stays the same. A password in a variable is in no
//! process list.

use std::collections::BTreeMap;

/// Replaces `${NAME}` with the variable's value, and `${NAME:-default}` with the default if the
/// variable is unset or empty. If the value itself has parameters, those that follow
/// (`${NAME}?a=b`) are joined with `&`. The error says what is wrong and what to do, and contains
/// no value.
pub fn filled_in(url: &str, variables: &BTreeMap<String, String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = url;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let (inside, after) = after.split_once('}').ok_or("\"${\" without \"}\"; write ${NAME} or ${NAME:-default}")?;
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        if !is_name(name) {
            return Err(format!("${{{inside}}} has no valid variable name; write ${{NAME}} or ${{NAME:-default}}"));
        }
        let value = variables.get(name).map(String::as_str).filter(|value| !value.is_empty()).or(default);
        let value = value.ok_or_else(|| unset(name, &out))?;
        out.push_str(value);
        rest = match after.strip_prefix('?') {
            Some(parameters) if has_parameters(value) => {
                if !out.ends_with(['?', '&']) {
                    out.push('&');
                }
                parameters
            }
            _ => after,
        };
    }
    out.push_str(rest);
    Ok(out)
}

fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.starts_with(|c: char| c.is_ascii_digit()) && !name.is_empty() && name.chars().all(is_plain)
}

/// Whether a URL has parameters. Only what follows the credentials counts, since a password may
/// contain a '?'.
fn has_parameters(url: &str) -> bool {
    let host = if url.contains("//") { url.rsplit_once('@').map_or(url, |(_, host)| host) } else { url };
    host.contains('?')
}

/// The error for an unset variable. Its example is a store's URL if the variable begins the text
/// or follows a prefix like `casql+`, else a host and port.
fn unset(name: &str, before: &str) -> String {
    let example = match before.is_empty() || before.ends_with('+') {
        true => "postgres://user:password@127.0.0.1:5432/encore",
        false => "127.0.0.1:11211",
    };
    format!("the environment variable {name} is not set; set it, for example: export {name}='{example}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables() -> BTreeMap<String, String> {
        let pairs = [
            ("PG", "postgres://me:hu?sh@db/x"),
            ("PG_TLS", "postgres://db/x?sslmode=require"),
            ("ENDS", "mongodb://db/x?"),
            ("CACHE", "h:1"),
            ("EMPTY", ""),
        ];
        pairs.map(|(name, value)| (name.to_string(), value.to_string())).into()
    }

    #[test]
    fn variables_and_defaults_are_filled_in() {
        for (url, expect) in [
            ("sqlite:?images=table", "sqlite:?images=table"),
            ("${PG}", "postgres://me:hu?sh@db/x"),
            ("${PG:-sqlite:}?a=b", "postgres://me:hu?sh@db/x?a=b"),
            ("${PG_TLS}?a=b&c=d", "postgres://db/x?sslmode=require&a=b&c=d"),
            ("${ENDS}?a=b", "mongodb://db/x?a=b"),
            ("${NONE:-mongodb://h/x?replicaSet=rs0}?a=b", "mongodb://h/x?replicaSet=rs0&a=b"),
            ("${EMPTY:-memory:}", "memory:"),
            (
                "casql+${PG_TLS}?memcached=${CACHE}&ttl_s=30",
                "casql+postgres://db/x?sslmode=require&memcached=h:1&ttl_s=30",
            ),
            ("casql+${PG}?memcached=${NONE:-h:2}&ttl_s=30", "casql+postgres://me:hu?sh@db/x?memcached=h:2&ttl_s=30"),
            // A '$' without '{' stays as it is, and a value is not expanded again.
            ("postgres://me:$PG@db/x", "postgres://me:$PG@db/x"),
            ("sqlite:${NONE:-$PG}", "sqlite:$PG"),
        ] {
            assert_eq!(filled_in(url, &variables()).as_deref(), Ok(expect), "{url}");
        }
    }

    #[test]
    fn what_cannot_be_filled_in_is_explained() {
        for (url, expect) in [
            ("${NONE}", "NONE is not set; set it, for example: export NONE='postgres://user:password@"),
            ("casql+${EMPTY}?memcached=h:1", "EMPTY is not set; set it, for example: export EMPTY='postgres://"),
            ("casql+${PG}?memcached=${NONE}", "NONE is not set; set it, for example: export NONE='127.0.0.1:11211'"),
            ("${PG", "without \"}\""),
            ("${}", "${} has no valid variable name"),
            ("${A B:-x}", "${A B:-x} has no valid variable name"),
            ("${1A}", "has no valid variable name"),
        ] {
            let error = filled_in(url, &variables()).unwrap_err();
            assert!(error.contains(expect) && !error.contains("hu?sh"), "{error:?} lacks {expect:?}");
        }
    }
}
