//! A write whose precondition does not hold is reported as failed and changes nothing.

use replayer::stores::OperationError;
use schemas::social::{Action, Operation};
use schemas::workload::social::dataset::Table;

use crate::place::{BUSY, Place, operation};
use crate::subjects;

/// Writes whose preconditions do not hold in the data set.
fn impossible(place: &Place) -> Vec<Operation> {
    let [a, b] = place.rows::<2>(Table::Friendships)[0];
    let [inviter, invitee] = place.rows::<2>(Table::Invitations)[0];
    let [comment, resource, author] = place.rows::<3>(Table::Comments)[0];
    let related = |x: u64, y: u64| {
        let same = |row: &[u64; 2]| *row == [x, y] || *row == [y, x];
        place.rows(Table::Friendships).iter().any(same) || place.rows(Table::Invitations).iter().any(same)
    };
    let stranger = (1..60).find(|other| !related(0, *other)).expect("a stranger");
    let on = |action, socialite, resource, comment| Operation {
        comment: Some(comment),
        ..operation(action, socialite, resource)
    };
    vec![
        operation(Action::InviteFriend, inviter, invitee),
        operation(Action::AcceptFriendRequest, 0, stranger),
        operation(Action::AcceptFriendRequest, inviter, invitee),
        operation(Action::AcceptFriendRequest, a, b),
        operation(Action::AcceptFriendRequest, b, a),
        operation(Action::RejectFriendRequest, 0, stranger),
        operation(Action::RejectFriendRequest, inviter, invitee),
        operation(Action::RejectFriendRequest, a, b),
        operation(Action::RejectFriendRequest, b, a),
        operation(Action::ThawFriendship, 0, stranger),
        operation(Action::ThawFriendship, inviter, invitee),
        operation(Action::ThawFriendship, invitee, inviter),
        on(Action::PostComment, author, resource, comment),
        on(Action::DeleteComment, author, resource + 1, comment),
        on(Action::DeleteComment, author, resource, u64::MAX >> 1),
    ]
}

#[test]
fn impossible_writes_fail_and_change_nothing() {
    let place = Place::with(BUSY, &["sessions=1"]);
    let source = &place.source;
    let before = place.digest(Some(0));
    let impossible = impossible(&place);
    let [inviter, invitee] = place.rows::<2>(Table::Invitations)[0];
    for subject in subjects::all(place.path()) {
        let url = subject.url.clone();
        let subject = subject.loaded(source);
        let mut client = subject.connect(source);
        for operation in &impossible {
            let result = client.execute(operation);
            assert!(matches!(result, Err(OperationError::Failed(_))), "{url}: {operation:?}: {result:?}");
            let after = subject.store().digest(source).expect(&url).to_string();
            assert_eq!(after, before, "{url}: {operation:?} has changed something");
        }
        // No transaction was left open: the next write succeeds, and other connections see it.
        let accepted = client.execute(&operation(Action::AcceptFriendRequest, invitee, inviter));
        accepted.unwrap_or_else(|error| panic!("{url}: {error:?}"));
        assert_ne!(subject.store().digest(source).expect(&url).to_string(), before, "{url}");
        let seen = subject.connect(source).execute(&operation(Action::ViewProfile, invitee, invitee));
        let seen = seen.unwrap_or_else(|error| panic!("{url}: {error:?}")).values;
        assert_eq!((seen[0], seen[2]), (9, 3), "{url}");
    }
}
