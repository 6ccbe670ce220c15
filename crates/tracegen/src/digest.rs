//! The digest of the state that a trace set must leave in a store.

use std::path::{Path, PathBuf};

use schemas::dataset::Table;
use schemas::digest::StateDigest;
use schemas::manifest::{Manifest, TraceSetError};
use schemas::payload::{self, PayloadKind};
use schemas::run::FragmentPosition;
use schemas::share::sessions_by_fragment;
use schemas::social::{Action, Change, ListKind};
use schemas::spec::Spec;
use schemas::trace::{OperationsReader, TableError};

use crate::maps::IdMap;

/// Operations that are read at once.
const CHUNK_ROWS: usize = 16_384;

/// A digest that could not be computed.
#[derive(Debug, thiserror::Error)]
pub enum DigestError {
    /// The trace set cannot be used.
    #[error(transparent)]
    TraceSet(#[from] TraceSetError),
    /// One of its tables cannot be read.
    #[error(transparent)]
    Table(#[from] TableError),
    /// There are not as many sessions.
    #[error("{}: has {has} sessions, fewer than the {asked} asked for; ask for fewer, or generate a longer trace", folder.display())]
    Short {
        /// The trace set.
        folder: PathBuf,
        /// Its sessions.
        has: u64,
        /// The sessions asked for.
        asked: u64,
    },
}

/// Which sessions of a trace set have run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ran<'a> {
    /// All of them.
    All,
    /// The first so many in the global order of [`schemas::share`].
    First(u64),
    /// Those that an experiment reports, sessions that were given back left out.
    Positions(&'a [FragmentPosition]),
}

impl Ran<'_> {
    /// The same for each fragment.
    fn positions(self, manifest: &Manifest) -> Vec<FragmentPosition> {
        let fragments = manifest.fragments.iter();
        match self {
            Ran::All => fragments.map(|f| FragmentPosition::at(f.fragment, f.sessions)).collect(),
            Ran::First(sessions) => {
                let shares = sessions_by_fragment(&manifest.weights(), sessions);
                fragments.zip(shares).map(|(f, sessions)| FragmentPosition::at(f.fragment, sessions)).collect()
            }
            Ran::Positions(positions) => {
                let of = |fragment| positions.iter().find(|position| position.fragment == fragment).cloned();
                fragments.map(|f| of(f.fragment).unwrap_or_else(|| FragmentPosition::at(f.fragment, 0))).collect()
            }
        }
    }
}

/// The digest of the state that these sessions leave.
pub fn digest(folder: &Path, ran: Ran<'_>) -> Result<StateDigest, DigestError> {
    let manifest = Manifest::read(folder)?;
    manifest.verify(folder)?;
    let positions = ran.positions(&manifest);
    let asked = positions.iter().map(FragmentPosition::sessions_run).sum();
    if asked > manifest.sessions() {
        return Err(DigestError::Short { folder: folder.into(), has: manifest.sessions(), asked });
    }
    let mut whole = StateDigest::default();
    for (counts, position) in manifest.fragments.iter().zip(positions) {
        let files = manifest.operation_files(folder, counts.fragment);
        let changed = Changed::by(files, &position)?;
        whole.merge(changed.with_dataset(&manifest.spec, folder, counts.fragment)?);
    }
    Ok(whole)
}

/// What a comment is beside its id.
#[derive(Clone, Copy)]
struct CommentFact {
    resource: u64,
    author: u64,
}

/// The facts that operations touched, each with how it ended: there, or not.
#[derive(Default)]
struct Changed {
    friendships: IdMap<(u64, u64), bool>,
    /// By inviter and invitee.
    invitations: IdMap<(u64, u64), bool>,
    comments: IdMap<u64, Option<CommentFact>>,
}

impl Changed {
    /// By the sessions of a fragment that have run.
    fn by(files: Vec<PathBuf>, position: &FragmentPosition) -> Result<Changed, DigestError> {
        let mut changed = Changed::default();
        let mut reader = OperationsReader::new(files, CHUNK_ROWS);
        let mut rows = Vec::with_capacity(CHUNK_ROWS);
        while reader.next_rows(&mut rows)? {
            for row in &rows {
                if row.session >= position.next_session {
                    return Ok(changed);
                }
                if !position.has_run(row.session) {
                    continue;
                }
                for change in row.operation.changes().iter() {
                    changed.apply(change, row.operation.socialite, row.operation.action);
                }
            }
        }
        Ok(changed)
    }

    fn apply(&mut self, change: Change, socialite: u64, action: Action) {
        let Change::Element { kind, owner, element, present } = change else { return };
        match kind {
            ListKind::Friends => {
                self.friendships.insert((owner.min(element), owner.max(element)), present);
            }
            ListKind::Pending => {
                self.invitations.insert((element, owner), present);
            }
            ListKind::Comments => {
                debug_assert_eq!(present, action == Action::PostComment);
                let fact = present.then_some(CommentFact { resource: owner, author: socialite });
                self.comments.insert(element, fact);
            }
        }
    }

    /// Adds what was not touched, from the data set's tables.
    fn with_dataset(self, spec: &Spec, folder: &Path, fragment: u32) -> Result<StateDigest, DigestError> {
        let (data, seed) = (&spec.data, spec.seed);
        let mut digest = StateDigest::default();
        Table::Members.for_each(folder, fragment, |[member]| {
            let attributes = payload::text(seed, PayloadKind::Attributes, member, data.attribute_bytes as usize);
            let image = payload::bytes(seed, PayloadKind::Image, member, data.image_bytes as usize);
            let thumbnail = payload::bytes(seed, PayloadKind::Thumbnail, member, data.thumbnail_bytes as usize);
            digest.member(member, &attributes, &image, &thumbnail);
        })?;
        Table::Friendships.for_each(folder, fragment, |[member, friend]| {
            if !self.friendships.contains_key(&(member, friend)) {
                digest.friendship(member, friend);
            }
        })?;
        Table::Invitations.for_each(folder, fragment, |[inviter, invitee]| {
            if !self.invitations.contains_key(&(inviter, invitee)) {
                digest.invitation(inviter, invitee);
            }
        })?;
        Table::Resources.for_each(folder, fragment, |[resource, owner, wall]| {
            let text = payload::text(seed, PayloadKind::Resource, resource, data.resource_bytes as usize);
            digest.resource(resource, owner, wall, &text);
        })?;
        let comment_text = |id| payload::text(seed, PayloadKind::Comment, id, data.comment_bytes as usize);
        Table::Comments.for_each(folder, fragment, |[comment, resource, author]| {
            if !self.comments.contains_key(&comment) {
                digest.comment(comment, resource, author, &comment_text(comment));
            }
        })?;

        // Facts are added up, so the order of a map does not matter here.
        for ((member, friend), _) in self.friendships.iter().filter(|(_, there)| **there) {
            digest.friendship(*member, *friend);
        }
        for ((inviter, invitee), _) in self.invitations.iter().filter(|(_, there)| **there) {
            digest.invitation(*inviter, *invitee);
        }
        for (comment, fact) in &self.comments {
            if let Some(CommentFact { resource, author }) = fact {
                digest.comment(*comment, *resource, *author, &comment_text(*comment));
            }
        }
        Ok(digest)
    }
}
