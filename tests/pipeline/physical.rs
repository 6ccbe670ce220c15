//! Statements of SQL on MongoDB: collections for access paths, and the same results as on SQLite.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::key_value::ask;
use crate::support::Workplace;

const SCHEMA: &str = "CREATE TABLE customer (w INT, id INT, name VARCHAR(9), balance DECIMAL(8, 2), data VARCHAR(40), \
                      seen DATETIME, PRIMARY KEY (w, id));\n\
                      CREATE TABLE `PAID-BY` (who INT, amount DECIMAL(8, 2), note VARCHAR(20));\n\
                      CREATE TABLE counter (k INT PRIMARY KEY, next_id BIGINT)";

const STATEMENTS: &str = "statement,text,parameters\n\
    add,\"INSERT INTO customer (w, id, name, balance, data, seen) VALUES (?, ?, ?, ?, ?, ?)\",\"integer,integer,text,decimal,text,timestamp\"\n\
    counter,\"INSERT INTO counter (k, next_id) VALUES (?, ?)\",\"integer,integer\"\n\
    by name,\"SELECT id, balance, seen FROM customer WHERE w = ? AND name = ? ORDER BY balance DESC, id LIMIT 3\",\"integer,text\"\n\
    by key,SELECT * FROM customer WHERE id = ? AND w = ?,\"integer,integer\"\n\
    pay,\"UPDATE customer SET balance = balance - ?, data = CASE WHEN balance >= ? THEN SUBSTR(CONCAT(id, '-', data), 1, 9) ELSE data END WHERE w = ? AND id = ?\",\"decimal,integer,integer,integer\"\n\
    note,\"INSERT INTO `PAID-BY` VALUES (?, ROUND(? * ?, 2), CONCAT(?, '!'))\",\"integer,decimal,integer,text\"\n\
    sum,\"SELECT COUNT(*), SUM(amount), MIN(amount), MAX(note), COUNT(note) FROM `PAID-BY` WHERE amount > ?\",decimal\n\
    next,SELECT next_id FROM counter WHERE k = ?,integer\n\
    count,UPDATE counter SET next_id = next_id + 1 WHERE k = ?,integer\n\
    remove,DELETE FROM customer WHERE w = ? AND id = ?,\"integer,integer\"\n\
    rich,SELECT w FROM customer WHERE balance BETWEEN ? AND ? AND name <> ? AND seen IS NOT NULL ORDER BY w,\"decimal,decimal,text\"\n";

/// A shop whose customers are found by their names too, with statements more.
fn write_shop(place: &Workplace, more: &[(&str, &str)]) {
    let folder = place.path("shop");
    std::fs::create_dir_all(&folder).expect("a folder");
    let (mut statements, mut preload) = (STATEMENTS.to_string(), "statement,parameters\n".to_string());
    for id in 0..60 {
        let day = id % 20 + 10;
        let seen = if id % 4 == 0 { "null".to_string() } else { format!("\"\"2016-05-{day} 0{}:00:00\"\"", id % 3) };
        let (w, name, balance) = (id % 2, id % 7, id * 3);
        preload += &format!("add,\"[{w}, {id}, \"\"N{name}\"\", {balance}.50, \"\"data {id}\"\", {seen}]\"\n");
    }
    preload += "counter,\"[0, 100]\"\n";
    let mut operations = String::from("process,statement,parameters\n");
    for process in 0..40 {
        let mut step = |statement: &str, parameters: &str| {
            operations += &format!("{process},{statement},\"{parameters}\"\n");
        };
        let (w, id) = (process % 2, process * 7 % 60);
        step("by name", &format!("[{w}, \"\"N{}\"\"]", process % 8));
        step("begin", "");
        step("next", "[0]");
        step("pay", &format!("[{process}.25, 50, {}, {id}]", id % 2));
        step("by key", &format!("[{id}, {}]", id % 2));
        let next = "{\"\"step\"\": 2, \"\"column\"\": 0}";
        step("note", &format!("[{next}, 1.5, {process}, \"\"n{process}\"\"]"));
        step("count", "[0]");
        step(if process % 5 == 4 { "abort" } else { "commit" }, "");
        step("sum", &format!("[{process}]"));
        step("rich", "[10, 90.5, \"\"N2\"\"]");
        if process % 6 == 5 {
            step("remove", &format!("[{w}, {process}]"));
        }
    }
    for (name, text) in more {
        statements += &format!("{name},\"{text}\",\n");
        operations += &format!("99,{name},\n");
    }
    let files = [
        ("schema.sql", SCHEMA),
        ("statements.csv", &statements),
        ("preload.csv", &preload),
        ("operations.csv", &operations),
    ];
    for (name, text) in files {
        std::fs::write(folder.join(name), text).expect("a file");
    }
}

