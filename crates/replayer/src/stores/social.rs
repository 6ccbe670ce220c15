//! The data set of the `social` family, for the stores that serve it.

use schemas::workload::social::dataset::Table;
use schemas::workload::social::{Data, Payload, SocialWorkload};

use crate::source::Source;

impl Source {
    /// The parameters of the data set.
    pub fn data(&self) -> Data {
        self.workload::<SocialWorkload>().data
    }

    /// Rows of a table over all fragments.
    pub fn rows(&self, table: Table) -> u64 {
        self.rows_of(table.name())
    }

    /// The payload function of this data set.
    pub fn payload(&self) -> Payload {
        Payload::new(self.manifest.spec.seed, self.data())
    }
}
