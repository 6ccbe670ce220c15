//! The `social` family: only lists, since every count is the length of one.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use schemas::digest::StateDigest;
use schemas::social::{Action, Change, CountKind, ListKind, Observation, Operation, Social};
use schemas::workload::social::dataset::Table;

use super::connection::{NoTransaction, State};
use super::{Inner, Kept, Room};
use crate::source::Source;
use crate::stores::url::StoreUrl;
use crate::stores::{Answer, StoreError};

impl Kept for Social {
    type State = Lists;
}

/// The elements of a list, and those before its last write.
#[derive(Debug, Clone, Default)]
struct List {
    now: Vec<u64>,
    before: Option<Vec<u64>>,
}

impl List {
    fn set(&mut self, element: u64, present: bool, keep_before: bool) {
        if keep_before {
            self.before = Some(self.now.clone());
        }
        match (self.now.binary_search(&element), present) {
            (Err(at), true) => self.now.insert(at, element),
            (Ok(at), false) => {
                self.now.remove(at);
            }
            _ => {}
        }
    }
}

/// Members, their lists and resources.
#[derive(Debug, Clone, Default)]
pub struct Lists {
    lists: HashMap<(ListKind, u64), List>,
    walls: HashMap<u64, Vec<u64>>,
    /// The authors of comments.
    authors: HashMap<u64, u64>,
    resources: BTreeMap<u64, (u64, u64)>,
    members: BTreeSet<u64>,
    top_k: usize,
}

impl Lists {
    /// The list, or what it was before its last write.
    fn list(&self, kind: ListKind, owner: u64, stale: bool) -> &[u64] {
        match self.lists.get(&(kind, owner)) {
            None => &[],
            Some(list) => match (&list.before, stale) {
                (Some(before), true) => before,
                _ => &list.now,
            },
        }
    }
}

impl State<Social> for Lists {
    const COUNTED: &'static str = "members";

    type Transaction = NoTransaction;

    fn loaded(source: &Source, url: &StoreUrl) -> Result<Lists, StoreError> {
        let mut state = Lists { top_k: source.data().top_k as usize, ..Lists::default() };
        let wrong = |e| StoreError::usage(url, e);
        let mut lists: HashMap<(ListKind, u64), Vec<u64>> = HashMap::new();
        for fragment in source.fragments() {
            let folder = &source.folder;
            Table::Members
                .for_each(folder, fragment, |[member]| {
                    state.members.insert(member);
                })
                .map_err(wrong)?;
            Table::Friendships
                .for_each(folder, fragment, |[a, b]| {
                    lists.entry((ListKind::Friends, a)).or_default().push(b);
                    lists.entry((ListKind::Friends, b)).or_default().push(a);
                })
                .map_err(wrong)?;
            Table::Invitations
                .for_each(folder, fragment, |[inviter, invitee]| {
                    lists.entry((ListKind::Pending, invitee)).or_default().push(inviter);
                })
                .map_err(wrong)?;
            Table::Resources
                .for_each(folder, fragment, |[resource, owner, wall]| {
                    state.resources.insert(resource, (owner, wall));
                    state.walls.entry(wall).or_default().push(resource);
                })
                .map_err(wrong)?;
            Table::Comments
                .for_each(folder, fragment, |[comment, resource, author]| {
                    lists.entry((ListKind::Comments, resource)).or_default().push(comment);
                    state.authors.insert(comment, author);
                })
                .map_err(wrong)?;
        }
        for (key, mut elements) in lists {
            elements.sort_unstable();
            state.lists.insert(key, List { now: elements, before: None });
        }
        state.walls.values_mut().for_each(|wall| wall.sort_unstable());
        Ok(state)
    }

    fn room(inner: &mut Inner) -> &mut Option<Room<Lists>> {
        &mut inner.social
    }

    fn count(&self) -> u64 {
        self.members.len() as u64
    }

    fn expected(source: &Source) -> u64 {
        source.rows(Table::Members)
    }

    fn digest(&self, source: &Source, _url: &StoreUrl) -> Result<StateDigest, StoreError> {
        let payload = source.payload();
        let mut digest = StateDigest::default();
        for member in &self.members {
            payload.digest_member(&mut digest, *member);
        }
        for (resource, (owner, wall)) in &self.resources {
            digest.resource(*resource, *owner, *wall, &payload.resource(*resource));
        }
        for ((kind, owner), list) in &self.lists {
            for element in &list.now {
                match kind {
                    ListKind::Friends if owner < element => digest.friendship(*owner, *element),
                    ListKind::Friends => {}
                    ListKind::Pending => digest.invitation(*element, *owner),
                    ListKind::Comments => {
                        let author = self.authors.get(element).copied().unwrap_or(u64::MAX);
                        digest.comment(*element, *owner, author, &payload.comment(*element));
                    }
                }
            }
        }
        Ok(digest)
    }

    fn write(&mut self, write: &Operation, keep_before: bool) {
        if let (Some(comment), Action::PostComment) = (write.comment, write.action) {
            self.authors.insert(comment, write.socialite);
        }
        for change in write.changes().iter() {
            if let Change::Element { kind, owner, element, present } = change {
                self.lists.entry((kind, owner)).or_default().set(element, present, keep_before);
            }
        }
    }

    fn read(&self, read: &Operation, stale: bool, answer: &mut Answer) {
        let values = &mut answer.values;
        for observation in read.observations().iter() {
            match observation {
                Observation::Count { kind, owner } => {
                    let list = match kind {
                        CountKind::FriendCount => ListKind::Friends,
                        CountKind::PendingCount => ListKind::Pending,
                    };
                    values.push(self.list(list, owner, stale).len() as i64);
                }
                Observation::ResourceCount { owner } => values.push(self.walls.get(&owner).map_or(0, Vec::len) as i64),
                Observation::List { kind, owner } => {
                    values.extend(self.list(kind, owner, stale).iter().map(|e| *e as i64));
                }
                Observation::TopK { owner } => {
                    let wall = self.walls.get(&owner).map_or(&[][..], Vec::as_slice);
                    values.extend(wall.iter().rev().take(self.top_k).map(|r| *r as i64));
                }
            }
        }
    }
}
