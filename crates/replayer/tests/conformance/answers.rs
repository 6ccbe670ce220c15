//! Every read returns what the reference store returns.

use replayer::source::Source;
use replayer::stores::Answer;
use replayer::stores::answer::KeptRows;
use schemas::social::{Action, Operation};
use schemas::workload::social::dataset::Table;

use crate::place::{BUSY, Place, operation};
use crate::subjects::{self, Client, ImagesSent};

/// What an operation saw; sorted if the order of the values is free.
fn observed(client: &mut dyn Client, operation: &Operation, url: &str) -> Vec<i64> {
    in_order(operation, execute(client, operation, url).values)
}

fn execute(client: &mut dyn Client, operation: &Operation, url: &str) -> Answer {
    client.execute(operation).unwrap_or_else(|error| panic!("{url}: {operation:?}: {error:?}"))
}

fn in_order(operation: &Operation, mut values: Vec<i64>) -> Vec<i64> {
    if !matches!(operation.action, Action::ViewProfile | Action::ViewTopKResources) {
        values.sort_unstable();
    }
    values
}

/// Every byte of text and image that came with an answer must be the one that
/// the payload function gives.
fn check_payload(source: &Source, operation: &Operation, answer: &Answer, images: ImagesSent) -> Result<(), String> {
    let payload = source.payload();
    let image = |bytes: Vec<u8>| if images == ImagesSent::Yes { bytes } else { vec![] };
    let mut bytes = 0;
    for row in answer.rows().into_iter().flat_map(KeptRows::iter) {
        let row = row.map_err(|error| error.to_string())?;
        let id = row.values().first().copied().unwrap_or_default() as u64;
        let (text, expected_image) = match operation.action {
            Action::ViewProfile => (payload.attributes(operation.target), image(payload.image(operation.target))),
            Action::ListFriends | Action::ViewFriendRequests => (payload.attributes(id), image(payload.thumbnail(id))),
            Action::ViewTopKResources => (payload.resource(id), vec![]),
            Action::ViewComments => (payload.comment(id), vec![]),
            _ => return Err("a write has rows".to_string()),
        };
        if (row.text, row.image) != (text.as_str(), expected_image.as_slice()) {
            return Err(format!("the payload of {id} is not its own"));
        }
        bytes += (row.text.len() + row.image.len()) as u64;
    }
    match bytes == answer.payload_bytes {
        true => Ok(()),
        false => Err(format!("{} bytes of payload are counted, {bytes} were seen", answer.payload_bytes)),
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
        let observed = operations.iter().map(|operation| observed(client.as_mut(), operation, "memory:")).collect();
        Expected { digest: place.digest(None), place, operations, observed }
    }
}

#[test]
fn every_operation_sees_what_the_reference_store_shows() {
    let folder = tempfile::tempdir().expect("a folder");
    // The number of traces is prime, so that stores that differ in one choice get different traces.
    let traces: Vec<Expected> = (0..5).map(Expected::of).collect();
    for (number, subject) in subjects::all(folder.path()).into_iter().enumerate() {
        let expected = &traces[number % traces.len()];
        let source = &expected.place.source;
        let (images, url) = (subject.images, format!("seed {}, {}", source.manifest.spec.seed, subject.url));
        let subject = subject.loaded(source);
        let mut client = subject.connect(source);
        for (number, (operation, seen)) in expected.operations.iter().zip(&expected.observed).enumerate() {
            let answer = execute(client.as_mut(), operation, &url);
            let rows = answer.rows().into_iter().flat_map(KeptRows::iter).count();
            let expected_rows = match operation.action {
                _ if operation.action.is_write() => 0,
                Action::ViewProfile => 1,
                _ => answer.values.len(),
            };
            assert_eq!(rows, expected_rows, "{url}: rows of operation {number}, {operation:?}");
            let checked = check_payload(source, operation, &answer, images);
            checked.unwrap_or_else(|error| panic!("{url}: operation {number}, {operation:?}: {error}"));
            assert_eq!(&in_order(operation, answer.values), seen, "{url}: operation {number}, {operation:?}");
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
            let found = observed(client.as_mut(), &operation(action, bare, target), &url);
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
    // Half of the friends invite `star`, and `star` invites the others.
    let (star, inviters, invitees) = (500, 0..500, 501..1001);
    for subject in subjects::all(place.path()) {
        let url = subject.url.clone();
        let subject = subject.loaded(source);
        let mut client = subject.connect(source);
        let mut see =
            |action, socialite, target| observed(client.as_mut(), &operation(action, socialite, target), &url);
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
