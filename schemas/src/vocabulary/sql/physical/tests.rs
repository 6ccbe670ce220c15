//! Designs and plans for small schemas.

use super::super::Type::{Decimal, Integer, Text};
use super::super::text::effect;
use super::super::{Statement, Type};
use super::*;

const SCHEMA: &str = "CREATE TABLE `NEW-ORDER` (id INT PRIMARY KEY, who INT, total DECIMAL(8, 2), note VARCHAR(9) DEFAULT 'x');\n\
                      CREATE TABLE customer (w INT, id INT, last VARCHAR(9), first VARCHAR(9), balance DECIMAL(9, 2), data TEXT, \
                      PRIMARY KEY (w, id));\n\
                      CREATE TABLE log (at DATETIME, what VARCHAR(9));\n\
                      CREATE INDEX by_name ON customer (last)";

fn statement(text: &str, types: &[Type]) -> Statement {
    let effect = effect(text, Dialect::Logical).expect(text);
    let (name, parameters) = (String::new(), types.to_vec());
    let (reads, writes, ordered) = (effect.reads, effect.writes, effect.ordered);
    Statement { name, text: text.into(), parameters, reads, writes, ordered }
}

fn statements() -> Vec<Statement> {
    vec![
        statement("SELECT total FROM `NEW-ORDER` WHERE id = ? AND who = ?", &[Integer; 2]),
        statement("SELECT first, balance FROM customer WHERE w = ? AND last = ? ORDER BY first, id", &[Integer, Text]),
        statement("UPDATE customer SET balance = balance - ? WHERE id = ? AND w = ?", &[Decimal, Integer, Integer]),
        statement("UPDATE customer SET data = ? WHERE id = ? AND w = ?", &[Text, Integer, Integer]),
        statement(
            "INSERT INTO customer VALUES (?, ?, ?, ?, ROUND(? * 2, 2), CONCAT(?, '-'))",
            &[Integer, Integer, Text, Text, Decimal, Text],
        ),
        statement("DELETE FROM customer WHERE last = ?", &[Text]),
        statement("SELECT COUNT(*), SUM(total), MAX(id) FROM `NEW-ORDER`", &[]),
    ]
}

fn work(statements: &[Statement]) -> Work<'_> {
    Work { schema: SCHEMA, dialect: Dialect::Logical, statements, uses: &[], loads: &NO_LOADS }
}

fn mapped(design: &Design, statements: &[Statement]) -> Mapping {
    Mapping::new(&work(statements), design).unwrap()
}

