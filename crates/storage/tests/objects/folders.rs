//! Whole folders: fetched in part, and published so that documents come last.

use storage::{Snapshot, StorageError};

use crate::support::prefix;

#[test]
fn a_folder_is_fetched_in_part_and_what_changed_goes_back() {
    let Some((_, remote)) = prefix("folders") else { return };
    let (here, there) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let write = |folder: &tempfile::TempDir, name: &str, text: &str| {
        schemas::files::write_atomically(&folder.path().join(name), text.as_bytes()).expect("written");
    };
    let names = ["run.json", "log/fragment-0.arrows", "log/fragment-1.arrows"];
    names.iter().for_each(|name| write(&here, name, name));
    remote.publish(here.path(), &names, &["run.json"]).expect("published");

    let all = remote.fetch(|name| name != "log/fragment-1.arrows", there.path()).expect("fetched");
    assert_eq!(all.len(), 3);
    let before = Snapshot::of(there.path()).expect("a snapshot");
    assert_eq!(before.names().collect::<Vec<_>>(), ["log/fragment-0.arrows", "run.json"]);

    write(&there, "operations/fragment=0/part-0.parquet", "rows");
    write(&there, "summaries/0.json", "{}");
    let after = Snapshot::of(there.path()).expect("a snapshot");
    remote.publish(there.path(), &after.since(&before), &[]).expect("published");
    let listed: Vec<String> = remote.list("").expect("a list").into_iter().map(|object| object.name).collect();
    let expected = [
        "log/fragment-0.arrows",
        "log/fragment-1.arrows",
        "operations/fragment=0/part-0.parquet",
        "run.json",
        "summaries/0.json",
    ];
    assert_eq!(listed, expected);
}

/// A reader takes a folder whose manifest is there for a whole one.
#[test]
fn a_document_never_comes_before_its_data() {
    let Some((_, remote)) = prefix("order") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let names = ["a.parquet", "b.json", "manifest.json"];
    names.iter().for_each(|name| std::fs::write(folder.path().join(name), name).expect("written"));
    std::fs::create_dir(folder.path().join("z.parquet")).expect("a folder that is no file");
    let error =
        remote.publish(folder.path(), &["manifest.json", "b.json", "a.parquet", "z.parquet"], &["manifest.json"]);
    assert!(matches!(error, Err(StorageError::File(_))), "{error:?}");
    assert!(!remote.exists("b.json").expect("an answer") && !remote.exists("manifest.json").expect("an answer"));
    remote.publish(folder.path(), &names, &["manifest.json"]).expect("published");
    assert_eq!(remote.list("").expect("a list").len(), 3);
}
