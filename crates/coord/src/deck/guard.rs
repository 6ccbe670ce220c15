//! Who may use the deck: the user who opened it with its key, from the deck's own pages.
//!
//! | against | what |
//! |---|---|
//! | other users of this machine, and other machines | the key, once in the URL or in a form, and then in a cookie |
//! | names that are made to lead to this machine (DNS rebinding) | the Host header must be one of the deck's own |
//! | pages of other sites | the Origin header, and a token in every form |
//! | text from run folders | escaped, and a policy that runs no script but the deck's |

use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use replayer::service::Token;

use super::entrance::Entrance;
use super::form::Form;
use super::listener::Stranger;
use super::pages;
use crate::failure::Failure;

/// The policy of every page that sets none of its own.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Where the form with the key goes. It is the only page for strangers.
pub(super) const UNLOCK: &str = "/key";

/// The secrets of a deck, new each time that it starts, and its own names.
pub(super) struct Guard {
    key: String,
    token: String,
    cookie: String,
    entrance: Entrance,
}

impl Guard {
    /// A guard for the deck on this port. Cookies do not tell ports apart, so their names do.
    pub(super) fn new(port: u16, entrance: Entrance) -> Result<Guard, Failure> {
        // A cookie with this prefix cannot come from a page of a neighbouring domain.
        let prefix = if entrance.certs.is_some() { "__Host-" } else { "" };
        Ok(Guard { key: secret()?, token: secret()?, cookie: format!("{prefix}encore-deck-{port}"), entrance })
    }

    /// What opens the deck, and is in its cookie.
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
            _ => Err(Refused::Elsewhere("this form is of another session of the deck; open the page again")),
        }
    }

    /// Whether a text is the key, or the secret that the user has set in its place.
    fn opens(&self, given: &str) -> bool {
        match &self.entrance.token {
            // Sums are compared, in a time that does not depend on how close a guess is.
            Some(token) => Token::new(given).is_ok_and(|given| given == *token),
            None => is_same(given, &self.key),
        }
    }

    /// Refuses a request that is not one of the user's.
    fn admit(&self, method: &Method, path: &str, headers: &HeaderMap) -> Result<(), Refused> {
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let host = text(header::HOST).unwrap_or_default();
        if !self.entrance.has_host(host) {
            return Err(Refused::Elsewhere(
                "the Host header is no name of this deck; use the URL that the deck printed, or allow the name with \
                 --host",
            ));
        }
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let is_unlocking = method == Method::POST && path == UNLOCK;
        if !is_unlocking && !pairs.any(|(name, value)| name == self.cookie && is_same(value, &self.key)) {
            return Err(Refused::Stranger("the key of the deck is missing"));
        }
        let own = format!("{}://{host}", self.entrance.scheme());
        if method != Method::GET && method != Method::HEAD && text(header::ORIGIN) != Some(&own) {
            return Err(Refused::Elsewhere("the request comes from another site; use the pages of the deck"));
        }
        Ok(())
    }

    /// Where a request with the key in its URL goes, and the cookie that it takes along.
    fn opened(&self, uri: &Uri) -> Option<Response> {
        let query = Form::of(uri.query().unwrap_or_default());
        if !self.opens(query.get("key")?) {
            return None;
        }
        let rest = query.without("key");
        let place = if rest.is_empty() { uri.path().to_string() } else { format!("{}?{rest}", uri.path()) };
        // A path that began with two slashes would be an address of another machine.
        let place = format!("/{}", place.trim_start_matches('/'));
        Some(self.with_cookie(&place))
    }

    /// What a form with the key comes to.
    pub(super) fn unlock(&self, form: &Form) -> Response {
        match form.get("key") {
            Some(key) if self.opens(key.trim()) => self.with_cookie("/"),
            _ => pages::locked("this is not the key of the deck", None),
        }
    }

    /// Goes to a page of the deck, with the cookie.
    fn with_cookie(&self, place: &str) -> Response {
        let Guard { cookie, key, .. } = self;
        if self.entrance.certs.is_none() {
            // Lax, so that a link on another page of this machine leads to a run.
            let cookie = format!("{cookie}={key}; Path=/; HttpOnly; SameSite=Lax");
            let to = [(header::LOCATION, place.to_string()), (header::SET_COOKIE, cookie)];
            return (StatusCode::SEE_OTHER, to).into_response();
        }
        let cookie = format!("{cookie}={key}; Path=/; HttpOnly; Secure; SameSite=Strict");
        // After a link on another site, a browser takes a strict cookie along from the next page on.
        ([(header::SET_COOKIE, cookie)], pages::forward(place)).into_response()
    }
}

