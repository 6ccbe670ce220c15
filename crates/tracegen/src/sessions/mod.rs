//! Makes the sessions of one fragment, one after the other.

mod counts;
mod delays;
mod kinds;
mod socialites;
#[cfg(test)]
mod tests;
mod world;

use schemas::spec::Spec;
use schemas::trace::TraceRow;

use crate::chance::Stream;
use crate::population::Population;
use crate::statistics::TopFifth;

pub(crate) use counts::{Counts, by_kind};
use delays::Delays;
use kinds::{Excluded, Kinds};
use world::World;

/// The sessions of a fragment.
pub(crate) struct Sessions<'a> {
    kinds: Kinds,
    world: World<'a>,
    think_time: Delays,
    inter_arrival_time: Delays,
    next: u64,
    /// No-operations since the last session.
    noops: u32,
    counts: Counts,
}

/// What came of a drawn socialite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drawn {
    /// A session of hers.
    Session,
    /// She could do nothing of the mix; there were so many no-operations in a row.
    Nothing {
        /// Hers and those of others who were drawn in vain before her.
        noops: u32,
    },
}

impl<'a> Sessions<'a> {
    /// The sessions of a fragment from the first one on.
    pub(crate) fn new(spec: &Spec, population: &'a Population, top: &TopFifth, fragment: u32) -> Sessions<'a> {
        let kinds = Kinds::new(spec);
        let stream = |purpose| Stream::new(spec.seed, purpose, fragment);
        Sessions {
            counts: Counts::new(kinds.len()),
            kinds,
            world: World::new(spec, population, top, fragment),
            think_time: Delays::new(spec.think_time, stream("think time")),
            inter_arrival_time: Delays::new(spec.inter_arrival_time, stream("inter-arrival time")),
            next: 0,
            noops: 0,
        }
    }

    /// What the sessions so far add up to.
    pub(crate) fn counts(&self) -> Counts {
        let (socialites, targets) = (self.world.socialites(), self.world.targets());
        Counts { socialites, targets, ..self.counts.clone() }
    }

    /// Draws a socialite, and makes the next session if she can do anything of the
    /// mix: then its operations, at least one, are handed out.
    ///
    /// The socialite stays when a kind is drawn anew, so that who acts keeps its
    /// distribution. Another is to be drawn when she could do nothing, and the
    /// no-operations are carried over to the session that comes of it.
    pub(crate) fn try_next(&mut self, mut each: impl FnMut(&TraceRow)) -> Drawn {
        let session = self.next;
        let socialite = self.world.draw_socialite();
        let mut excluded = Excluded::default();
        while let Some(place) = self.kinds.draw(excluded, &mut self.world.chance) {
            let kind = self.kinds.get(place);
            let mut cast = self.world.cast(socialite, session);
            let mut done = 0;
            for step in &kind.steps {
                let Some((operation, after)) = self.world.perform(*step, kind.own_profile_share, &mut cast) else {
                    break;
                };
                self.counts.operations[operation.action as usize] += 1;
                let (noops, think_us) = match done {
                    0 => (self.noops, self.inter_arrival_time.draw_us()),
                    _ => (0, self.think_time.draw_us()),
                };
                let kind = place as u8;
                each(&TraceRow { session, step: done as u16, kind, noops, think_us, due_us: None, after, operation });
                done += 1;
            }
            if done > 0 {
                self.counts.sessions[place] += 1;
                self.counts.ended_early[place] += (done < kind.steps.len()) as u64;
                self.world.act(socialite);
                self.next += 1;
                self.noops = 0;
                return Drawn::Session;
            }
            self.counts.noops[place] += 1;
            self.noops += 1;
            // What she cannot do now would only be drawn in vain again.
            excluded.add(place);
        }
        Drawn::Nothing { noops: self.noops }
    }
}
