//! Tables and plans for a small schema.

use super::super::NO_LOADS;
use super::*;
use crate::vocabulary::sql::Type::{self, Decimal, Integer, Text};
use crate::vocabulary::sql::text::{Dialect, effect};

const SCHEMA: &str = "CREATE TABLE `NEW-ORDER` (id INT PRIMARY KEY, who INT, total DECIMAL(8, 2));\n\
                      CREATE TABLE customer (w INT, id INT, last VARCHAR(9), first VARCHAR(9) NOT NULL, balance DECIMAL(9, 2), \
                      PRIMARY KEY (w, id))";

fn statement(text: &str, types: &[Type]) -> Statement {
    let effect = effect(text, Dialect::Logical).expect(text);
    let (name, parameters) = (String::new(), types.to_vec());
    let (reads, writes, ordered) = (effect.reads, effect.writes, effect.ordered);
    Statement { name, text: text.into(), parameters, reads, writes, ordered }
}

fn work(statements: &[Statement]) -> Work<'_> {
    Work { schema: SCHEMA, dialect: Dialect::Logical, statements, uses: &[], loads: &NO_LOADS }
}

fn statements() -> Vec<Statement> {
    vec![
        statement("SELECT total FROM `NEW-ORDER` WHERE id = ? AND who = ?", &[Integer; 2]),
        statement(
            "SELECT balance FROM customer WHERE w = ? AND last = ? ORDER BY first DESC LIMIT 2",
            &[Integer, Text],
        ),
        statement("UPDATE `NEW-ORDER` SET total = ? WHERE id = ?", &[Decimal, Integer]),
        statement("INSERT INTO customer (w, id, last, first) VALUES (?, ?, ?, ?)", &[Integer, Integer, Text, Text]),
        statement("SELECT COUNT(*), SUM(balance) FROM customer WHERE w = ? AND last = ?", &[Integer, Text]),
    ]
}

