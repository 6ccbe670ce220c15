//! The flags that say how the transactions of a trace set are run. `encore run` and `encore rate` have
//! the same.

use clap::{Args, ValueEnum};
use schemas::plan::Transactions;

/// How transactions are run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
pub struct TransactionArgs {
    /// Whether the transactions of the trace set are used; default: on
    ///
    /// off: each operation is by itself, as on a store that has no transactions. Begin, commit and
    /// abort are logged, and nothing is sent for them.
    #[arg(long, value_enum, value_name = "on|off")]
    pub transactions: Option<Use>,
    /// Try a transaction that the store rolls back because of others up to N times; default: 1
    ///
    /// The next try begins at once, and each try is logged.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(Transactions::TRIES_MAX)))]
    pub tries: Option<u16>,
}

/// The values of `--transactions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Use {
    /// They are used.
    On,
    /// Each operation is by itself.
    Off,
}

impl TransactionArgs {
    /// What these flags ask for.
    pub fn request(&self) -> Transactions {
        Transactions {
            used: self.transactions != Some(Use::Off),
            tries: self.tries.unwrap_or(Transactions::default().tries),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        transactions: TransactionArgs,
    }

    fn parse(flags: &[&str]) -> Result<Transactions, String> {
        let only = Only::try_parse_from([&["only"], flags].concat());
        only.map(|only| only.transactions.request()).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_become_a_request() {
        assert_eq!(parse(&[]), Ok(Transactions { used: true, tries: 1 }));
        assert_eq!(parse(&["--transactions", "off"]), Ok(Transactions { used: false, tries: 1 }));
        assert_eq!(parse(&["--transactions=on", "--tries=5"]), Ok(Transactions { used: true, tries: 5 }));
    }

    #[test]
    fn values_that_make_no_sense_are_refused_by_their_flag() {
        for (flag, value) in [("--transactions", "yes"), ("--tries", "0"), ("--tries", "10001"), ("--tries", "many")] {
            let error = parse(&[&format!("{flag}={value}")]).unwrap_err();
            assert!(error.contains(flag) && error.contains(value), "{error}");
        }
    }
}
