//! Who may use the deck: the user who opened it with its key, from the deck's own pages.
//!
//! | against | what |
//! |---|---|
//! | other users of this machine | the key, once in the URL and then in a cookie |
//! | names that are made to lead to this machine (DNS rebinding) | the Host header must be an address or `localhost` |
//! | pages of other sites | the Origin header, and a token in every form |
//! | text from run folders | escaped, and a policy that runs no script but the deck's |

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::form::Form;
use super::pages;
use crate::failure::Failure;

/// The policy of every page that sets none of its own.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The secrets of a deck, new each time that it starts.
pub(super) struct Guard {
    key: String,
    token: String,
    cookie: String,
}

impl Guard {
    /// A guard for the deck on this port. Cookies do not tell ports apart, so their names do.
    pub(super) fn new(port: u16) -> Result<Guard, Failure> {
        Ok(Guard { key: secret()?, token: secret()?, cookie: format!("encore-deck-{port}") })
    }

    /// What opens the deck.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// What a form of the deck carries.
    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// Refuses a form that is not one of the deck's.
    pub(super) fn check(&self, form: &Form) -> Result<(), Refused> {
        match form.get("token") {
            Some(token) if is_same(token, &self.token) => Ok(()),
            _ => Err(Refused("this form is of another session of the deck; open the page again")),
        }
    }

    /// Refuses a request that is not one of the user's.
    fn admit(&self, method: &Method, headers: &HeaderMap) -> Result<(), Refused> {
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let host = text(header::HOST).unwrap_or_default();
        if !is_this_machine(host) {
            return Err(Refused("the Host header is no address of this machine; use the URL that the deck printed"));
        }
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        if !pairs.any(|(name, value)| name == self.cookie && is_same(value, &self.key)) {
            return Err(Refused("the key of the deck is missing; open the URL that the deck printed"));
        }
        if method != Method::GET && method != Method::HEAD && text(header::ORIGIN) != Some(&format!("http://{host}")) {
            return Err(Refused("the request comes from another site; use the pages of the deck"));
        }
        Ok(())
    }

    /// Where a request with the key in its URL goes, and the cookie that it takes along.
    fn opened(&self, uri: &Uri) -> Option<Response> {
        let query = Form::of(uri.query().unwrap_or_default());
        let key = query.get("key")?;
        if !is_same(key, &self.key) {
            return None;
        }
        let rest = query.without("key");
        let place = if rest.is_empty() { uri.path().to_string() } else { format!("{}?{rest}", uri.path()) };
        // A path that began with two slashes would be an address of another machine.
        let place = format!("/{}", place.trim_start_matches('/'));
        let cookie = format!("{}={}; Path=/; HttpOnly; SameSite=Lax", self.cookie, self.key);
        Some((StatusCode::SEE_OTHER, [(header::LOCATION, place), (header::SET_COOKIE, cookie)]).into_response())
    }
}

/// Why a request is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused(pub(super) &'static str);

/// Stands before all pages.
pub(super) async fn guarded(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let is_get = request.method() == Method::GET;
    let host = request.headers().get(header::HOST).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let opened = if is_get && is_this_machine(host) { guard.opened(request.uri()) } else { None };
    let mut response = match (opened, guard.admit(request.method(), request.headers())) {
        (Some(opened), _) => opened,
        (None, Ok(())) => next.run(request).await,
        (None, Err(Refused(why))) => pages::error(StatusCode::FORBIDDEN, why),
    };
    let headers = response.headers_mut();
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    response
}

/// Whether a Host header names no domain: an address cannot be made to lead elsewhere. The port may differ, as
/// behind an SSH tunnel.
fn is_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|c| c.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A secret of 128 bits.
fn secret() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|e| Failure::tool(format!("the system has no random numbers: {e}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Compares secrets in a time that does not depend on how close a guess is.
fn is_same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_addresses_of_this_machine_are_hosts() {
        for host in ["127.0.0.1:7000", "127.0.0.9", "localhost:1", "[::1]:80", "[::1]"] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in
            ["", "evil.example", "evil.example:7000", "127.0.0.1.evil.example", "10.0.0.5:1", "localhost.", "::1x"]
        {
            assert!(!is_this_machine(host), "{host}");
        }
    }

    #[test]
    fn a_request_needs_host_key_and_origin() {
        let guard = Guard::new(7).unwrap();
        let cookie = format!("a=b; encore-deck-7={}", guard.key());
        let admit = |method: Method, pairs: &[(&'static str, &str)]| guard.admit(&method, &headers(pairs));
        let (host, own) = (("host", "127.0.0.1:7"), ("cookie", cookie.as_str()));
        assert_eq!(admit(Method::GET, &[host, own]), Ok(()));
        assert_eq!(admit(Method::POST, &[host, own, ("origin", "http://127.0.0.1:7")]), Ok(()));
        assert!(admit(Method::GET, &[("host", "evil.example"), own]).unwrap_err().0.contains("Host"));
        assert!(admit(Method::GET, &[host]).unwrap_err().0.contains("key"));
        assert!(admit(Method::GET, &[host, ("cookie", "encore-deck-7=guess")]).unwrap_err().0.contains("key"));
        for origin in [None, Some("null"), Some("http://evil.example"), Some("http://127.0.0.1:8")] {
            let pairs: Vec<_> = [host, own].into_iter().chain(origin.map(|origin| ("origin", origin))).collect();
            assert!(admit(Method::POST, &pairs).unwrap_err().0.contains("another site"), "{origin:?}");
        }
    }

    #[test]
    fn a_form_needs_the_token() {
        let guard = Guard::new(7).unwrap();
        assert_eq!(guard.check(&Form::of(&format!("a=1&token={}", guard.token()))), Ok(()));
        for form in ["", "token=", &format!("token={}", guard.key())] {
            assert!(guard.check(&Form::of(form)).is_err(), "{form}");
        }
    }

    #[test]
    fn the_key_becomes_a_cookie() {
        let guard = Guard::new(7).unwrap();
        let open = |uri: String| guard.opened(&uri.parse().unwrap());
        let response = open(format!("/runs/a?q=b%26c&key={}", guard.key())).unwrap();
        assert_eq!(response.headers()[header::LOCATION], "/runs/a?q=b%26c");
        assert!(response.headers()[header::SET_COOKIE].to_str().unwrap().contains("HttpOnly; SameSite=Lax"));
        let elsewhere = open(format!("//evil.example/?key={}", guard.key())).unwrap();
        assert_eq!(elsewhere.headers()[header::LOCATION], "/evil.example/");
        assert!(open("/?key=guess".into()).is_none() && open("/".into()).is_none());
    }
}
