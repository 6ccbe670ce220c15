//! Stores that are opened by their URLs.

use replayer::any_store::{kinds, open};
use replayer::stores::Blame;
use schemas::social::Social;
use schemas::vocabulary::Vocabulary;
use schemas::vocabulary::kv::Kv;

#[test]
fn every_kind_of_store_opens_by_its_example() {
    let that_serve = |vocabulary: &str| -> Vec<&str> {
        let serves = |example: &&str| open(example).is_ok_and(|store| store.vocabularies().contains(&vocabulary));
        kinds().into_iter().map(|kind| kind.example).filter(serves).collect()
    };
    let (social, records) = (that_serve(Social::NAME), that_serve(Kv::NAME));
    assert!(kinds().len() >= 12);
    for kind in kinds() {
        assert!(social.contains(&kind.example) || records.contains(&kind.example), "{}", kind.example);
    }
    assert!(!social.contains(&"redis://HOST:6379/0") && records.contains(&"mongodb://HOST/DATABASE"));
    assert!(!records.iter().any(|example| example.starts_with("casql+")), "{records:?}");
    assert_eq!(that_serve("nothing"), [""; 0]);
}

#[test]
fn an_unknown_store_is_refused_with_the_known_ones() {
    let error = open("oracle:x").err().expect("an error");
    assert_eq!(error.blame, Blame::Usage);
    let text = error.to_string();
    assert!(text.contains("unknown store \"oracle\"; use one of sqlite:PATH, postgres://HOST/DATABASE, "), "{text}");
}

#[test]
fn wrong_urls_are_refused_by_name() {
    let check = |url: &str, expect: &str| {
        let error = open(url).err().expect(url).to_string();
        assert!(error.starts_with(url.split('?').next().unwrap()) && error.contains(expect), "{error}");
    };
    check("somewhere", "is not a store URL");
    check("oracle:x", "unknown store \"oracle\"");
    check("null:?x=1", "unknown parameter x; null: has no parameters");
    check("memory:?write_locks=off", "write_locks is a choice of read uncommitted");
    check("memory:?isolation=none&promise=snapshot", "promise is about transactions, and there are none");
    check("memory:?promise=some", "parameter promise: \"some\" is not one of serializable, snapshot");
    check("memory:?stael=1", "unknown parameter stael; memory: supports stale, ");
    check("memory:?stale=2", "2 is not between 0 and 1");
    check("memory:?stale=x", "\"x\" is not a number");
    check("memory:?stale", "has no value");
    check("memory:?stale=0&stale=0", "given twice");
    check("sqlite:a.db?journal=off", "\"off\" is not one of wal, delete");
    check("sqlite:a.db?friendship=three-row", "\"three-row\" is not one of two-row, one-row");
    check("sqlite:a.db?images=cdn", "\"cdn\" is not one of inline, table, none");
    check("sqlite:", "no path");
    check("sqlite:a.db?busy_ms=3000000000", "busy_ms: 3000000000 is more than 2147483647");
    check("postgres://me@db/d?timeout_ms=0", "timeout_ms: 0 is too few");
    check("mysql://me@db/d?timeout_ms=0", "timeout_ms: 0 is too few");
    check("casql+sqlite:a.db?memcached=h:1&cache_timeout_ms=0", "cache_timeout_ms: 0 is too few");
    check("postgres://me@db/d?replica=db2", "replica: \"db2\" is not HOST:PORT");
    check("postgres://me@db/d?replica=db2:70000", "is not HOST:PORT");
    check("redis://db/0?replica=:6379", "is not HOST:PORT");
    check("redis://db/?cluster=true&replica=db2:6379", "does not go with cluster=true");
    check("redis://db/0?wait=0", "wait: 0 is too few");
    check("redis://db/0?wait_ms=5", "wait_ms needs wait");
    check("casql+postgres://me@db/d?memcached=h:1&replica=db2:5432", "replica does not go with a cache");
    // An '@' in a value hides no parameter.
    check("postgres://me@db/d?application_name=a@b&friendshp=x", "unknown parameter friendshp");
}

#[test]
fn passwords_that_break_a_url_are_not_shown() {
    for url in ["postgres://me:hu/sh@db/d", "postgres://me:hu?sh@db/d", "mysql://me:hu#sh@db/d"] {
        let error = open(url).err().expect(url).to_string();
        assert!(error.contains("%3F") && !error.contains("sh@") && !error.contains("hu"), "{error}");
    }
}
