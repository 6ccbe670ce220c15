//! The load that an open loop asks for at a time: f(t), in operations a second.

use schemas::arrivals::Profile;
use schemas::manifest::Manifest;
use schemas::pace::{Due, OpenLoop};

/// The load of an open loop over the time of an experiment.
pub enum Wanted {
    /// The same at all times.
    Even(f64),
    /// The course of the specification from this load time on, so many times as fast.
    Course {
        /// Sessions a second over load time.
        profile: Box<Profile>,
        /// The load time at which the measured part begins, in seconds.
        from_s: f64,
        /// How many times as fast.
        factor: f64,
        /// Operations of a session, on average.
        operations: f64,
    },
}

impl Wanted {
    /// The load that an experiment with this open loop asks for.
    pub fn new(open_loop: &OpenLoop, manifest: &Manifest) -> Option<Wanted> {
        let operations = manifest.operations() as f64 / manifest.sessions().max(1) as f64;
        match open_loop.due {
            Due::Even { per_s } => Some(Wanted::Even(per_s * operations)),
            Due::Trace { from_us, factor, .. } => Some(Wanted::Course {
                profile: Box::new(manifest.spec.arrivals.as_ref()?.profile()),
                from_s: from_us as f64 / 1e6,
                factor,
                operations,
            }),
        }
    }

    /// Operations a second that are due at this time of the measured part.
    pub fn at(&self, elapsed_s: f64) -> Option<f64> {
        let per_s = match self {
            Wanted::Even(per_s) => *per_s,
            Wanted::Course { profile, from_s, factor, operations } => {
                profile.rate_at(from_s + elapsed_s * factor) * factor * operations
            }
        };
        Some(per_s).filter(|per_s| per_s.is_finite())
    }
}
