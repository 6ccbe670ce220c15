//! Every read returns what the reference store returns.

use replayer::source::Source;
use schemas::dataset::Table;
use schemas::social::{Action, Operation};

use crate::place::{BUSY, Place, operation};
use crate::subjects::{self, Client, ImagesSent};

/// What an operation saw, in the order of the values where that is free.
fn observed(client: &mut dyn Client, operation: &Operation, url: &str) -> (Vec<i64>, u64) {
    let answer = client.execute(operation).unwrap_or_else(|error| panic!("{url}: {operation:?}: {error:?}"));
    let mut values = answer.values;
    if !matches!(operation.action, Action::ViewProfile | Action::ViewTopKResources) {
        values.sort_unstable();
    }
    (values, answer.payload_bytes)
}

/// How many bytes of text and images come with an answer.
fn payload_bytes(source: &Source, operation: &Operation, values: usize, images: ImagesSent) -> u64 {
    let data = source.data();
    let lengths =
        [data.attribute_bytes, data.image_bytes, data.thumbnail_bytes, data.resource_bytes, data.comment_bytes];
    let [attributes, image, thumbnail, resource, comment] = lengths.map(u64::from);
    let (image, thumbnail) = match images {
        ImagesSent::Yes => (image, thumbnail),
        ImagesSent::No => (0, 0),
    };
    let rows = values as u64;
    match operation.action {
        Action::ViewProfile => attributes + image,
        Action::ListFriends | Action::ViewFriendRequests => rows * (attributes + thumbnail),
        Action::ViewTopKResources => rows * resource,
        Action::ViewComments => rows * comment,
        _ => 0,
    }
}

/// A trace, what the reference store shows to each operation, and the last state.
struct Expected {
    place: Place,
    operations: Vec<Operation>,
    observed: Vec<Vec<i64>>,
    digest: String,
}

impl Expected {
    fn of(seed: u64) -> Expected {
        let place = Place::with(BUSY, &[&format!("seed={seed}")]);
        let operations = place.operations();
        for action in Action::ALL {
            assert!(operations.iter().any(|o| o.action == action), "seed {seed}: no {action:?}");
        }
        let reference = subjects::reference().loaded(&place.source);
        let mut client = reference.connect(&place.source);
        let observed = operations.iter().map(|operation| observed(client.as_mut(), operation, "memory:").0).collect();
        Expected { digest: place.digest(None), place, operations, observed }
    }
}

#[test]
fn every_operation_sees_what_the_reference_store_shows() {
    let folder = tempfile::tempdir().expect("a folder");
    // A prime number of traces: stores that differ in one choice get different ones.
    let traces: Vec<Expected> = (0..5).map(Expected::of).collect();
    for (number, subject) in subjects::all(folder.path()).into_iter().enumerate() {
        let expected = &traces[number % traces.len()];
        let source = &expected.place.source;
        let (images, url) = (subject.images, format!("seed {}, {}", source.manifest.spec.seed, subject.url));
        let subject = subject.loaded(source);
        let mut client = subject.connect(source);
        for (number, (operation, seen)) in expected.operations.iter().zip(&expected.observed).enumerate() {
            let (found, bytes) = observed(client.as_mut(), operation, &url);
            assert_eq!(&found, seen, "{url}: operation {number}, {operation:?}");
            let wanted = payload_bytes(source, operation, found.len(), images);
            assert_eq!(bytes, wanted, "{url}: payload of operation {number}, {operation:?}");
        }
        assert_eq!(subject.store().digest(source).expect(&url).to_string(), expected.digest, "{url}");
    }
}

/// Members without friends and invitations, some without resources, resources
/// without comments.
const LONELY: &str = r#"
name = "lonely"
sessions = 1
[data]
members = 1001
resources_per_member = 1
attribute_bytes = 10
thumbnail_bytes = 5
[mix]
view_profile = 1
"#;

#[test]
fn what_is_empty_is_seen_empty() {
    let place = Place::with(LONELY, &[]);
    let source = &place.source;
    let walls: Vec<[u64; 3]> = place.rows(Table::Resources);
    let bare = (0..1001).find(|member| walls.iter().all(|[_, _, wall]| wall != member)).expect("a bare wall");
    for subject in subjects::all(place.path()) {
        let url = subject.url.clone();
        let subject = subject.loaded(source);
        let mut client = subject.connect(source);
        let mut check = |action, target, expected: &[i64]| {
            let found = observed(client.as_mut(), &operation(action, bare, target), &url).0;
            assert_eq!(found, expected, "{url}: {action:?}");
        };
        check(Action::ViewProfile, bare, &[0, 0, 0]);
        check(Action::ListFriends, bare, &[]);
        check(Action::ViewFriendRequests, bare, &[]);
        check(Action::ViewTopKResources, bare, &[]);
        check(Action::ViewComments, walls[0][0], &[]);
    }
}

#[test]
fn a_thousand_friends_are_listed() {
    let place = Place::with(LONELY, &[]);
    let source = &place.source;
    // Half of them invited her, and she invited the others.
    let (star, inviters, invitees) = (500, 0..500, 501..1001);
    for subject in subjects::all(place.path()) {
        let url = subject.url.clone();
        let subject = subject.loaded(source);
        let mut client = subject.connect(source);
        let mut see =
            |action, socialite, target| observed(client.as_mut(), &operation(action, socialite, target), &url).0;
        let resources = see(Action::ViewProfile, star, star)[1];
        for inviter in inviters.clone() {
            see(Action::InviteFriend, inviter, star);
        }
        assert_eq!(see(Action::ViewFriendRequests, star, star), Vec::from_iter(0..500), "{url}");
        assert_eq!(see(Action::ViewProfile, star, star), [0, resources, 500], "{url}");
        for inviter in inviters.clone() {
            see(Action::AcceptFriendRequest, star, inviter);
        }
        for invitee in invitees.clone() {
            see(Action::InviteFriend, star, invitee);
            see(Action::AcceptFriendRequest, invitee, star);
        }
        assert_eq!(see(Action::ListFriends, star, star), Vec::from_iter((0..500).chain(501..1001)), "{url}");
        assert_eq!(see(Action::ViewProfile, star, star), [1000, resources, 0], "{url}");
        for friend in [0, 499, 501, 1000] {
            assert_eq!(see(Action::ListFriends, friend, friend), [500], "{url}");
        }
        see(Action::ThawFriendship, star, 0);
        see(Action::ThawFriendship, 1, star);
        see(Action::ThawFriendship, star, 1000);
        see(Action::ThawFriendship, 999, star);
        assert_eq!(see(Action::ListFriends, star, star), Vec::from_iter((2..500).chain(501..999)), "{url}");
        assert_eq!(see(Action::ListFriends, 1000, 1000), [0; 0], "{url}");
        subject.store().digest(source).expect(&url);
    }
}
