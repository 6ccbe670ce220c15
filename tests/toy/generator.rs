//! How sessions of the family are made.

use std::path::Path;

use schemas::digest::StateDigest;
use schemas::manifest::{FileEntry, Manifest};
use schemas::run::FragmentPosition;
use schemas::spec::{SpecError, SpecOf};
use schemas::trace::TraceRow;
use tracegen::core::chance::Stream;
use tracegen::core::counts::Counts;
use tracegen::core::generator::{Drawn, Generator};
use tracegen::core::mix::{Excluded, Mix};
use tracegen::core::recorder::Recorder;
use tracegen::core::room::Need;
use tracegen::core::show::Facts;
use tracegen::{DigestError, GenerateError};

use crate::workload::{self, Counting, Operation, Statistics};

/// Counter n is in fragment n modulo their number.
pub struct Counters {
    spec: SpecOf<workload::Counters>,
    weights: Vec<f64>,
}

impl Generator for Counters {
    type Workload = workload::Counters;
    type Tally = ();
    type Sessions<'a> = Sessions<'a>;

    const NOTHING_TO_DO: [&'static str; 2] = ["never", ""];

    fn need(spec: &SpecOf<workload::Counters>) -> Need {
        Need { disk_bytes: spec.common.sessions as f64, memory_bytes: 0.0, what: "counters".into() }
    }

    fn new(spec: SpecOf<workload::Counters>) -> Result<Counters, GenerateError> {
        let weights = vec![1.0 / spec.common.fragments as f64; spec.common.fragments as usize];
        Ok(Counters { spec, weights })
    }

    fn weights(&self) -> &[f64] {
        &self.weights
    }

    fn actors(&self, fragment: u32) -> u64 {
        let (all, fragments) = (self.spec.own.data.counters, self.spec.common.fragments as u64);
        (all + fragments - 1 - fragment as u64) / fragments
    }

    fn write_dataset(&self, _fragment: u32, _folder: &Path) -> Result<Vec<FileEntry>, GenerateError> {
        Ok(Vec::new())
    }

    fn sessions(&self, fragment: u32) -> Sessions<'_> {
        let shares = self.spec.common.kinds().into_iter().map(|(_, share)| share);
        Sessions {
            of: self,
            fragment,
            mix: Mix::new(shares.enumerate().collect()),
            chance: Stream::new(self.spec.common.seed, "counters", fragment),
            recorder: Recorder::new::<Counting>(&self.spec.common, fragment),
        }
    }

    fn tally(&self, _fragment: u32, _sessions: &Sessions<'_>) {}

    fn statistics(&self, _tallies: Vec<()>) -> (u64, Statistics) {
        (self.spec.own.data.counters, Statistics {})
    }

    fn digest(
        _spec: &SpecOf<workload::Counters>,
        _manifest: &Manifest,
        _folder: &Path,
        _position: &FragmentPosition,
    ) -> Result<StateDigest, DigestError> {
        Err(DigestError::Undetermined { what: "counters have no digest" })
    }

    fn facts(_manifest: &Manifest) -> Result<Facts, SpecError> {
        Ok(Facts::default())
    }
}

/// The sessions of a fragment: one operation each, on behalf of the actor with the counter's number.
pub struct Sessions<'a> {
    of: &'a Counters,
    fragment: u32,
    mix: Mix,
    chance: Stream,
    recorder: Recorder,
}

impl tracegen::core::generator::Sessions<Operation> for Sessions<'_> {
    fn try_next(&mut self, mut each: impl FnMut(&TraceRow<Operation>)) -> Drawn {
        let Some(place) = self.mix.draw(Excluded::default(), &mut self.chance) else { return self.recorder.nothing() };
        let (spec, fragment) = (&self.of.spec, self.fragment as u64);
        let raises = spec.common.kinds()[place].0 == "raise";
        let counter = self.chance.below(self.of.actors(self.fragment)) * spec.common.fragments as u64 + fragment;
        each(&self.recorder.row(place, Operation { raises, counter }, counter, None));
        self.recorder.end(place, 1);
        Drawn::Session
    }

    fn counts(&self) -> &Counts {
        self.recorder.counts()
    }
}
