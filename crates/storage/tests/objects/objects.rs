//! Single objects: written, read, listed, deleted.

use storage::{Object, Remote, StorageError};

use crate::support::{bytes, prefix, url, variables};

#[test]
fn what_is_written_is_read() {
    let Some((server, remote)) = prefix("round-trip") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("from"), folder.path().join("deep/to"));
    // Less than a part, exactly one, and several with a shorter last one: the parts have 8 MiB.
    for (name, length) in [
        ("empty", 0),
        ("operations/fragment=3/part-0.parquet", 5_000),
        ("one part", 8 << 20),
        ("a folder/with spaces & signs +%.bin", (17 << 20) + 5),
    ] {
        let content = bytes(length);
        std::fs::write(&from, &content).expect("written");
        remote.put(&from, name).expect(name);
        remote.get(name, &to).expect(name);
        assert!(std::fs::read(&to).expect("read") == content, "{name}");
        assert!(remote.exists(name).expect(name));
    }
    let listed = remote.list("operations").expect("a list");
    assert_eq!(listed, [Object { name: "operations/fragment=3/part-0.parquet".to_string(), bytes: 5_000 }]);
    assert_eq!(remote.list("operations/fragment").expect("a list"), [], "a folder is whole parts of a name");
    assert_eq!(remote.list("").expect("a list").len(), 4);

    // An object is replaced, and the bucket as a whole shows it below its prefix.
    remote.put_bytes("empty", b"not any more").expect("put");
    assert_eq!(remote.get_bytes("empty").expect("got"), b"not any more");
    let bucket = Remote::open_with(&url("s3://encore"), variables(server, &[])).expect("the bucket");
    assert_eq!(bucket.get_bytes("round-trip/empty").expect("got"), b"not any more");

    remote.delete("empty").expect("deleted");
    remote.delete("empty").expect("deleting what is not there is no error");
    assert!(!remote.exists("empty").expect("an answer"));
    let error = remote.get("empty", &to).expect_err("deleted");
    assert!(
        matches!(&error, StorageError::NoObject { url } if url.to_string().ends_with("round-trip/empty")),
        "{error}"
    );
    assert_eq!(
        std::fs::read_dir(folder.path().join("deep")).expect("a folder").count(),
        1,
        "no temporary file is left"
    );
}

/// A store answers with a thousand names at a time.
#[test]
fn a_list_has_all_its_pages() {
    let Some((_, remote)) = prefix("pages") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let names: Vec<String> = (0..1_203).map(|number| format!("many/fragment={number}/part")).collect();
    for name in &names {
        schemas::files::write_atomically(&folder.path().join(name), name.as_bytes()).expect("written");
    }
    remote.put_all(folder.path(), names.iter().map(String::as_str)).expect("put");
    let listed = remote.list("").expect("a list");
    let mut expected = names.clone();
    expected.sort();
    assert_eq!(listed.iter().map(|object| &object.name).collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
    assert_eq!(
        listed.iter().map(|object| object.bytes).sum::<u64>(),
        names.iter().map(|name| name.len() as u64).sum::<u64>()
    );
}
