//! The digest of the state that sessions leave in a store.

use std::path::Path;

use schemas::digest::StateDigest;
use schemas::manifest::Manifest;
use schemas::run::FragmentPosition;
use schemas::social::{Action, Change, ListKind, Social};
use schemas::spec::SpecOf;
use schemas::workload::social::dataset::Table;
use schemas::workload::social::{Payload, SocialWorkload};

use crate::core::digest::DigestError;
use crate::core::maps::IdMap;

/// How many operations are read at a time.
const CHUNK_ROWS: usize = 16_384;

/// The digest of the state that the sessions before a position leave of a fragment.
pub(crate) fn digest(
    spec: &SpecOf<SocialWorkload>,
    manifest: &Manifest,
    folder: &Path,
    position: &FragmentPosition,
) -> Result<StateDigest, DigestError> {
    Changed::by(manifest, folder, position)?.with_dataset(spec, folder, position.fragment)
}

/// What a comment holds besides its id.
#[derive(Clone, Copy)]
struct CommentFact {
    resource: u64,
    author: u64,
}

/// The facts that operations changed, and for each whether it exists in the end.
#[derive(Default)]
struct Changed {
    friendships: IdMap<(u64, u64), bool>,
    /// Keyed by inviter and invitee.
    invitations: IdMap<(u64, u64), bool>,
    comments: IdMap<u64, Option<CommentFact>>,
}

impl Changed {
    /// The changes by the sessions of a fragment that have run.
    fn by(manifest: &Manifest, folder: &Path, position: &FragmentPosition) -> Result<Changed, DigestError> {
        let mut changed = Changed::default();
        let mut reader = manifest.reader::<Social>(folder, position.fragment, CHUNK_ROWS)?;
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

    /// Adds the facts that no operation changed, from the data set's tables.
    fn with_dataset(
        self,
        spec: &SpecOf<SocialWorkload>,
        folder: &Path,
        fragment: u32,
    ) -> Result<StateDigest, DigestError> {
        let payload = Payload::new(spec.common.seed, spec.own.data.clone());
        let mut digest = StateDigest::default();
        Table::Members.for_each(folder, fragment, |[member]| payload.digest_member(&mut digest, member))?;
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
            digest.resource(resource, owner, wall, &payload.resource(resource));
        })?;
        Table::Comments.for_each(folder, fragment, |[comment, resource, author]| {
            if !self.comments.contains_key(&comment) {
                digest.comment(comment, resource, author, &payload.comment(comment));
            }
        })?;

        // The digest adds facts up, so the order of a map does not matter here.
        for ((member, friend), _) in self.friendships.iter().filter(|(_, there)| **there) {
            digest.friendship(*member, *friend);
        }
        for ((inviter, invitee), _) in self.invitations.iter().filter(|(_, there)| **there) {
            digest.invitation(*inviter, *invitee);
        }
        for (comment, fact) in &self.comments {
            if let Some(CommentFact { resource, author }) = fact {
                digest.comment(*comment, *resource, *author, &payload.comment(*comment));
            }
        }
        Ok(digest)
    }
}
