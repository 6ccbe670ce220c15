//! Redis: what is stored, foreign keys, times to live.

use replayer::any_store;
use replayer::stores::Blame;

use super::model::Model;
use super::subjects::redis_url;
use super::{points, refused, with_mix};
use crate::subjects::url_with;

fn with_redis<X>(url: &str, work: impl AsyncFnOnce(redis::aio::MultiplexedConnection) -> X) -> X {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = redis::Client::open(url).expect(url);
        work(client.get_multiplexed_async_connection().await.expect("a connection")).await
    })
}

#[test]
fn foreign_keys_in_redis_are_refused_and_unchanged() {
    let Some(server) = servers::redis() else { return };
    let place = points(&[]);
    let url = redis_url(server);
    let store = any_store::open(&url).expect(&url);
    let set = |key: &'static str| {
        with_redis(&url, async |mut link| redis::cmd("SET").arg(key).arg("42").exec_async(&mut link).await.expect(key));
    };
    let get = |key: &'static str| {
        with_redis(&url, async |mut link| {
            redis::cmd("GET").arg(key).query_async::<Option<String>>(&mut link).await.expect(key)
        })
    };
    set("precious");
    refused(store.load(&place.source, &|_, _| {}), Blame::Usage, &["1 keys that Encore has not made", "FLUSHDB"]);
    assert_eq!(get("precious").as_deref(), Some("42"));
    with_redis(&url, async |mut link| redis::cmd("DEL").arg("precious").exec_async(&mut link).await.expect("DEL"));
    store.load(&place.source, &|_, _| {}).expect(&url);
    // Also beside Encore's own keys.
    set("user7x");
    refused(store.load(&place.source, &|_, _| {}), Blame::Usage, &["contains the key \"user7x\""]);
    refused(store.digest(&place.source), Blame::Usage, &["contains the key \"user7x\""]);
    assert_eq!(get("user7x").as_deref(), Some("42"));
}

/// Records are hashes as YCSB stores them, and there is an index only for scans.
#[test]
fn records_in_redis_are_those_of_ycsb() {
    let Some(server) = servers::redis() else { return };
    for scans in [false, true] {
        let place = with_mix(if scans { "read = 1\nscan = 1\n" } else { "read = 1\n" }, &[]);
        let url = redis_url(server);
        any_store::open(&url).expect(&url).load(&place.source, &|_, _| {}).expect(&url);
        with_redis(&url, async |mut link| {
            let mut asked = redis::pipe();
            asked
                .cmd("HGET")
                .arg("user6284781860667377211")
                .arg("field3")
                .cmd("DBSIZE")
                .cmd("ZCARD")
                .arg("encore:keys");
            let (value, keys, indexed): (String, u64, u64) = asked.query_async(&mut link).await.expect("answers");
            let mut expected = String::new();
            Model::of(&place.source).values.initial(0, 3, &mut expected);
            assert_eq!(value, expected);
            assert_eq!((keys, indexed), if scans { (242, 240) } else { (241, 0) });
        });
    }
}

#[test]
fn times_to_live_are_checked_and_kept() {
    let Some(server) = servers::redis() else { return };
    let url = redis_url(server);
    let forever = points(&[]);
    let store = any_store::open(&url_with(&url, "ttl=500")).expect(&url);
    refused(any_store::open(&url_with(&url, "ttl=0")).map(drop), Blame::Usage, &["ttl: 0 is too few"]);
    let scanning = with_mix("scan = 1\n", &[]);
    refused(store.load(&scanning.source, &|_, _| {}), Blame::Usage, &["ttl does not go with scans", "mix.scan"]);
    store.load(&forever.source, &|_, _| {}).expect(&url);
    let ttl = with_redis(&url, async |mut link| {
        redis::cmd("TTL").arg("user6284781860667377211").query_async::<i64>(&mut link).await.expect("TTL")
    });
    assert!((1..=500).contains(&ttl), "{ttl}");
    let plain = any_store::open(&url).expect(&url);
    refused(plain.positions(&forever.source), Blame::Usage, &["was loaded with ttl=500, the URL says ttl=none"]);
}