/// A database of MongoDB; None if there is no server.
fn mongodb() -> Option<String> {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let database = format!("encore_physical_{}_{}", std::process::id(), CALLS.fetch_add(1, Ordering::Relaxed));
    servers::mongodb().map(|server| server.url(&database))
}

fn replay(place: &Workplace, store: &str, run: &str) -> String {
    let args = ["--store", store, "-o", run, "--load", "--digest", "--threads", "1"];
    let said = place.run(&[&["replay", "run", "--trace", "shop.trace"][..], &args].concat()).succeeds();
    assert_eq!(ask(place, run, "SELECT count(*) FILTER (outcome <> 'ok') FROM operations"), "0", "{store}");
    said.lines().last().unwrap_or_default().to_string()
}

fn with_parameter(url: &str, parameter: &str) -> String {
    format!("{url}{}{parameter}", if url.contains('?') { '&' } else { '?' })
}

#[test]
fn mongodb_returns_what_sqlite_returns_with_any_design() {
    let Some(url) = mongodb() else { return };
    let place = Workplace::new();
    write_shop(&place, &[]);
    place.run(&["trace", "import", "table", "shop", "--log-results"]).succeeds();
    let printed = place.run(&["trace", "physical", "shop.trace", "--for", "mongodb"]).succeeds();
    assert!(printed.contains("name = \"customer_by_w_name\"") && printed.contains("[\"w\", \"name\"]"), "{printed}");
    let expected = replay(&place, "sqlite:a.db?synchronous=off", "lite");
    assert_eq!(replay(&place, &url, "mongo"), expected);
    let same = place.run(&["analyze", "compare", "--results", "lite", "mongo"]).succeeds();
    assert!(same.contains("returned the same"), "{same}");

    // One collection with an index more, instead of two collections.
    let own = "[[collections]]\nname = \"people\"\ntable = \"customer\"\npaths = [[\"w\", \"id\"], [\"w\", \"name\"]]\n\
               columns = [\"w\", \"id\", \"name\", \"balance\", \"data\", \"seen\"]\n\n\
               [[collections]]\nname = \"paid\"\ntable = \"PAID-BY\"\npaths = []\ncolumns = [\"who\", \"amount\", \"note\"]\n\n\
               [[collections]]\nname = \"counter\"\ntable = \"counter\"\npaths = [[\"k\"]]\ncolumns = [\"k\", \"next_id\"]\n";
    std::fs::write(place.path("own.toml"), own).expect("a file");
    place.run(&["trace", "physical", "shop.trace", "--for", "mongodb", "--check", "own.toml"]).succeeds();
    let edited = with_parameter(&url, &format!("physical={}", place.path("own.toml").display()));
    // Without a load, another design is refused.
    let args = ["replay", "run", "--trace", "shop.trace", "--store", &edited, "--threads", "1", "-o", "refused"];
    let refused = place.run(&args);
    assert!(refused.stderr().contains("load it again"), "{}", refused.stderr());
    assert_eq!(replay(&place, &edited, "own"), expected);
    let same = place.run(&["analyze", "compare", "--results", "lite", "own"]).succeeds();
    assert!(same.contains("returned the same"), "{same}");
}

#[test]
fn what_mongodb_cannot_do_is_refused_before_anything_starts() {
    let place = Workplace::new();
    write_shop(&place, &[("join", "SELECT c.name FROM customer c JOIN counter k ON k.k = c.w")]);
    place.run(&["trace", "import", "table", "shop"]).succeeds();
    let words = ["statement 11 (join) joins tables", "SELECT c.name FROM customer c JOIN"];
    place.run(&["trace", "physical", "shop.trace", "--for", "mongodb"]).fails(2, &words);
    let Some(url) = mongodb() else { return };
    let before = place.contents();
    let args = ["replay", "run", "--trace", "shop.trace", "--store", &url, "--threads", "1", "--load", "-o", "m"];
    place.run(&args).fails(2, &words);
    assert_eq!(place.contents(), before);
}