/// Why a request is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It has no key.
    Stranger(&'static str),
    /// It has come a wrong way.
    Elsewhere(&'static str),
}

/// Stands before all pages.
pub(super) async fn guarded(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let is_get = request.method() == Method::GET;
    let host = request.headers().get(header::HOST).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let opened = if is_get && guard.entrance.has_host(host) { guard.opened(request.uri()) } else { None };
    let mut response = match (opened, guard.admit(request.method(), request.uri().path(), request.headers())) {
        (Some(opened), _) => opened,
        (None, Ok(())) => {
            let connection = request.extensions().get::<ConnectInfo<Stranger>>();
            if let Some(ConnectInfo(stranger)) = connection.filter(|_| request.uri().path() != UNLOCK) {
                stranger.is_known();
            }
            next.run(request).await
        }
        (None, Err(Refused::Stranger(why))) => pages::locked(why, is_get.then(|| request.uri().to_string())),
        (None, Err(Refused::Elsewhere(why))) => pages::error(StatusCode::FORBIDDEN, why),
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

    fn local() -> Guard {
        Guard::new(7, Entrance::loopback("127.0.0.1:7".parse().unwrap())).unwrap()
    }

    fn remote(token: Option<&str>) -> Guard {
        let listen = "0.0.0.0:7".parse().unwrap();
        let token = token.map(|token| Token::new(token).unwrap());
        Guard::new(7, Entrance { listen, certs: Some("certs".into()), hosts: vec!["lab".into()], token }).unwrap()
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn why(refused: Result<(), Refused>) -> &'static str {
        match refused {
            Ok(()) => "",
            Err(Refused::Stranger(why) | Refused::Elsewhere(why)) => why,
        }
    }

    #[test]
    fn a_request_needs_host_key_and_origin() {
        let guard = local();
        let cookie = format!("a=b; encore-deck-7={}", guard.key());
        let admit = |method: Method, pairs: &[(&'static str, &str)]| guard.admit(&method, "/", &headers(pairs));
        let (host, own) = (("host", "127.0.0.1:7"), ("cookie", cookie.as_str()));
        assert_eq!(admit(Method::GET, &[host, own]), Ok(()));
        assert_eq!(admit(Method::POST, &[host, own, ("origin", "http://127.0.0.1:7")]), Ok(()));
        assert!(why(admit(Method::GET, &[("host", "evil.example"), own])).contains("Host"));
        assert!(matches!(admit(Method::GET, &[host]), Err(Refused::Stranger(_))));
        assert!(matches!(admit(Method::GET, &[host, ("cookie", "encore-deck-7=guess")]), Err(Refused::Stranger(_))));
        for origin in [None, Some("null"), Some("http://evil.example"), Some("http://127.0.0.1:8")] {
            let pairs: Vec<_> = [host, own].into_iter().chain(origin.map(|origin| ("origin", origin))).collect();
            assert!(why(admit(Method::POST, &pairs)).contains("another site"), "{origin:?}");
        }
    }

    #[test]
    fn over_tls_origin_and_cookie_are_those_of_tls() {
        let guard = remote(None);
        let cookie = format!("__Host-encore-deck-7={}", guard.key());
        let admit = |origin: &str| {
            let pairs = [("host", "lab:7"), ("cookie", cookie.as_str()), ("origin", origin)];
            guard.admit(&Method::POST, "/new", &headers(&pairs))
        };
        assert_eq!(admit("https://lab:7"), Ok(()));
        assert!(why(admit("http://lab:7")).contains("another site"));
        let opened = guard.opened(&format!("/?key={}", guard.key()).parse().unwrap()).unwrap();
        let cookie = opened.headers()[header::SET_COOKIE].to_str().unwrap();
        assert!(cookie.ends_with("Path=/; HttpOnly; Secure; SameSite=Strict"), "{cookie}");
    }

    #[test]
    fn a_secret_of_the_user_takes_the_place_of_the_key() {
        let guard = remote(Some("0123456789abcdef"));
        assert!(guard.opened(&"/?key=0123456789abcdef".parse().unwrap()).is_some());
        for guess in [guard.key(), "0123456789abcdeF", ""] {
            assert!(guard.opened(&format!("/?key={guess}").parse().unwrap()).is_none(), "{guess}");
        }
        assert_eq!(guard.unlock(&Form::of("key=0123456789abcdef")).status(), StatusCode::OK);
        assert_eq!(guard.unlock(&Form::of("key=0123456789abcdeF")).status(), StatusCode::UNAUTHORIZED);
        // The form for the key needs no key, but comes from the deck's own page.
        let unlock = |origin| guard.admit(&Method::POST, UNLOCK, &headers(&[("host", "lab"), ("origin", origin)]));
        assert_eq!(unlock("https://lab"), Ok(()));
        assert!(why(unlock("https://evil.example")).contains("another site"));
    }

    #[test]
    fn a_form_needs_the_token() {
        let guard = local();
        assert_eq!(guard.check(&Form::of(&format!("a=1&token={}", guard.token()))), Ok(()));
        for form in ["", "token=", &format!("token={}", guard.key())] {
            assert!(guard.check(&Form::of(form)).is_err(), "{form}");
        }
    }

    #[test]
    fn the_key_becomes_a_cookie() {
        let guard = local();
        let open = |uri: String| guard.opened(&uri.parse().unwrap());
        let response = open(format!("/runs/a?q=b%26c&key={}", guard.key())).unwrap();
        assert_eq!(response.headers()[header::LOCATION], "/runs/a?q=b%26c");
        assert!(response.headers()[header::SET_COOKIE].to_str().unwrap().contains("HttpOnly; SameSite=Lax"));
        let elsewhere = open(format!("//evil.example/?key={}", guard.key())).unwrap();
        assert_eq!(elsewhere.headers()[header::LOCATION], "/evil.example/");
        assert!(open("/?key=guess".into()).is_none() && open("/".into()).is_none());
    }
}
