//! The sum that all transactions keep, and how far it is off.

use serde::{Deserialize, Serialize};

use crate::words::{plural, thousands};

/// What an experiment has left of the money of all records (`economy`).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SumFigures {
    /// The sum at the start.
    pub start: i64,
    /// The sum by the closing read.
    pub end: i64,
    /// What transactions took out of the records.
    pub captured: i64,
    /// What transactions put into the records.
    pub released: i64,
    /// What operations of unknown fate may have changed, at least (0 or below) and at most.
    pub unknown_low: i64,
    /// The most of it, 0 or above.
    pub unknown_high: i64,
    /// The change of the sum that none of these explains, without its sign; of each fragment by itself,
    /// and added up.
    pub off: u64,
    /// Transactions that began, warm-up included.
    pub transactions: u64,
    /// Of these, those that the store did not run as transactions.
    pub apart: u64,
    /// The simple anomaly score of ycsb-t-2014: `off` divided by `transactions`. Null if the sum at the
    /// start or at the end is not known.
    pub score: Option<f64>,
}

impl SumFigures {
    /// Whether the sum is known, and not what it has to be.
    pub fn is_off(&self) -> bool {
        self.score.is_some() && self.off > 0
    }

    /// Whether the store ran all transactions as transactions.
    pub fn is_atomic(&self) -> bool {
        self.apart == 0
    }

    /// The figures in words.
    ///
    /// ```
    /// use schemas::verdict::SumFigures;
    /// let sum = SumFigures { start: 1000, end: 971, off: 29, transactions: 1_000_000, score: Some(29e-6), ..SumFigures::default() };
    /// assert_eq!(
    ///     sum.in_words(),
    ///     "money: 1,000 at the start, 971 at the end: 29 off; anomaly score 0.000029 (1,000,000 transactions)"
    /// );
    /// ```
    pub fn in_words(&self) -> String {
        let signed = |money: i64| format!("{}{}", if money < 0 { "-" } else { "" }, thousands(money.unsigned_abs()));
        let mut out = format!("money: {} at the start, ", signed(self.start));
        if self.captured != 0 || self.released != 0 {
            out += &format!("{} captured, {} released, ", signed(self.captured), signed(self.released));
        }
        if self.unknown_low != 0 || self.unknown_high != 0 {
            out += &format!("{} to {} of unknown fate, ", signed(self.unknown_low), signed(self.unknown_high));
        }
        let Some(score) = self.score else { return format!("{out}and not known at the end: no anomaly score") };
        let off = if self.off == 0 { "nothing".to_string() } else { thousands(self.off) };
        out += &format!(
            "{} at the end: {off} off; anomaly score {score} ({}",
            signed(self.end),
            plural(self.transactions, "transaction")
        );
        match self.apart {
            0 => out + ")",
            apart if apart == self.transactions => out + ", none of them atomic)",
            apart => format!("{out}, {} not atomic)", thousands(apart)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_say_what_is_known() {
        let check = |sum: SumFigures, expect: &str| assert_eq!(sum.in_words(), expect);
        let kept = SumFigures {
            start: 1_000,
            end: 907,
            captured: 100,
            released: 7,
            transactions: 50,
            score: Some(0.0),
            ..SumFigures::default()
        };
        let words = "money: 1,000 at the start, 100 captured, 7 released, 907 at the end: nothing off; anomaly score 0";
        check(kept.clone(), &format!("{words} (50 transactions)"));
        check(SumFigures { apart: 50, ..kept.clone() }, &format!("{words} (50 transactions, none of them atomic)"));
        check(SumFigures { apart: 2, ..kept.clone() }, &format!("{words} (50 transactions, 2 not atomic)"));
        assert!(!kept.is_off() && kept.is_atomic());
        let unknown = SumFigures { score: None, off: 3, ..kept };
        assert!(!unknown.is_off() && unknown.in_words().ends_with("not known at the end: no anomaly score"));
    }
}
