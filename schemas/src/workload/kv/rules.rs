//! Which operations a trace set of the family may have, by its specification.

use std::ops::Range;

use super::keys::KeyRange;
use super::values::BALANCE_FIELD;
use super::{Data, Keys, KvStatistics, KvWorkload};
use crate::spec::SpecOf;
use crate::trace::{BadRow, Chunk, Rules};
use crate::vocabulary::kv::{Kv, Operation, Verb, WHOLE_BALANCE, WriteId};

/// The rules of a fragment.
pub(in crate::workload) struct KvRules {
    data: Data,
    keys: Keys,
    range: KeyRange,
    all_fields: u64,
    scan_length_max: u32,
    /// Whether each session is a transaction.
    transactions: bool,
    /// For each verb, by its code: whether a kind of session in the mix has it.
    in_mix: [bool; Verb::ALL.len()],
}

impl KvRules {
    /// `verbs` are those of a kind of session, by its name.
    pub(in crate::workload) fn new(
        spec: &SpecOf<KvWorkload>,
        statistics: &KvStatistics,
        fragment: u32,
        verbs: impl Fn(&str) -> &'static [Verb],
    ) -> Result<KvRules, String> {
        let (data, keys) = (&spec.own.data, Keys::new(&spec.own.data));
        let (found, fragments) = (statistics.first_records.len(), spec.common.fragments);
        if found != fragments as usize {
            return Err(format!("statistics.first_records has {found} records, and there are {fragments} fragments"));
        }
        let range = statistics.range(&keys, fragment);
        if range.is_empty() {
            return Err(format!(
                "statistics.first_records: fragment {} begins before fragment {fragment}",
                u64::from(fragment) + 1
            ));
        }
        let kinds = spec.common.kinds();
        let in_mix = Verb::ALL.map(|verb| kinds.iter().any(|(name, _)| verbs(name).contains(&verb)));
        let (scan_length_max, transactions) = (spec.own.access.scan_length_max, spec.own.transactions.is_some());
        let all_fields = data.all_fields();
        Ok(KvRules { data: data.clone(), keys, range, all_fields, scan_length_max, transactions, in_mix })
    }

    /// Refuses an operation that does not fit, by its column.
    #[inline]
    fn check_one(&self, operation: &Operation, step: u16, has_after: bool) -> Result<(), String> {
        // The ids of writes would not differ.
        if u32::from(step) >= WriteId::STEPS_MAX {
            return Err(format!("step {step} is more than {}", WriteId::STEPS_MAX - 1));
        }
        if operation.verb.control().is_some() {
            if operation.key != 0 {
                return Err(format!("key {} of {} must be 0", operation.key, operation.verb.name()));
            }
        } else if !self.in_mix[operation.verb as usize] {
            return Err(format!("operation {} is in no kind of session of the mix", operation.verb.name()));
        } else {
            self.check_key(operation, has_after)?;
        }
        self.check_fields(operation)?;
        self.check_length(operation)?;
        self.check_amount(operation)
    }

    /// Every operation reads or writes the balance, if records have one. Otherwise none has an amount.
    #[inline]
    fn check_amount(&self, Operation { verb, fields, amount, .. }: &Operation) -> Result<(), String> {
        let (verb, fields, amount) = (*verb, *fields, *amount);
        if self.data.total_cash.is_none() {
            return match amount {
                0 => Ok(()),
                _ => Err(format!("delta {amount} of {} must be 0: records have no balances", verb.name())),
            };
        }
        let (fits, wanted) = match verb {
            Verb::Insert => (amount >= 0, "the balance of the new record, 0 or more"),
            Verb::Update => (amount != 0 && amount != WHOLE_BALANCE, "what is added to the balance, not 0"),
            Verb::Delete => (amount == WHOLE_BALANCE, "-9223372036854775808, which stands for the whole balance"),
            _ => (amount == 0, "0"),
        };
        if !fits {
            return Err(format!("delta {amount} of {} must be {wanted}", verb.name()));
        }
        if fields != 0 && fields >> BALANCE_FIELD & 1 == 0 {
            return Err(format!("fields {fields} of {} lack the field with the balance (1)", verb.name()));
        }
        Ok(())
    }

