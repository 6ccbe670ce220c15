//! The comments on a fragment's resources as the sessions so far leave them.
//!
//! Only the resources whose comments changed are stored. A comment is written
//! at most twice: posted, then deleted.

use crate::core::chance::Stream;
use crate::core::maps::IdMap;
use crate::social::graph::Horizon;

/// A comment that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Comment {
    /// Its id.
    pub(crate) id: u64,
    /// The session that posted it; none for a comment of the data set.
    pub(crate) posted: Option<u64>,
}

/// A comment, and the resource it is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResourceComment {
    /// The id of the resource.
    pub(crate) resource: u64,
    /// The comment.
    pub(crate) comment: Comment,
}

/// The comments of a fragment.
pub(crate) struct Comments {
    per_resource: u64,
    changed: IdMap<u64, Vec<Comment>>,
    next_id: u64,
    id_step: u64,
}

impl Comments {
    /// The comments before the first session. New ones get the ids `next_id`,
    /// `next_id + id_step` and so on.
    pub(crate) fn new(per_resource: u64, next_id: u64, id_step: u64) -> Comments {
        Comments { per_resource, changed: IdMap::default(), next_id, id_step }
    }

    /// How many comments a resource has.
    fn count(&self, resource: u64) -> u64 {
        self.changed.get(&resource).map_or(self.per_resource, |list| list.len() as u64)
    }

    /// The comment number `index` on a resource.
    fn comment(&self, resource: u64, index: u64) -> ResourceComment {
        let comment = match self.changed.get(&resource) {
            Some(list) => list[index as usize],
            None => Comment { id: resource * self.per_resource + index, posted: None },
        };
        ResourceComment { resource, comment }
    }

    fn list(&mut self, resource: u64) -> &mut Vec<Comment> {
        let first = resource * self.per_resource;
        let ids = first..first + self.per_resource;
        self.changed.entry(resource).or_insert_with(|| ids.map(|id| Comment { id, posted: None }).collect())
    }

    /// Adds a new comment and returns its id.
    pub(crate) fn post(&mut self, resource: u64, session: u64) -> u64 {
        let id = self.next_id;
        self.next_id += self.id_step;
        self.list(resource).push(Comment { id, posted: Some(session) });
        id
    }

    /// Removes a comment.
    pub(crate) fn delete(&mut self, ResourceComment { resource, comment }: ResourceComment) {
        let list = self.list(resource);
        if let Some(at) = list.iter().position(|c| c.id == comment.id) {
            list.swap_remove(at);
        }
    }

    /// A comment on a random one of those `resources` that have any. It prefers a comment posted
    /// long ago; if there is none, it takes the oldest.
    pub(crate) fn pick(
        &self,
        resources: std::ops::Range<u64>,
        horizon: Horizon,
        chance: &mut Stream,
    ) -> Option<ResourceComment> {
        if resources.is_empty() {
            return None;
        }
        let mut resource = resources.start + chance.below(resources.end - resources.start);
        if self.count(resource) == 0 {
            let commented: Vec<u64> = resources.clone().filter(|r| self.count(*r) > 0).collect();
            if commented.is_empty() {
                return None;
            }
            resource = commented[chance.below(commented.len() as u64) as usize];
        }
        let is_settled = |found: &ResourceComment| horizon.is_settled(found.comment.posted);
        let found = self.comment(resource, chance.below(self.count(resource)));
        if is_settled(&found) {
            return Some(found);
        }
        let all = |r: u64| (0..self.count(r)).map(move |index| self.comment(r, index));
        let mut settled: Vec<ResourceComment> = all(resource).filter(is_settled).collect();
        if settled.is_empty() {
            settled = resources.clone().flat_map(all).filter(is_settled).collect();
        }
        if settled.is_empty() {
            resources.flat_map(all).min_by_key(|found| found.comment.posted)
        } else {
            Some(settled[chance.below(settled.len() as u64) as usize])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_comments_are_preferred_and_recent_ones_taken_last() {
        let mut chance = Stream::new(1, "test", 0);
        let mut comments = Comments::new(1, 100, 2);
        let at = |session| Horizon { session, window: 10 };
        assert_eq!(comments.post(3, 0), 100);
        assert_eq!(comments.post(3, 5), 102);
        // The comment of the data set comes first, then the older of two recent ones.
        for expect in [3, 100, 102] {
            let found = comments.pick(3..4, at(6), &mut chance).unwrap();
            assert_eq!(found.comment.id, expect);
            comments.delete(found);
        }
        assert_eq!(comments.pick(3..4, at(6), &mut chance), None);
        // Another resource still has its comment of the data set.
        assert_eq!(comments.pick(3..5, at(6), &mut chance).unwrap().comment.id, 4);
    }
}
