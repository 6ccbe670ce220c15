//! The generator of the `social` family: a social network, and the sessions of its members.

mod activity;
mod assigned;
mod comments;
mod dataset;
mod digest;
mod graph;
mod initial;
mod need;
mod population;
mod relation;
mod ring;
mod sessions;
mod show;
mod statistics;
mod top_fifth;
mod walls;

use std::path::Path;

use schemas::digest::StateDigest;
use schemas::manifest::{FileEntry, Manifest};
use schemas::run::FragmentPosition;
use schemas::spec::{SpecError, SpecOf};
use schemas::workload::social::{SocialStatistics, SocialWorkload};

use crate::core::digest::DigestError;
use crate::core::error::GenerateError;
use crate::core::generator::Generator;
use crate::core::room::Need;
use crate::core::show::Facts;
use population::Population;
use sessions::Sessions;
use statistics::{Degrees, Tallies};
use top_fifth::TopFifth;

/// The members of a specification.
pub(crate) struct Social {
    spec: SpecOf<SocialWorkload>,
    population: Population,
    /// The most popular fifth of the members.
    top: TopFifth,
}

impl Generator for Social {
    type Workload = SocialWorkload;
    type Tally = Tallies;
    type Sessions<'a> = Sessions<'a>;

    const NOTHING_TO_DO: [&'static str; 2] = [
        "no member who may act has an invitation, friendship or comment left that the mix needs",
        "add a share for an action that creates them (invite_friend, accept_friend_request, post_comment) or for a read",
    ];

    fn need(spec: &SpecOf<SocialWorkload>) -> Need {
        need::need(spec)
    }

    fn new(spec: SpecOf<SocialWorkload>) -> Result<Social, GenerateError> {
        let population = Population::new(&spec)?;
        let top = TopFifth::new(&population);
        Ok(Social { spec, population, top })
    }

    fn weights(&self) -> &[f64] {
        &self.population.weights
    }

    fn actors(&self, fragment: u32) -> u64 {
        self.population.initial[fragment as usize].len() as u64
    }

    fn write_dataset(&self, fragment: u32, folder: &Path) -> Result<Vec<FileEntry>, GenerateError> {
        dataset::write(&self.spec, &self.population.initial[fragment as usize], fragment, folder)
    }

    fn sessions(&self, fragment: u32) -> Sessions<'_> {
        Sessions::new(&self.spec, &self.population, &self.top, fragment)
    }

    fn tally(&self, fragment: u32, sessions: &Sessions<'_>) -> Tallies {
        let degrees = Degrees::of(&self.spec, &self.population.initial[fragment as usize], fragment);
        Tallies { degrees, drawing: sessions.drawing() }
    }

    fn statistics(&self, tallies: Vec<Tallies>) -> (u64, SocialStatistics) {
        let mut all = Tallies::default();
        tallies.iter().for_each(|tally| all.merge(tally));
        statistics::statistics(&self.spec, &self.population, &self.top, &all)
    }

    fn digest(
        spec: &SpecOf<SocialWorkload>,
        manifest: &Manifest,
        folder: &Path,
        position: &FragmentPosition,
    ) -> Result<StateDigest, DigestError> {
        digest::digest(spec, manifest, folder, position)
    }

    fn facts(manifest: &Manifest) -> Result<Facts, SpecError> {
        show::facts(manifest)
    }

    fn remark(manifest: &Manifest) -> Option<String> {
        show::remark(manifest)
    }
}
