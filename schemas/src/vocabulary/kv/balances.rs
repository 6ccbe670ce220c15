//! The balances that a session has read, and how its writes follow from them.
//!
//! In a trace, [`Operation::amount`] says what a write adds to the balance that its session has read of
//! the record. A store gets the new balance in its place. So an adapter only reads and writes values,
//! and no random choice depends on what was read.

use super::{Found, Operation, Verb};

/// The [amount](Operation::amount) of a delete in a trace: the whole balance that its session has read.
pub const WHOLE_BALANCE: i64 = i64::MIN;

/// Why a write is not sent.
const NOT_READ: &str = "its session has read no balance of the record";

/// The balances that a session has read, by record. There are few, so a search from one to the next is
/// fast.
#[derive(Debug, Clone, Default)]
pub struct Balances(Vec<(u64, i64)>);

impl Balances {
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    /// Keeps what a read saw. Reads of data sets without balances, and scans, leave nothing.
    #[inline]
    pub(super) fn remember(&mut self, operation: &Operation, observed: &[i64]) {
        let may_be_known = !self.0.is_empty() || Found::begins_with_balance(observed);
        if operation.verb == Verb::Read && may_be_known {
            self.replace(operation.key, observed);
        }
    }

    #[cold]
    fn replace(&mut self, record: u64, observed: &[i64]) {
        self.0.retain(|(known, _)| *known != record);
        let found = Found::read(observed).ok().flatten();
        self.0.extend(found.and_then(|found| found.balance()).map(|balance| (record, balance)));
    }

    /// The balance that the session has read of a record.
    pub fn of(&self, record: u64) -> Option<i64> {
        self.0.iter().find(|(known, _)| *known == record).map(|(_, balance)| *balance)
    }

    /// Replaces the amount of a write by the new balance. An update or a delete without an amount
    /// changes no balance: the data set has none.
    #[inline]
    pub(super) fn resolve(&self, operation: &mut Operation) -> Result<(), &'static str> {
        match operation.verb {
            Verb::Update | Verb::Delete if operation.amount != 0 => self.resolve_one(operation),
            _ => Ok(()),
        }
    }

    #[inline(never)]
    fn resolve_one(&self, operation: &mut Operation) -> Result<(), &'static str> {
        let balance = self.of(operation.key).ok_or(NOT_READ)?;
        operation.amount = new_balance(balance, operation.amount);
        Ok(())
    }
}

/// The balance that a write leaves, which has found this one.
pub fn new_balance(found: i64, amount: i64) -> i64 {
    if amount == WHOLE_BALANCE { 0 } else { found.saturating_add(amount) }
}

#[cfg(test)]
mod tests {
    use super::super::{Seen, WriteId};
    use super::*;

    fn operation(verb: Verb, key: u64, amount: i64) -> Operation {
        Operation { verb, key, fields: 1, length: 0, id: WriteId::new(0, 1, 2), amount }
    }

    fn seen(balance: i64) -> Vec<i64> {
        let mut observed = Vec::new();
        Found::push(&mut observed, [(0, Seen { number: 7, balance: Some(balance) })].into_iter());
        observed
    }

    #[test]
    fn a_write_gets_the_balance_that_its_session_read() {
        let mut balances = Balances::default();
        let resolved = |balances: &Balances, verb, key, amount| {
            let mut operation = operation(verb, key, amount);
            balances.resolve(&mut operation).map(|()| operation.amount)
        };
        assert_eq!(resolved(&balances, Verb::Update, 4, -1), Err(NOT_READ));
        balances.remember(&operation(Verb::Read, 4, 0), &seen(100));
        balances.remember(&operation(Verb::Read, 5, 0), &seen(-3));
        assert_eq!(resolved(&balances, Verb::Update, 4, -1), Ok(99));
        assert_eq!(resolved(&balances, Verb::Update, 5, 1), Ok(-2));
        assert_eq!(resolved(&balances, Verb::Delete, 4, WHOLE_BALANCE), Ok(0));
        assert_eq!(resolved(&balances, Verb::Delete, 6, WHOLE_BALANCE), Err(NOT_READ));
        // The balance of a new record is that of the trace, and `kv` has no amounts.
        assert_eq!(resolved(&balances, Verb::Insert, 9, 12), Ok(12));
        assert_eq!(resolved(&balances, Verb::Update, 9, 0), Ok(0));
        assert_eq!(resolved(&balances, Verb::Delete, 9, 0), Ok(0));
        // A later read replaces an earlier one; one that finds no record leaves nothing.
        balances.remember(&operation(Verb::Read, 4, 0), &seen(7));
        balances.remember(&operation(Verb::Read, 5, 0), &[]);
        assert_eq!(resolved(&balances, Verb::Update, 4, -1), Ok(6));
        assert_eq!(resolved(&balances, Verb::Update, 5, 1), Err(NOT_READ));
        balances.forget();
        assert_eq!(resolved(&balances, Verb::Update, 4, -1), Err(NOT_READ));
    }
}