/// What the file says of the second table of customers.
const BY_NAME: &str = "\
[[tables]]
name = \"customer_by_w_last\"
table = \"customer\"
partition = [\"w\", \"last\"]
clustering = [\"first desc\", \"id\"]
columns = [\"w\", \"id\", \"last\", \"first\", \"balance\"]
";

#[test]
fn each_access_path_has_a_table_and_writes_go_to_all_of_them() {
    let statements = statements();
    let work = work(&statements);
    let (design, mapping) = WideMapping::of(&work, None, "k.").unwrap();
    assert!(design.text().contains(BY_NAME), "{}", design.text());
    assert_eq!(WideDesign::parse(&design.text()), Ok(design));
    assert_eq!(mapping.refused(&work), [""; 0]);
    let texts = |number: usize| match mapping.plans[number].as_ref().unwrap() {
        Plan::Read(read) => vec![read.cql.text.clone()],
        Plan::Write(write) => write.rows.concat().into_iter().map(|cql| cql.text).collect(),
    };
    let read = "SELECT \"total\" FROM k.\"new_order\" WHERE \"id\" = ? AND \"who\" = ? ALLOW FILTERING";
    assert_eq!(texts(0), [read]);
    let read = "SELECT \"balance\" FROM k.\"customer_by_w_last\" WHERE \"w\" = ? AND \"last\" = ? LIMIT ?";
    assert_eq!(texts(1), [read]);
    assert_eq!(texts(2), ["UPDATE k.\"new_order\" SET \"total\" = ? WHERE \"id\" = ?"]);
    let insert = |name: &str| {
        let columns = "(\"w\", \"id\", \"last\", \"first\", \"balance\") VALUES (?, ?, ?, ?, ?)";
        format!("INSERT INTO k.\"{name}\" {columns}")
    };
    assert_eq!(texts(3), ["customer", "customer_by_w_last"].map(insert));
    let Plan::Read(sum) = mapping.plans[4].as_ref().unwrap() else { panic!() };
    assert!(sum.cql.text.starts_with("SELECT count(*), sum(\"balance\"), count(\"balance\") FROM"), "{}", sum.cql.text);
    assert_eq!(sum.returns.iter().map(|one| one.unless_none).collect::<Vec<_>>(), [None, Some(2)]);
}

#[test]
fn rows_are_read_backwards_where_the_order_is_the_other_one() {
    let mut statements = statements();
    statements.push(statement("SELECT id FROM customer WHERE w = ? AND last = ? ORDER BY first", &[Integer, Text]));
    let work = work(&statements);
    let (design, mapping) = WideMapping::of(&work, None, "").unwrap();
    assert_eq!(design.tables.len(), 3);
    let Plan::Read(read) = mapping.plans[5].as_ref().unwrap() else { panic!() };
    assert!(read.cql.text.ends_with(" ORDER BY \"first\" ASC, \"id\" DESC"), "{}", read.cql.text);
}

#[test]
fn what_cql_cannot_do_is_refused_with_its_reason() {
    let check = |text: &str, types: &[Type], expect: &str| {
        let statements = [statement(text, types)];
        let (_, mapping) = WideMapping::of(&work(&statements), None, "").unwrap();
        let refused = mapping.refused(&work(&statements));
        let [line] = &refused[..] else { panic!("{text}: {refused:?}") };
        assert!(line.starts_with("statement 0 ") && line.ends_with(text) && line.contains(expect), "{line}");
    };
    check("SELECT id FROM customer", &[], "by no column with =");
    check("SELECT id FROM customer WHERE w > 3", &[], "by no column with =");
    check("SELECT id FROM customer WHERE w = 1 AND last <> 'x'", &[], "last <>");
    check("SELECT id FROM customer WHERE w = 1 AND last IS NULL", &[], "is NULL");
    check("SELECT id FROM customer WHERE w IN (1, 2)", &[], "w IN a list");
    check("SELECT id FROM customer WHERE w = 1 AND last = 'x' LIMIT 5, 2", &[], "OFFSET");
    check("SELECT id FROM customer WHERE w = 1 ORDER BY last", &[], "may be NULL");
    check("SELECT id FROM customer WHERE w = ?", &[Decimal], "a whole number");
    check("SELECT ROUND(SUM(balance), 1) FROM customer WHERE w = 1", &[], "rounds what it returns");
    check(
        "UPDATE customer SET balance = balance - ? WHERE w = 1 AND id = 2",
        &[Decimal],
        "computes balance from the row",
    );
    check("UPDATE customer SET balance = 1 WHERE w = 1", &[], "without a condition on id");
    check("UPDATE customer SET balance = 1 WHERE w = 1 AND id = 2 AND last = 'x'", &[], "under a condition on last");
    check("DELETE FROM customer WHERE w = 1", &[], "whole keys only");
    // The row of a change cannot be found in a table by another key.
    let both = [
        statement("SELECT balance FROM customer WHERE last = ?", &[Text]),
        statement("UPDATE customer SET balance = 1 WHERE w = 1 AND id = 2", &[]),
    ];
    let refused = WideMapping::of(&work(&both), None, "").unwrap().1.refused(&work(&both));
    assert!(refused.len() == 1 && refused[0].contains("table customer_by_last without a condition on"), "{refused:?}");
    let no_key = Work { schema: "CREATE TABLE log (at DATETIME)", ..work(&[]) };
    assert!(recommend(&no_key).unwrap_err().contains("table log has no primary key"));
}

#[test]
fn a_damaged_file_is_refused_with_its_line() {
    let statements = statements();
    let work = work(&statements);
    let text = recommend(&work).unwrap().text();
    let wrong = |from: &str, to: &str, expect: &str| {
        assert!(text.contains(from), "{from}");
        let error = WideMapping::of(&work, Some(&text.replacen(from, to, 1)), "").unwrap_err();
        assert!(error.contains(expect), "{error}\nis not\n{expect}");
    };
    wrong(
        "[\"w\", \"last\"]",
        "[\"w\", \"lost\"]",
        "line 18: table \"customer_by_w_last\" has \"lost\", which is no column",
    );
    wrong("[\"first desc\", \"id\"]", "[\"first desc\"]", "line 19: table \"customer_by_w_last\" does not have id");
    wrong(
        "name = \"customer\"",
        "name = \"cust-omer\"",
        "line 9: table \"cust-omer\" has a name that Cassandra refuses",
    );
    wrong("partition", "partitions", "line 4: ");
    wrong("partition = [\"w\", \"id\"]", "partition = [\"w\", \"id\"", "line 12: ");
}
