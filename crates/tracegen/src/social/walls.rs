//! Draws the wall that each resource of a fragment is on. The data set stores the result; other
//! code repeats the draw.

use schemas::spec::SpecOf;
use schemas::workload::social::SocialWorkload;

use crate::core::chance::Stream;
use crate::social::initial::Initial;

/// A resource of the data set.
pub(crate) struct Posted {
    /// Its id.
    pub(crate) resource: u64,
    /// The id of the owner.
    pub(crate) owner: u64,
    /// The position of the member whose wall it is on.
    pub(crate) wall: u32,
}

/// The resources of a fragment by rising id; `positions` are those of its
/// members in the order of their ids.
pub(crate) fn posted<'a>(
    spec: &SpecOf<SocialWorkload>,
    initial: &'a Initial,
    positions: &'a [u32],
    fragment: u32,
) -> impl Iterator<Item = Posted> + use<'a> {
    let mut chance = Stream::new(spec.common.seed, "walls", fragment);
    let each = spec.own.data.resources_per_member;
    let owned = positions.iter().flat_map(move |position| {
        let owner = initial.member(*position);
        (owner * each..(owner + 1) * each).map(move |resource| (resource, owner))
    });
    owned.map(move |(resource, owner)| {
        let wall = chance.below(initial.len() as u64) as u32;
        Posted { resource, owner, wall }
    })
}

/// How many resources are on the wall of the member at each position.
pub(crate) fn counts(spec: &SpecOf<SocialWorkload>, initial: &Initial, positions: &[u32], fragment: u32) -> Vec<u64> {
    let mut counts = vec![0; initial.len()];
    for Posted { wall, .. } in posted(spec, initial, positions, fragment) {
        counts[wall as usize] += 1;
    }
    counts
}

/// The resources that View Top-K Resources shows on each wall.
pub(crate) struct Walls {
    /// Where in `highest` the resources of each position begin, and where the last ones end.
    starts: Vec<usize>,
    highest: Vec<u64>,
}

impl Walls {
    /// The walls of a fragment before the first session; no action changes them.
    pub(crate) fn new(spec: &SpecOf<SocialWorkload>, initial: &Initial, fragment: u32) -> Walls {
        let positions = initial.positions_by_member();
        let top_k = spec.own.data.top_k as u64;
        // Ids rise, so the last K resources that come to a wall are its highest.
        let mut to_come = counts(spec, initial, &positions, fragment);
        let mut starts = vec![0];
        starts.extend(to_come.iter().scan(0, |end, count| {
            *end += (*count).min(top_k) as usize;
            Some(*end)
        }));
        let mut highest = vec![0; starts[initial.len()]];
        for Posted { resource, wall, .. } in posted(spec, initial, &positions, fragment) {
            let left = &mut to_come[wall as usize];
            if *left <= top_k {
                highest[starts[wall as usize + 1] - *left as usize] = resource;
            }
            *left -= 1;
        }
        Walls { starts, highest }
    }

    /// The K highest resources on the wall of the member at a position, or all if there are fewer;
    /// by rising id.
    pub(crate) fn highest(&self, position: u32) -> &[u64] {
        &self.highest[self.starts[position as usize]..self.starts[position as usize + 1]]
    }
}
