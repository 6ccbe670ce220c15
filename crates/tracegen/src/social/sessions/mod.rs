//! Makes the sessions of one fragment, one after the other.

mod kinds;
mod socialites;
#[cfg(test)]
mod tests;
mod world;

use schemas::social::{Operation, Social, TraceRow};
use schemas::spec::SpecOf;
use schemas::workload::social::SocialWorkload;

use super::population::Population;
use super::statistics::Drawing;
use super::top_fifth::TopFifth;
use crate::core::counts::Counts;
use crate::core::generator::{self, Drawn};
use crate::core::mix::{Excluded, Mix};
use crate::core::recorder::Recorder;
use kinds::Kind;
use world::World;

/// The sessions of a fragment.
pub(crate) struct Sessions<'a> {
    kinds: Vec<Kind>,
    mix: Mix,
    world: World<'a>,
    recorder: Recorder,
}

impl<'a> Sessions<'a> {
    /// The sessions of a fragment, from the first one on.
    pub(crate) fn new(
        spec: &SpecOf<SocialWorkload>,
        population: &'a Population,
        top: &TopFifth,
        fragment: u32,
    ) -> Sessions<'a> {
        Sessions {
            kinds: kinds::kinds(spec),
            mix: kinds::mix(spec),
            world: World::new(spec, population, top, fragment),
            recorder: Recorder::new::<Social>(&spec.common, fragment),
        }
    }

    /// How members were drawn in the sessions so far.
    pub(crate) fn drawing(&self) -> Drawing {
        Drawing { socialites: self.world.socialites(), targets: self.world.targets() }
    }
}

impl generator::Sessions<Operation> for Sessions<'_> {
    fn counts(&self) -> &Counts {
        self.recorder.counts()
    }

    /// When a kind cannot be done, another kind is drawn for the same socialite, so that the draws
    /// of socialites keep their distribution. When no kind can be done, the caller draws another
    /// socialite, and the next session carries the no-operations so far.
    fn try_next(&mut self, mut each: impl FnMut(&TraceRow)) -> Drawn {
        let socialite = self.world.draw_socialite();
        let mut excluded = Excluded::default();
        while let Some(place) = self.mix.draw(excluded, &mut self.world.chance) {
            let kind = &self.kinds[place];
            let mut cast = self.world.cast(socialite, self.recorder.session());
            for step in &kind.steps {
                let Some((operation, after)) = self.world.perform(*step, kind.own_profile_share, &mut cast) else {
                    break;
                };
                each(&self.recorder.row(place, operation, operation.socialite, after));
            }
            if self.recorder.end(place, kind.steps.len()) {
                self.world.act(socialite);
                return Drawn::Session;
            }
            // This kind cannot be done now, so drawing it again for this session would fail again.
            excluded.add(place);
        }
        self.recorder.nothing()
    }
}
