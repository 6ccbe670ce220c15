//! MongoDB: what is stored, and databases of another family.

use replayer::any_store;
use replayer::stores::Blame;
use replayer::stores::mongodb::MongoDb;
use schemas::vocabulary::kv::Verb;

use super::model::Model;
use super::subjects::{database, subject};
use super::{operation, points, refused, with_mix};
use crate::place::{BUSY, Place};

/// Records are documents as YCSB stores them; fields that are texts are read too.
#[test]
fn records_in_mongodb_are_those_of_ycsb() {
    let Some(server) = servers::mongodb() else { return };
    let place = with_mix("read = 1\n", &[]);
    let url = server.url(&database());
    let subject = subject(&url, MongoDb::open);
    subject.load(&place.source);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let digest = |source| subject.store().digest(source).expect(&url).to_string();
    let before = digest(&place.source);
    let key = "user6284781860667377211";
    let mut expected = String::new();
    Model::of(&place.source).values.initial(0, 3, &mut expected);
    runtime.block_on(async {
        let client = mongodb::Client::with_uri_str(&url).await.expect(&url);
        let database = client.default_database().expect("a database");
        let records = database.collection::<mongodb::bson::Document>("usertable");
        let which = mongodb::bson::doc! { "_id": key };
        let record = records.find_one(which.clone()).await.expect("an answer").expect("a record");
        assert_eq!(record.len(), 5);
        assert_eq!(record.get_binary_generic("field3").expect("binary"), expected.as_bytes());
        let change = mongodb::bson::doc! { "$set": { "field3": &expected } };
        assert_eq!(records.update_one(which, change).await.expect("an update").modified_count, 1);
    });
    let answer = subject.connect(&place.source).execute(&operation(Verb::Read, 0, 8, 0)).expect(&url);
    assert_eq!((answer.values, answer.payload_bytes), (vec![0], expected.len() as u64));
    assert_eq!(digest(&place.source), before);
}

#[test]
fn a_collection_beside_encores_own_is_refused_and_unchanged() {
    let Some(server) = servers::mongodb() else { return };
    let (records, members) = (points(&[]), Place::with(BUSY, &["sessions=1"]));
    // The collection of the other vocabulary is not one that this load has made.
    for (name, first, collection) in [
        ("beside_kv", &records, "precious"),
        ("beside_social", &members, "precious"),
        ("members_beside_kv", &records, "members"),
        ("usertable_beside_social", &members, "usertable"),
    ] {
        let url = server.url(&format!("{name}_{}", std::process::id()));
        any_store::open(&url).expect(&url).load(&first.source, &|_, _| {}).expect(&url);
        let documents = || async {
            let client = mongodb::Client::with_uri_str(&url).await.expect(&url);
            client.default_database().expect("a database").collection::<mongodb::bson::Document>(collection)
        };
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let precious = mongodb::bson::doc! { "precious": 42 };
        runtime.block_on(async { documents().await.insert_one(&precious).await.expect(&url) });
        for url in [url.clone(), crate::subjects::url_with(&url, "reset=reload")] {
            for place in [&records, &members] {
                let loaded = any_store::open(&url).expect(&url).load(&place.source, &|_, _| {});
                let words = [&format!("collection {collection}"), "Encore has not made", "choose another database"];
                refused(loaded, Blame::Usage, &words);
            }
        }
        let found = runtime.block_on(async { documents().await.count_documents(precious).await.expect(&url) });
        assert_eq!(found, 1, "{url}");
    }
}

/// A database that holds the data set of one vocabulary can be loaded with that of another.
#[test]
fn families_replace_each_other_in_mongodb() {
    let Some(server) = servers::mongodb() else { return };
    let records = points(&[]);
    let members = Place::with(BUSY, &["sessions=1"]);
    let url = server.url(&database());
    let store = any_store::open(&url).expect(&url);
    assert_eq!(store.vocabularies(), ["social", "kv", "sql"]);
    for _ in 0..2 {
        store.load(&records.source, &|_, _| {}).expect(&url);
        assert_eq!(store.positions(&records.source).expect(&url), []);
        refused(store.positions(&members.source), Blame::State, &["contains workload"]);
        store.load(&members.source, &|_, _| {}).expect(&url);
        refused(store.positions(&records.source), Blame::State, &["contains workload"]);
        assert_eq!(store.digest(&members.source).expect(&url).to_string(), members.digest(Some(0)));
    }
}
