//! The facts of a table of records in the digest of a state.

use crate::digest::StateDigest;

impl StateDigest {
    /// A record with the values of its fields, in order.
    pub fn record<'a>(&mut self, key: &'a str, values: impl IntoIterator<Item = &'a [u8]>) {
        let parts: Vec<&[u8]> = std::iter::once(key.as_bytes()).chain(values).collect();
        self.add(5, &[], &parts);
    }
}