#[test]
fn each_access_path_has_a_collection_of_what_its_queries_need() {
    let design = recommend(&work(&statements())).unwrap();
    let expect = "\
[[collections]]
name = \"NEW-ORDER\"
table = \"NEW-ORDER\"
paths = [[\"id\"]]
columns = [\"id\", \"who\", \"total\", \"note\"]

[[collections]]
name = \"customer\"
table = \"customer\"
paths = [[\"w\", \"id\"], [\"last\"]]
columns = [\"w\", \"id\", \"last\", \"first\", \"balance\", \"data\"]

[[collections]]
name = \"customer_by_w_last\"
table = \"customer\"
paths = [[\"w\", \"last\"], [\"last\"]]
columns = [\"w\", \"id\", \"last\", \"first\", \"balance\"]

[[collections]]
name = \"log\"
table = \"log\"
paths = []
columns = [\"at\", \"what\"]
";
    assert_eq!(design.text(), expect);
    assert_eq!(Design::parse(&design.text()), Ok(design));
}

#[test]
fn reads_choose_a_collection_and_writes_go_to_all_that_hold_a_column() {
    let statements = statements();
    let design = recommend(&work(&statements)).unwrap();
    let mapping = mapped(&design, &statements);
    assert_eq!(mapping.refused(&work(&statements)), [""; 0]);
    let plan = |number: usize| mapping.plans[number].as_ref().unwrap();
    let [Plan::Find(by_key), Plan::Find(by_name)] = [plan(0), plan(1)] else { panic!() };
    assert_eq!((by_key.collection, by_name.collection), (0, 2));
    assert_eq!((&by_name.columns[..], &by_name.order[..]), (&[3, 4][..], &[(3, false), (1, false)][..]));
    assert_eq!(key_conditions(&by_key.conditions, &mapping.tables.0[0]), Some(vec![&Term::Parameter(0)]));
    assert_eq!(key_conditions(&by_name.conditions, &mapping.tables.0[1]), None);
    // The balance is in both collections of customers, the data in one.
    assert_eq!([2, 3, 4, 5, 6].map(|number| plan(number).writes()), [2, 1, 2, 2, 0]);
    let Plan::Update(update) = plan(2) else { panic!() };
    assert!(update.is_of_one && update.changes[0].collection == 1);
    let Plan::Insert(insert) = plan(4) else { panic!() };
    let parameters =
        [Datum::Null, Datum::Null, Datum::Null, Datum::Null, Datum::Decimal("1.255".into()), Datum::Text("a".into())];
    let values: Vec<Datum> = insert.rows[0][4..].iter().map(|term| term.value(&parameters).unwrap()).collect();
    assert_eq!(values, [Datum::Decimal("2.51".into()), Datum::Text("a-".into())]);
}

#[test]
fn what_cannot_be_mapped_is_refused_with_its_reason() {
    let check = |text: &str, types: &[Type], expect: &str| {
        let statements = [statement(text, types)];
        let design = recommend(&work(&statements)).unwrap();
        let refused = mapped(&design, &statements).refused(&work(&statements));
        let [line] = &refused[..] else { panic!("{text}: {refused:?}") };
        assert!(line.starts_with("statement 0 ") && line.ends_with(text) && line.contains(expect), "{line}");
    };
    check("SELECT c.first FROM customer c JOIN log l ON l.what = c.last", &[], "joins tables");
    check("SELECT c.first FROM customer c, log l", &[], "joins tables");
    check("SELECT w, COUNT(*) FROM customer GROUP BY w", &[], "groups rows");
    check("SELECT DISTINCT w FROM customer", &[], "DISTINCT");
    check("SELECT COUNT(DISTINCT w) FROM customer", &[], "supported are columns, and COUNT, SUM");
    check("SELECT AVG(balance) FROM customer", &[], "supported are columns, and COUNT, SUM");
    check("SELECT w, COUNT(*) FROM customer", &[], "beside values");
    check("SELECT balance * 2 FROM customer", &[], "supported are columns");
    check("SELECT w FROM customer WHERE last LIKE ?", &[Text], "has the condition last LIKE ?1; supported are");
    check("SELECT w FROM customer WHERE last = ? OR w = 1", &[Text], "supported are");
    check("SELECT w FROM customer WHERE w = id", &[], "compares w with another column");
    check("SELECT w FROM customer WHERE w IN (SELECT id FROM customer)", &[], "supported are");
    check("SELECT w FROM customer WHERE w = ?", &[Text], "parameter 1 of type text for column w");
    check("SELECT w FROM missing", &[], "missing, which is no table of the schema");
    check("SELECT x FROM log", &[], "is no column");
    check("UPDATE customer SET id = 5 WHERE w = 1", &[], "changes id, which is of the primary key");
    check("UPDATE customer SET balance = balance / 2 WHERE w = 1", &[], "computes with /");
    check("INSERT INTO log (what) VALUES (?) ON DUPLICATE KEY UPDATE what = ?", &[Text, Text], "unless there is a row");
    check("INSERT INTO log (what) SELECT last FROM customer", &[], "inserts what is not VALUES");
    // A statement that no session has is no hindrance.
    let join = [statement("SELECT c.first FROM customer c, log l", &[])];
    let unused = Work { uses: &[0], ..work(&join) };
    let design = recommend(&unused).unwrap();
    assert_eq!(mapped(&design, &join).refused(&unused), [""; 0]);
}

#[test]
fn an_edited_design_must_serve_its_statements() {
    let statements = statements();
    let design = recommend(&work(&statements)).unwrap();
    // One collection with two indexes instead of two collections.
    let mut edited = design.clone();
    edited.collections.remove(2);
    edited.collections[1].paths.push(vec!["w".into(), "last".into()]);
    let mapping = mapped(&edited, &statements);
    assert_eq!(mapping.refused(&work(&statements)), [""; 0]);
    assert_eq!(mapping.plans[2].as_ref().unwrap().writes(), 1);
    let wrong = |edit: &dyn Fn(&mut Design), expect: &str| {
        let mut edited = design.clone();
        edit(&mut edited);
        let done = Mapping::of(&work(&statements), Some(&edited.text()));
        let error = done.map_or_else(|error| error, |(_, mapping)| mapping.refused(&work(&statements)).join("\n"));
        assert!(error.contains(expect), "{error}\nis not\n{expect}");
    };
    wrong(&|design| _ = design.collections.remove(3), "table log has no collection");
    wrong(
        &|design| design.collections[2].columns.retain(|name| name != "id"),
        "line 17: collection \"customer_by_w_last\" lacks column id, which its key",
    );
    let hides_first = |design: &mut Design| {
        design.collections[1].paths.truncate(1);
        design.collections[2].columns.retain(|name| name != "first");
    };
    wrong(&hides_first, "statement 1 reads table customer by w, last");
    wrong(
        &|design| design.collections[1].columns.retain(|name| name != "data"),
        "line 11: collection \"customer\" is the first one of table customer and must have all its columns; add data",
    );
    wrong(&|design| design.collections[2].name = "customer".into(), "line 14: collection \"customer\" is there twice");
    wrong(&|design| design.collections[2].table = "nothing".into(), "line 15: ");
    wrong(
        &|design| design.collections[2].paths.truncate(1),
        "statement 5 changes collection customer_by_w_last by last",
    );
    let damaged = Design::parse("[[collections]]\nname = 1").unwrap_err();
    assert!(damaged.starts_with("line 2: ") && damaged.ends_with("`encore trace physical`"), "{damaged}");
}
