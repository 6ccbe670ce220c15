//! Tests of the generator through its public interface and its command line.

mod assigned;
mod cli;
mod determinism;
mod golden;
mod model;
mod properties;
mod replay;

use std::path::Path;

use schemas::manifest::Manifest;
use schemas::spec::Spec;
use schemas::trace::{OperationsReader, TraceRow};
use tracegen::{GenerateOptions, generate};

/// A specification with every action, many of them writes.
const BUSY: &str = "
name = 'busy'
seed = 5
sessions = 20_000
fragments = 8
[data]
members = 1_000
friends_per_member = 10
pending_per_member = 5
resources_per_member = 3
comments_per_resource = 2
image_bytes = 40
[access]
own_profile_share = 0.2
[mix]
view_profile = 30
list_friends = 10
view_friend_requests = 10
view_top_k_resources = 10
view_comments = 10
invite_friend = 8
accept_friend_request = 4
reject_friend_request = 3
thaw_friendship = 5
post_comment = 5
delete_comment = 5
";

/// The busy specification with some settings.
fn busy(settings: &[&str]) -> Spec {
    let settings: Vec<String> = settings.iter().map(|s| s.to_string()).collect();
    Spec::parse_with(BUSY, "busy.toml", &settings).unwrap()
}

/// Generates into a folder.
fn generate_into(spec: &Spec, folder: &Path, threads: usize) -> Manifest {
    generate(spec, folder, &GenerateOptions { threads, ..GenerateOptions::default() }).unwrap()
}

/// All operations of a fragment.
fn operations(manifest: &Manifest, folder: &Path, fragment: u32) -> Vec<TraceRow> {
    let mut reader = OperationsReader::new(manifest.operation_files(folder, fragment), 65_536);
    let (mut all, mut chunk) = (Vec::new(), Vec::new());
    while reader.next_chunk(&mut chunk).unwrap() {
        all.append(&mut chunk);
    }
    all
}

/// Every file below a folder with its content, by relative path.
fn content(folder: &Path) -> Vec<(String, Vec<u8>)> {
    fn walk(root: &Path, folder: &Path, found: &mut Vec<(String, Vec<u8>)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, found);
            } else {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_string();
                found.push((name, std::fs::read(&path).unwrap()));
            }
        }
    }
    let mut found = Vec::new();
    walk(folder, folder, &mut found);
    found.sort();
    found
}