    /// Refuses a transaction that the specification does not want, or an operation outside of one.
    #[inline]
    fn check_transaction(&self, verb: Verb, txn: Option<u16>) -> Result<(), String> {
        match (self.transactions, txn) {
            (true, Some(0)) => Ok(()),
            (false, None) if verb.control().is_none() => Ok(()),
            (false, _) => Err(format!(
                "operation {} is of a transaction (txn), and the specification has no [transactions]",
                verb.name()
            )),
            (true, None) => Err(format!(
                "operation {} is outside of a transaction (txn is empty), and the specification has [transactions]",
                verb.name()
            )),
            (true, Some(begin)) => Err(format!(
                "operation {} is of a transaction that began at step {begin}, and by the specification each session is \
                 one transaction",
                verb.name()
            )),
        }
    }

    #[inline]
    fn check_key(&self, Operation { verb, key, .. }: &Operation, has_after: bool) -> Result<(), String> {
        let Data { first_record: first, records, .. } = self.data;
        if *key < first {
            return Err(format!("key {key} is before the first record ({first})"));
        }
        let is_of_data_set = key - first < records;
        if is_of_data_set && *verb == Verb::Insert {
            return Err(format!("key {key} is of the data set, and an insert needs a new record"));
        }
        if !is_of_data_set && *verb != Verb::Insert && !has_after {
            return Err(format!(
                "key {key} is not of the data set (records {first} to {}), and no insert is waited for (after is empty)",
                first + (records - 1)
            ));
        }
        // A fragment alone has all keys, whose order need not be known then.
        if !self.range.is_all() && !self.range.contains(self.keys.place(self.keys.number(*key))) {
            return Err(format!("key {key} is of another fragment"));
        }
        Ok(())
    }

    #[inline]
    fn check_fields(&self, Operation { verb, fields, .. }: &Operation) -> Result<(), String> {
        let all = self.all_fields;
        let fits = match verb {
            Verb::Insert => *fields == all,
            Verb::Delete | Verb::Begin | Verb::Commit | Verb::Abort => *fields == 0,
            Verb::Read | Verb::Update | Verb::Scan => *fields != 0 && fields & !all == 0,
        };
        if fits {
            return Ok(());
        }
        let wanted = match verb {
            Verb::Insert => format!("{all}, all fields"),
            Verb::Delete | Verb::Begin | Verb::Commit | Verb::Abort => "0".to_string(),
            Verb::Read | Verb::Update | Verb::Scan => format!("bits of {all}, at least one"),
        };
        Err(format!("fields {fields} of {} must be {wanted} (data.fields is {})", verb.name(), self.data.fields))
    }

    #[inline]
    fn check_length(&self, Operation { verb, length, .. }: &Operation) -> Result<(), String> {
        match (verb, self.scan_length_max) {
            (Verb::Scan, most) if *length == 0 || *length > most => {
                Err(format!("length {length} of scan is not between 1 and {most} (access.scan_length_max)"))
            }
            (verb, _) if *verb != Verb::Scan && *length != 0 => {
                Err(format!("length {length} of {} must be 0; only scans have one", verb.name()))
            }
            _ => Ok(()),
        }
    }
}

