//! Builds a trace set of a bank: clients move money between accounts, and ask for balances, at times of their own.
//!
//! ```text
//! cargo run --release -p tracegen --example bank bank.trace
//! ./encore replay run --trace bank.trace --store sqlite:bank.db --load --threads 4 -o run
//! ```

use std::path::PathBuf;

use schemas::vocabulary::sql::Type::{Decimal, Integer};
use schemas::vocabulary::sql::text::Dialect;
use tracegen::GenerateError;
use tracegen::sql::Builder;

const SCHEMA: &str = "\
CREATE TABLE account (id INT PRIMARY KEY, balance DECIMAL(12, 2) NOT NULL);
CREATE TABLE transfer (id INT PRIMARY KEY, from_id INT NOT NULL, to_id INT NOT NULL, amount DECIMAL(12, 2) NOT NULL);
";

const ACCOUNTS: i64 = 100;
const PROCESSES: i64 = 1_000;

fn main() -> Result<(), GenerateError> {
    let place = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("bank.trace"), PathBuf::from);
    let manifest = bank()?.write(&place)?;
    println!("{}: {} sessions, {} operations", place.display(), manifest.sessions(), manifest.operations());
    Ok(())
}

fn bank() -> Result<Builder, GenerateError> {
    let mut set = Builder::new("bank", Dialect::Logical, SCHEMA).source("example").fragments(2);
    let open = set.statement("open", "INSERT INTO account (id, balance) VALUES (?, ?)", &[Integer, Decimal])?;
    let read = set.statement("read", "SELECT balance FROM account WHERE id = ?", &[Integer])?;
    let add =
        set.statement("add", "UPDATE account SET balance = ROUND(balance + ?, 2) WHERE id = ?", &[Decimal, Integer])?;
    let note = set.statement(
        "note",
        "INSERT INTO transfer (id, from_id, to_id, amount) VALUES (?, ?, ?, ?)",
        &[Integer, Integer, Integer, Decimal],
    )?;
    // Whatever the transfers, there is as much money as at first.
    set.check(
        "money",
        "The sum of all balances is 10,000",
        "SELECT SUM(balance) AS money FROM account HAVING ROUND(SUM(balance) - 10000, 2) <> 0",
    );
    for account in 0..ACCOUNTS {
        set.fill(open).integer(account).decimal("100.00").run();
    }
    for number in 0..PROCESSES {
        let (from, to) = (number * 7 % ACCOUNTS, (number * 13 + 1) % ACCOUNTS);
        let process = set.process(if number % 3 == 0 { "read" } else { "transfer" });
        let mut process = process.client((number % 20) as u64).due_us(number as u64 * 1_000);
        if number % 3 == 0 {
            process.statement(read).integer(from).run();
        } else {
            let mut transaction = process.transaction();
            transaction.statement(add).decimal("-1.50").integer(from).run();
            transaction.statement(add).decimal("1.50").integer(to).run();
            transaction.statement(note).integer(number).integer(from).integer(to).decimal("1.50").run();
            transaction.commit();
        }
        process.end();
    }
    Ok(set)
}
