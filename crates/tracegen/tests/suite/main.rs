//! Tests of the generator through its public interface and its command line.

mod arrivals;
mod assigned;
mod cli;
mod determinism;
mod golden;
mod model;
mod parts;
mod properties;
mod replay;
mod script;
mod statistics;
mod tpcc;
mod unique;
mod waits;
mod writes;

use std::path::Path;

use schemas::manifest::Manifest;
use schemas::social::TraceRow;
use schemas::spec::Spec;
use schemas::trace::OperationsReader;
use schemas::vocabulary::Vocabulary;
use schemas::workload::social::{SocialStatistics, SocialWorkload};
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

/// BG's sessions, single actions and composed sessions in a small world. There the members,
/// comments and invitations that they look for are often missing.
const MIXED: &str = "
name = 'mixed'
seed = 11
sessions = 20_000
fragments = 2
[data]
members = 200
friends_per_member = 4
pending_per_member = 2
resources_per_member = 1
comments_per_resource = 1
top_k = 2
[access]
own_profile_share = 0.2
dependency_window = 256
[think_time]
mean_us = 300
distribution = 'exponential'
[inter_arrival_time]
mean_us = 700
[mix]
view_profile = 5
list_friends = 3
view_friend_requests = 3
view_top_k_resources = 3
view_comments = 3
invite_friend = 4
accept_friend_request = 2
reject_friend_request = 1
thaw_friendship = 2
post_comment = 2
delete_comment = 2
view_self_profile_session = 5
view_friend_profile_session = 5
post_comment_session = 5
delete_comment_session = 5
invite_friend_session = 6
accept_friend_request_session = 4
reject_friend_request_session = 2
thaw_friendship_session = 4
accept_two = 2
fall_out = 2
discuss = 3
look_at_a_stranger = 1
[session.accept_two]
steps = [
  'view_profile inviter', 'accept_friend_request inviter', 'accept_friend_request inviter', 'view_profile inviter',
]
[session.fall_out]
steps = [
  'list_friends friend', 'thaw_friendship friend', 'view_profile friend', 'invite_friend stranger',
  'list_friends stranger', 'thaw_friendship friend',
]
[session.discuss]
steps = [
  'view_comments wall_resource', 'view_profile member', 'post_comment own_resource', 'delete_comment own_resource',
  'delete_comment own_resource', 'delete_comment own_resource', 'view_comments resource', 'post_comment resource',
]
[session.look_at_a_stranger]
steps = ['view_profile stranger', 'view_top_k_resources stranger', 'invite_friend stranger', 'invite_friend stranger']
";

/// The mixed specification with some settings.
/// The part of the family.
fn social(spec: &Spec) -> SocialWorkload {
    spec.workload().expect("a workload of the family")
}

fn mixed(settings: &[&str]) -> Spec {
    let settings: Vec<String> = settings.iter().map(|s| s.to_string()).collect();
    Spec::parse_with(MIXED, "mixed.toml", &settings).unwrap()
}

/// The busy specification with some settings.
fn busy(settings: &[&str]) -> Spec {
    let settings: Vec<String> = settings.iter().map(|s| s.to_string()).collect();
    Spec::parse_with(BUSY, "busy.toml", &settings).unwrap()
}

/// Generates into a folder.
fn generate_into(spec: &Spec, folder: &Path, threads: usize) -> Manifest {
    generate(spec, folder, &GenerateOptions { threads, ..GenerateOptions::default() }).unwrap()
}

/// All operations of a fragment, with kinds by their place in the specification.
fn operations(manifest: &Manifest, folder: &Path, fragment: u32) -> Vec<TraceRow> {
    operations_of::<schemas::social::Social>(manifest, folder, fragment)
}

/// The same in any vocabulary.
fn operations_of<V: Vocabulary>(
    manifest: &Manifest,
    folder: &Path,
    fragment: u32,
) -> Vec<schemas::trace::TraceRow<V::Operation>> {
    let mut reader = OperationsReader::<V>::new(fragment, manifest.operation_files(folder, fragment), 65_536);
    let (mut all, mut chunk) = (Vec::new(), Vec::new());
    while reader.next_rows(&mut chunk).unwrap() {
        all.append(&mut chunk);
    }
    // A reader numbers the kinds in the order in which it meets them.
    let kinds = manifest.spec.kinds();
    let place = |name: &String| kinds.iter().position(|(kind, _)| kind == name).unwrap() as u8;
    let places: Vec<u8> = reader.kinds().iter().map(place).collect();
    all.iter_mut().for_each(|row| row.kind = places[row.kind as usize]);
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

/// The statistics of a trace set of the `social` family.
fn statistics_of(manifest: &Manifest) -> SocialStatistics {
    manifest.statistics_of::<SocialWorkload>().unwrap()
}