impl Rules<Kv> for KvRules {
    fn check(&self, chunk: &Chunk<Kv>, rows: Range<usize>) -> Result<(), BadRow> {
        for row in rows {
            let operation = chunk.operation(row);
            let checked = self
                .check_transaction(operation.verb, chunk.txn(row))
                .and_then(|()| self.check_one(&operation, chunk.step(row), chunk.after(row).is_some()));
            checked.map_err(|message| BadRow { row, message })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::SessionKind;
    use super::*;
    use crate::trace::TraceRow;

    const MIX: &str = "read_modify_write = 1\ninsert = 1\nscan = 1\ndelete = 1";

    fn spec(mix: &str) -> SpecOf<KvWorkload> {
        let text = format!(
            "name = 't'\nfamily = 'kv'\nsessions = 9\nfragments = 2\n[data]\nrecords = 10\nfirst_record = 100\n\
             fields = 4\n[access]\nscan_length_max = 7\n[mix]\n{mix}\n"
        );
        SpecOf::parse(&text, "t.toml").unwrap()
    }

    fn verbs(name: &str) -> &'static [Verb] {
        SessionKind::from_name(name).map_or(&[][..], SessionKind::verbs)
    }

    /// Records 100 to 109 in two fragments of five, in the order of their keys.
    fn halves(spec: &SpecOf<KvWorkload>) -> KvStatistics {
        let keys = Keys::new(&spec.own.data);
        let mut records: Vec<u64> = (100..110).collect();
        records.sort_by_key(|record| keys.place(keys.number(*record)));
        KvStatistics { first_records: vec![records[0], records[5]], ..KvStatistics::default() }
    }

    /// A record of the first fragment from this one on, and one of the second.
    fn records_from(rules: &KvRules, first: u64) -> [u64; 2] {
        let is_in = |record: &u64| rules.range.contains(rules.keys.place(rules.keys.number(*record)));
        [(first..).find(is_in).unwrap(), (first..).find(|record| !is_in(record)).unwrap()]
    }

    #[test]
    fn operations_that_do_not_fit_the_specification_are_refused_by_column() {
        let spec = spec(MIX);
        let rules = KvRules::new(&spec, &halves(&spec), 0, verbs).unwrap();
        let ([old, foreign], [new, new_foreign]) = (records_from(&rules, 100), records_from(&rules, 110));
        let check = |verb, key, fields, length, after: Option<u64>, step, expect: &[&str]| {
            let operation = Operation { verb, key, fields, length, id: WriteId::new(0, 0, 0), amount: 0 };
            let row = TraceRow { after, ..TraceRow::plain(3, step, operation, 0) };
            let chunk: Chunk<Kv> = [row].into_iter().collect();
            match rules.check(&chunk, 0..1) {
                Ok(()) => assert!(expect.is_empty(), "{row:?} is accepted"),
                Err(BadRow { row: at, message }) => {
                    assert_eq!(at, 0);
                    let is_named = !expect.is_empty() && expect.iter().all(|word| message.contains(word));
                    assert!(is_named, "{row:?}: {message}");
                }
            }
        };
        use Verb::{Delete, Insert, Read, Scan, Update};
        for (verb, fields, length) in [(Read, 15, 0), (Update, 8, 0), (Delete, 0, 0), (Scan, 1, 7)] {
            check(verb, old, fields, length, None, 0, &[]);
            check(verb, new, fields, length, Some(2), 0, &[]);
            check(verb, new, fields, length, None, 0, &["key ", "not of the data set (records 100 to 109)"]);
            check(verb, i64::MAX as u64, fields, length, None, 0, &["key 9223372036854775807 is not of"]);
            check(verb, 99, fields, length, Some(2), 0, &["key 99 is before the first record (100)"]);
            check(verb, foreign, fields, length, None, 0, &["key ", "another fragment"]);
            check(verb, new_foreign, fields, length, Some(2), 0, &["key ", "another fragment"]);
            check(verb, old, 16, length, None, 0, &["fields 16 of", "data.fields is 4"]);
            check(verb, old, fields, 8, None, 0, &["length 8 of", verb.name()]);
            check(verb, old, fields, length, None, 4_095, &["step 4095 is more than 4094"]);
        }
        check(Insert, new, 15, 0, None, 0, &[]);
        check(Insert, new_foreign, 15, 0, None, 0, &["another fragment"]);
        check(Insert, old, 15, 0, None, 0, &["key ", "is of the data set"]);
        check(Insert, new, 7, 0, None, 0, &["fields 7 of insert must be 15"]);
        check(Insert, new, 15, 1, None, 0, &["length 1 of insert"]);
        check(Delete, old, 1, 0, None, 0, &["fields 1 of delete must be 0"]);
        check(Scan, old, 15, 0, None, 0, &["length 0 of scan is not between 1 and 7 (access.scan_length_max)"]);
        for verb in [Read, Update, Scan] {
            check(verb, old, 0, u32::from(verb == Scan), None, 0, &["fields 0 of", "at least one"]);
        }
    }

    /// Stores and models rely on the mix, such as those that have no scans.
    #[test]
    fn operations_of_no_kind_of_session_are_refused() {
        let spec = spec("update = 1");
        let rules = KvRules::new(&spec, &halves(&spec), 1, verbs).unwrap();
        let operation = |verb| Operation { verb, key: 100, fields: 1, length: 0, id: WriteId::new(0, 0, 0), amount: 0 };
        for verb in Verb::ALL.into_iter().filter(|verb| *verb != Verb::Update && verb.control().is_none()) {
            let refused = rules.check_one(&operation(verb), 0, false).unwrap_err();
            assert_eq!(refused, format!("operation {} is in no kind of session of the mix", verb.name()));
        }
    }

    #[test]
    fn each_session_is_a_transaction_if_the_specification_wants_it() {
        let refusal = |more: &str, verb, key, txn| {
            let spec = spec(&format!("update = 1\n{more}"));
            let rules = KvRules::new(&spec, &halves(&spec), 0, verbs).unwrap();
            let [old, _] = records_from(&rules, 100);
            let key = if key { old } else { 0 };
            let fields = u64::from(verb == Verb::Update);
            let operation = Operation { verb, key, fields, length: 0, id: WriteId::new(0, 0, 0), amount: 0 };
            let row = TraceRow { txn, ..TraceRow::plain(3, 1, operation, 0) };
            let chunk: Chunk<Kv> = [row].into_iter().collect();
            rules.check(&chunk, 0..1).err().map(|bad| bad.message).unwrap_or_default()
        };
        assert_eq!(refusal("[transactions]", Verb::Update, true, Some(0)), "");
        assert_eq!(refusal("[transactions]", Verb::Commit, false, Some(0)), "");
        assert_eq!(refusal("", Verb::Update, true, None), "");
        let outside = refusal("[transactions]", Verb::Update, true, None);
        assert!(outside.contains("update is outside of a transaction"), "{outside}");
        let later = refusal("[transactions]", Verb::Update, true, Some(1));
        assert!(later.contains("began at step 1"), "{later}");
        for (verb, txn) in [(Verb::Update, Some(0)), (Verb::Commit, None), (Verb::Begin, Some(1))] {
            let unwanted = refusal("", verb, verb == Verb::Update, txn);
            assert!(unwanted.contains("the specification has no [transactions]"), "{unwanted}");
        }
        let keyed = refusal("[transactions]", Verb::Commit, true, Some(0));
        assert!(keyed.contains("of commit must be 0"), "{keyed}");
    }

    #[test]
    fn amounts_fit_records_with_and_without_balances() {
        let plain = spec(MIX);
        let mut rich = plain.clone();
        rich.own.data.total_cash = Some(1_000);
        let rules = |spec: &SpecOf<KvWorkload>| KvRules::new(spec, &halves(spec), 0, verbs).unwrap();
        let (plain, rich) = (rules(&plain), rules(&rich));
        let check = |rules: &KvRules, verb, fields, amount, expect: &str| {
            let operation = Operation { verb, key: 100, fields, length: 0, id: WriteId::new(0, 0, 0), amount };
            let found = rules.check_amount(&operation).err().unwrap_or_default();
            assert!(found.contains(expect) && found.is_empty() == expect.is_empty(), "{operation:?}: {found}");
        };
        for verb in Verb::ALL {
            check(&plain, verb, 2, 0, "");
            check(&plain, verb, 2, 5, "must be 0: records have no balances");
        }
        check(&rich, Verb::Insert, 15, 0, "");
        check(&rich, Verb::Insert, 15, -1, "delta -1 of insert must be the balance");
        check(&rich, Verb::Update, 1, -1, "");
        check(&rich, Verb::Update, 1, 0, "delta 0 of update");
        check(&rich, Verb::Update, 2, 1, "fields 2 of update lack");
        check(&rich, Verb::Delete, 0, WHOLE_BALANCE, "");
        check(&rich, Verb::Delete, 0, 0, "delta 0 of delete");
        check(&rich, Verb::Read, 3, 0, "");
        check(&rich, Verb::Read, 1, 9, "delta 9 of read must be 0");
    }

    #[test]
    fn statistics_that_contradict_the_specification_are_refused() {
        let spec = spec(MIX);
        let refusal = |first_records: Vec<u64>| {
            KvRules::new(&spec, &KvStatistics { first_records, ..KvStatistics::default() }, 0, verbs).err()
        };
        let good = halves(&spec).first_records;
        assert_eq!(refusal(good.clone()), None);
        let few = refusal(vec![good[0]]).unwrap();
        assert!(few.contains("first_records has 1 records, and there are 2 fragments"), "{few}");
        let three = SpecOf { common: crate::spec::Spec { fragments: 3, ..spec.common.clone() }, ..spec.clone() };
        let statistics = KvStatistics { first_records: vec![good[0], good[1], good[0]], ..KvStatistics::default() };
        let reversed = KvRules::new(&three, &statistics, 1, verbs).err().unwrap();
        assert!(reversed.contains("fragment 2 begins before fragment 1"), "{reversed}");
    }
}
