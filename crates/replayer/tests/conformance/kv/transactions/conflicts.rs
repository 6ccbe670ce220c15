//! Two transactions at the same time: what each level of isolation allows, and what it does not.

use replayer::stores::OperationError;
use schemas::isolation::Isolation;

use super::subjects::{self, Subject};
use super::{Client, Done, is_aborted};

const A: u64 = 7;
const B: u64 = 11;

/// Ends a transaction: writes, then commits. The first error counts.
async fn finish(client: &mut Client, key: u64, number: u16) -> Done {
    client.update(key, number).await?;
    client.commit().await
}

/// MariaDB's transactions see a snapshot at `repeatable-read`, and write on top of the newest state.
fn has_lost_updates(subject: &Subject) -> bool {
    subject.level <= Isolation::ReadCommitted
        || (subject.level, subject.url.starts_with("mysql:")) == (Isolation::RepeatableRead, true)
}

#[test]
fn of_two_that_change_what_both_have_read_one_is_aborted() {
    let place = subjects::place_without_scans();
    for subject in subjects::all(place.path()) {
        let url = &subject.url;
        subject.run(&place, 2, async |mut clients| {
            let [one, two] = &mut clients[..] else { panic!("two clients") };
            for client in [&mut *one, &mut *two] {
                client.begin().await.expect(url);
            }
            for client in [&mut *one, &mut *two] {
                assert_eq!(client.read(A).await, Ok(Some(0)), "{url}");
            }
            let done = tokio::join!(finish(one, A, 1), finish(two, A, 2));
            let last = one.read(A).await.expect(url);
            if has_lost_updates(&subject) && subject.level != Isolation::ReadUncommitted {
                assert_eq!(done, (Ok(()), Ok(())), "{url}");
                assert!([Some(1), Some(2)].contains(&last), "{url}: {last:?}");
                return;
            }
            // MariaDB's second one waits at read uncommitted, and `memory:` refuses it.
            let expected = match (&done.0, &done.1) {
                (Ok(()), Ok(())) if subject.level == Isolation::ReadUncommitted => last,
                (Ok(()), Err(OperationError::Aborted(_))) => Some(1),
                (Err(OperationError::Aborted(_)), Ok(())) => Some(2),
                _ => panic!("{url}: {done:?}"),
            };
            assert_eq!(last, expected, "{url}");
            // Both connections are good for another transaction, of which each sees the other.
            for (client, number) in [(&mut *one, 3), (&mut *two, 4)] {
                client.begin().await.expect(url);
                let seen = client.read(A).await.expect(url);
                assert_eq!(seen, if number == 3 { last } else { Some(3) }, "{url}");
                finish(client, A, number).await.expect(url);
            }
        });
    }
}

#[test]
fn write_skew_is_possible_below_serializable_only() {
    let place = subjects::place_without_scans();
    for subject in subjects::all(place.path()) {
        let url = &subject.url;
        subject.run(&place, 2, async |mut clients| {
            let [one, two] = &mut clients[..] else { panic!("two clients") };
            for client in [&mut *one, &mut *two] {
                client.begin().await.expect(url);
                for key in [A, B] {
                    assert_eq!(client.read(key).await, Ok(Some(0)), "{url}");
                }
            }
            let done = tokio::join!(finish(one, A, 1), finish(two, B, 2));
            match subject.level < Isolation::Serializable {
                true => assert_eq!(done, (Ok(()), Ok(())), "{url}"),
                false => {
                    let count = is_aborted(&done.0) as u32 + is_aborted(&done.1) as u32;
                    assert!(count == 1 && (done.0.is_ok() || done.1.is_ok()), "{url}: {done:?}");
                }
            }
        });
    }
}

/// What is not committed is seen at read uncommitted only.
#[test]
fn dirty_reads_are_possible_at_read_uncommitted_only() {
    let place = subjects::place_without_scans();
    for subject in subjects::all(place.path()) {
        let url = &subject.url;
        subject.run(&place, 2, async |mut clients| {
            let [one, two] = &mut clients[..] else { panic!("two clients") };
            one.begin().await.expect(url);
            one.update(A, 1).await.expect(url);
            let dirty = subject.level == Isolation::ReadUncommitted;
            assert_eq!(two.read(A).await, Ok(Some(dirty as u16)), "{url}");
            one.abort().await.expect(url);
            assert_eq!(two.read(A).await, Ok(Some(0)), "{url}");
        });
    }
}

/// Below repeatable read, a second read of a record may see another value.
#[test]
fn reads_repeat_from_repeatable_read_on() {
    let place = subjects::place_without_scans();
    for subject in subjects::all(place.path()) {
        let url = &subject.url;
        // There the write would wait for the transaction, or the transaction could not be committed.
        if subject.level >= Isolation::Serializable {
            continue;
        }
        subject.run(&place, 2, async |mut clients| {
            let [one, two] = &mut clients[..] else { panic!("two clients") };
            one.begin().await.expect(url);
            assert_eq!(one.read(A).await, Ok(Some(0)), "{url}");
            two.update(A, 1).await.expect(url);
            let repeats = subject.level >= Isolation::RepeatableRead;
            assert_eq!(one.read(A).await, Ok(Some(!repeats as u16)), "{url}");
            one.commit().await.expect(url);
        });
    }
}

/// With `locking=read`, the second one waits for the first, even where updates would get lost otherwise.
#[test]
fn reads_that_lock_lose_no_update() {
    let place = subjects::place_without_scans();
    for subject in subjects::locking(place.path()) {
        let url = &subject.url;
        subject.run(&place, 2, async |mut clients| {
            let [one, two] = &mut clients[..] else { panic!("two clients") };
            one.begin().await.expect(url);
            assert_eq!(one.read(A).await, Ok(Some(0)), "{url}");
            let second = async {
                two.begin().await?;
                assert_eq!(two.read(A).await, Ok(Some(1)), "{url}");
                finish(two, A, 2).await
            };
            let first = finish(one, A, 1);
            // The second one is asked first.
            let done = tokio::join!(second, first);
            assert_eq!(done, (Ok(()), Ok(())), "{url}");
            assert_eq!(one.read(A).await, Ok(Some(2)), "{url}");
            // A read by itself does not wait for the locks of reads.
            one.begin().await.expect(url);
            one.read(B).await.expect(url);
            assert_eq!(two.read(B).await, Ok(Some(0)), "{url}");
            one.abort().await.expect(url);
        });
    }
}
