//! Statements of SQL on MongoDB and Cassandra: a collection or table for each access path, and the same results as on
//! SQLite.

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

fn database() -> String {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    format!("encore_physical_{}_{}", std::process::id(), CALLS.fetch_add(1, Ordering::Relaxed))
}

/// A database of MongoDB; None if there is no server.
fn mongodb() -> Option<String> {
    servers::mongodb().map(|server| server.url(&database()))
}

/// A keyspace of Cassandra; None if there is no server.
fn cassandra() -> Option<String> {
    servers::cassandra_url(&database())
}

fn replay(place: &Workplace, store: &str, run: &str) -> String {
    replay_of(place, "shop.trace", store, run)
}

fn replay_of(place: &Workplace, trace: &str, store: &str, run: &str) -> String {
    let args = ["--store", store, "-o", run, "--load", "--digest", "--threads", "1"];
    let said = place.run(&[&["replay", "run", "--trace", trace][..], &args].concat()).succeeds();
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

/// Rows of TPC-C's shape, as BenchFoundry's files have them: keys of one column, and further columns that reads compare.
const TABLES: &str = "\
0:CREATE TABLE `DISTRICT` (D_ID TINYINT UNSIGNED UNIQUE, W_ID SMALLINT UNSIGNED, D_NAME VARCHAR(10), D_TAX DECIMAL(4, 4), D_NEXT_O_ID MEDIUMINT UNSIGNED, PRIMARY KEY(D_ID));
1:CREATE TABLE `CUSTOMER` (C_ID MEDIUMINT UNSIGNED UNIQUE, D_ID TINYINT UNSIGNED, W_ID SMALLINT UNSIGNED, C_LAST VARCHAR(16), C_SINCE DATETIME, C_BALANCE DECIMAL(12, 2), PRIMARY KEY(C_ID));
2:CREATE TABLE `NEW-ORDER` (NO_ID MEDIUMINT UNSIGNED UNIQUE, D_ID TINYINT UNSIGNED, W_ID SMALLINT UNSIGNED, NO_DATA CHAR(8), PRIMARY KEY(NO_ID));
3:CREATE TABLE `ORDER-LINE` (OL_NUMBER MEDIUMINT UNSIGNED UNIQUE, O_ID MEDIUMINT UNSIGNED, OL_AMOUNT DECIMAL(6, 2), OL_DIST_INFO CHAR(24), PRIMARY KEY(OL_NUMBER));
";

const CALLS: &str = "\
0:INSERT into `DISTRICT` (D_ID, W_ID, D_NAME, D_TAX, D_NEXT_O_ID) VALUES (?, ?, ?, ?, ?);
1:INSERT into `CUSTOMER` (C_ID, D_ID, W_ID, C_LAST, C_SINCE, C_BALANCE) VALUES (?, ?, ?, ?, ?, ?);
2:INSERT into `NEW-ORDER` (NO_ID, D_ID, W_ID, NO_DATA) VALUES (?, ?, ?, ?);
3:INSERT into `ORDER-LINE` (OL_NUMBER, O_ID, OL_AMOUNT, OL_DIST_INFO) VALUES (?, ?, ?, ?);
4:SELECT D_ID, W_ID, D_NAME, D_TAX, D_NEXT_O_ID FROM `DISTRICT` WHERE D_ID=? AND W_ID=?;
5:SELECT C_ID, C_LAST, C_SINCE, C_BALANCE FROM `CUSTOMER` WHERE C_ID=? AND D_ID=? AND W_ID=?;
6:UPDATE `CUSTOMER` SET C_LAST=?, C_SINCE=?, C_BALANCE=? WHERE C_ID=?;
7:SELECT OL_NUMBER, OL_AMOUNT, OL_DIST_INFO FROM `ORDER-LINE` WHERE O_ID=? ORDER BY OL_NUMBER DESC LIMIT 2;
8:SELECT COUNT(*), SUM(OL_AMOUNT), MIN(OL_NUMBER) FROM `ORDER-LINE` WHERE O_ID=? AND OL_NUMBER > ?;
";

/// Writes BenchFoundry's files.
fn write_orders(place: &Workplace) {
    let (mut parameters, mut sets) = (String::new(), 0);
    let mut call = |statement: u32, values: &str| {
        parameters += &format!("{sets}:{values}\n");
        sets += 1;
        format!("{statement};{}\n", sets - 1)
    };
    let process = |number: u32, calls: &str| format!("BOP;0;{number}\nBOT;0\n{calls}EOT\nEOP\n\n");
    let (mut load, mut run) = (String::new(), String::new());
    for id in 0..30 {
        let district =
            if id < 5 { call(0, &format!("{id}; {}; 'D{id}'; 0.1{id}; 3001", id % 2)) } else { String::new() };
        let customer = call(1, &format!("{id}; {}; {}; 'L{id}'; 2016-5-{}; {id}.50", id % 5, id % 2, id % 28 + 1));
        load += &process(id, &(district + &customer + &call(3, &format!("{id}; {}; {id}.25; 'info {id}'", id / 6))));
    }
    for number in 0..25 {
        let calls = [
            call(4, &format!("{}; {}", number % 5, number % 2)),
            call(5, &format!("{number}; {}; {}", number % 5, number % 2)),
            call(6, &format!("'M{number}'; 2017-1-{} 1:02:03; -{number}.75; {number}", number % 28 + 1)),
            call(5, &format!("{number}; {}; {}", number % 5, number % 2)),
            call(2, &format!("{number}; {}; 0; 'x'", number % 5)),
            call(3, &format!("{}; {}; 7.5; NULL", 100 + number, number % 7)),
            call(7, &(number % 7).to_string()),
            call(8, &format!("{}; {number}", number % 8)),
        ];
        run += &process(100 + number, &calls.concat());
    }
    let folder = place.path("orders");
    std::fs::create_dir_all(&folder).expect("a folder");
    let all = [
        ("schema", TABLES),
        ("operation", CALLS),
        ("param", &parameters),
        ("cparam", ""),
        ("load", &load),
        ("warm", ""),
        ("run", &run),
    ];
    for (name, content) in all {
        std::fs::write(folder.join(format!("orders_{name}")), content).expect("a file");
    }
}

#[test]
fn benchfoundrys_orders_return_the_same_on_mongodb_and_cassandra_as_on_sqlite() {
    let place = Workplace::new();
    write_orders(&place);
    place.run(&["trace", "import", "benchfoundry", "orders", "--closed-loop", "--log-results"]).succeeds();
    let expected = replay_of(&place, "orders.trace", "sqlite:a.db?synchronous=off", "lite");
    let stores = [("mongodb", mongodb()), ("cassandra", cassandra())];
    for (name, url) in stores.iter().filter_map(|(name, url)| Some((*name, url.as_ref()?))) {
        let file = format!("{name}.toml");
        place.run(&["trace", "physical", "orders.trace", "--for", name, "-o", &file]).succeeds();
        place.run(&["trace", "physical", "orders.trace", "--for", name, "--check", &file]).succeeds();
        let store = with_parameter(url, &format!("physical={}", place.path(&file).display()));
        assert_eq!(replay_of(&place, "orders.trace", &store, name), expected, "{name}");
        let same = place.run(&["analyze", "compare", "--results", "lite", name]).succeeds();
        assert!(same.contains("200 statements compared, 200 returned the same"), "{same}");
        // The run has the content of the file.
        let run: serde_json::Value =
            serde_json::from_slice(&std::fs::read(place.path(name).join("run.json")).expect("a file")).expect("JSON");
        let recorded = run["store_settings"]["physical_schema"].as_str().expect("a text");
        let written = std::fs::read_to_string(place.path(&file)).expect("a file");
        assert!(written.ends_with(recorded) && recorded.contains("ORDER-LINE"), "{recorded}");
    }
}

#[test]
fn a_custom_parameter_is_the_consistency_level_of_its_statement_on_cassandra() {
    let Some(url) = cassandra() else { return };
    let place = Workplace::new();
    let folder = place.path("levels");
    std::fs::create_dir_all(&folder).expect("a folder");
    // The keyspace has one replica, so three cannot answer.
    let operations = "process,statement,parameters,custom\n\
                      0,put,\"[1, 5]\",\n1,put,\"[2, 6]\",\"[\"\"ONE\"\"]\"\n2,put,\"[3, 7]\",\"[\"\"THREE\"\"]\"\n\
                      3,get,[1],\"[\"\"local_quorum\"\"]\"\n4,get,[1],\"[\"\"THREE\"\"]\"\n\
                      5,get,[1],\"[\"\"ANY\"\"]\"\n6,get,[1],\"[\"\"replica 2\"\"]\"\n";
    let statements = "statement,text,parameters\nput,\"INSERT INTO t (id, n) VALUES (?, ?)\",\"integer,integer\"\n\
                      get,SELECT n FROM t WHERE id = ?,integer\n";
    let schema = "CREATE TABLE t (id INT PRIMARY KEY, n INT);\n";
    for (name, text) in [("schema.sql", schema), ("statements.csv", statements), ("operations.csv", operations)] {
        std::fs::write(folder.join(name), text).expect("a file");
    }
    place.run(&["trace", "import", "table", "levels"]).succeeds();
    let shown = place.run(&["trace", "show", "levels.trace"]).succeeds();
    assert!(shown.contains("6 operations: ANY; ONE; THREE; local_quorum; replica 2"), "{shown}");
    let run = |store: &str, out: &str| {
        let run = ["replay", "run", "--trace", "levels.trace", "--store", store, "--threads", "1", "--load", "-o", out];
        place.run(&run)
    };
    // A store that knows no custom parameters says so.
    run("sqlite:a.db", "lite").succeeds();
    let summary = place.run(&["analyze", "summary", "lite"]).succeeds();
    let ignores = "ignores custom parameters, which 6 operations of the trace have (such as ONE)";
    assert!(summary.replace('\n', " ").contains(ignores), "{summary}");
    // What Cassandra cannot use is refused before anything is sent.
    let before = place.contents();
    run(&url, "refused")
        .fails(2, &["statement 1 of ", "ANY is a level of writes", "(1 operation)", "import the trace set again"]);
    assert_eq!(place.contents(), before);
    let kept = operations.lines().filter(|line| !line.contains("ANY") && !line.contains("replica"));
    std::fs::write(folder.join("operations.csv"), kept.map(|line| format!("{line}\n")).collect::<String>())
        .expect("a file");
    place.run(&["trace", "import", "table", "levels", "-o", "copies.trace"]).succeeds();
    let copies =
        ["replay", "run", "--trace", "copies.trace", "--store", &url, "--threads", "1", "--load", "-o", "copies"];
    place
        .run(&copies)
        .fails(2, &["THREE needs 3 copies of each row, and the keyspace has 1", "a custom parameter of statement 0"]);

    // A manifest lists 1,000 of them. Another one is refused when its operation comes.
    let name = |number: u32| -> String {
        let letter = |(place, letter): (usize, char)| {
            if number >> place & 1 == 1 { letter.to_ascii_uppercase() } else { letter }
        };
        "local_quorum".chars().filter(|letter| *letter != '_').enumerate().map(letter).collect()
    };
    let name = |number: u32| format!("{}_{}", &name(number)[..5], &name(number)[5..]);
    let levels = (0..1_000).map(name).chain(["replica 2".to_string()]);
    let rows = levels.enumerate().map(|(process, level)| format!("{process},get,[1],\"[\"\"{level}\"\"]\"\n"));
    let many = format!("process,statement,parameters,custom\n{}", rows.collect::<String>());
    std::fs::write(folder.join("operations.csv"), many).expect("a file");
    place.run(&["trace", "import", "table", "levels", "-o", "many.trace"]).succeeds();
    let replay = ["replay", "run", "--trace", "many.trace", "--store", &url, "--threads", "1", "--load", "-o", "run"];
    place.run(&replay).ends();
    let errors = "SELECT count(*), count(error), max(error) LIKE '%is not one of ONE%' FROM operations";
    assert_eq!(ask(&place, "run", errors), "1001,1,true");
}

#[test]
fn a_lightweight_transaction_counts_the_rows_that_it_has_found() {
    let Some(url) = cassandra() else { return };
    let place = Workplace::new();
    write_orders(&place);
    place.run(&["trace", "import", "benchfoundry", "orders", "--closed-loop"]).succeeds();
    let expected = replay_of(&place, "orders.trace", "sqlite:a.db?synchronous=off", "lite");
    assert_eq!(replay_of(&place, "orders.trace", &with_parameter(&url, "conditions=lwt"), "lwt"), expected);
    let same = place.run(&["analyze", "compare", "--results", "lite", "lwt"]).succeeds();
    assert!(same.contains("200 returned the same"), "{same}");
}

#[test]
fn a_damaged_file_is_refused_with_its_line_before_anything_starts() {
    let place = Workplace::new();
    write_orders(&place);
    place.run(&["trace", "import", "benchfoundry", "orders", "--closed-loop"]).succeeds();
    for (name, url) in [("mongodb", mongodb()), ("cassandra", cassandra())] {
        let text = place.run(&["trace", "physical", "orders.trace", "--for", name]).succeeds();
        let line = text.lines().position(|line| line.contains("\"C_SINCE\"")).expect("a line") + 1;
        let wrong = |text: &str, words: &[&str]| {
            std::fs::write(place.path("own.toml"), text).expect("a file");
            let check = ["trace", "physical", "orders.trace", "--for", name, "--check", "own.toml"];
            place.run(&check).fails(2, &[&["own.toml: "], words].concat());
            let Some(url) = &url else { return };
            let before = place.contents();
            let store = with_parameter(url, &format!("physical={}", place.path("own.toml").display()));
            let run =
                ["replay", "run", "--trace", "orders.trace", "--store", &store, "--threads", "1", "--load", "-o", "m"];
            place.run(&run).fails(2, &[&["own.toml: "], words].concat());
            assert_eq!(place.contents(), before);
        };
        let at = format!("line {line}: ");
        wrong(&text.replacen("\"C_SINCE\"", "\"C_SINSE\"", 1), &[&at, "\"C_SINSE\", which is no column", "C_BALANCE"]);
        wrong(&text.replacen("\"C_SINCE\", ", "", 1), &[&at, "add C_SINCE"]);
        wrong(&text.replacen("\"C_SINCE\"", "\"C_SINCE", 1), &[&at, "encore trace physical"]);
    }
}

#[test]
fn what_cassandra_cannot_do_is_refused_before_anything_starts() {
    let place = Workplace::new();
    write_shop(&place, &[]);
    place.run(&["trace", "import", "table", "shop"]).succeeds();
    place
        .run(&["trace", "physical", "shop.trace", "--for", "cassandra"])
        .fails(2, &["table PAID-BY has no primary key"]);
    let keyed = SCHEMA.replace("note VARCHAR(20))", "note VARCHAR(20), PRIMARY KEY (who))");
    std::fs::write(place.path("shop").join("schema.sql"), keyed).expect("a file");
    std::fs::remove_dir_all(place.path("shop.trace")).expect("a folder");
    place.run(&["trace", "import", "table", "shop"]).succeeds();
    let words =
        ["(pay) computes balance from the row", "(rich) has the condition name <>", "(sum) reads table PAID-BY by no"];
    place.run(&["trace", "physical", "shop.trace", "--for", "cassandra"]).fails(2, &words);
    let Some(url) = cassandra() else { return };
    let before = place.contents();
    let args = ["replay", "run", "--trace", "shop.trace", "--store", &url, "--threads", "1", "--load", "-o", "m"];
    place.run(&args).fails(2, &words);
    assert_eq!(place.contents(), before);
}

/// Four transactions of TPC-C, with two warehouses, so that some transactions are remote.
const TPCC: &str = "name = 'tpcc'\nfamily = 'tpcc'\nseed = 5\nsessions = 150\n[data]\nwarehouses = 2\nitems = 100\n\
                    customers = 30\n[mix]\nnew_order = 42\npayment = 40\norder_status = 9\ndelivery = 9\nstock_level = 0\n";

#[test]
fn four_transactions_of_tpcc_return_the_same_on_mongodb_as_on_sqlite() {
    let place = Workplace::new();
    std::fs::write(place.path("tpcc.toml"), TPCC).expect("a file");
    place.run(&["trace", "gen", "tpcc.toml", "-o", "tpcc.trace"]).succeeds();
    let all = TPCC.replace("delivery = 9", "delivery = 5").replace("stock_level = 0", "stock_level = 4");
    std::fs::write(place.path("all.toml"), all).expect("a file");
    place.run(&["trace", "gen", "all.toml", "-o", "all.trace"]).succeeds();
    let refused = ["1 statement cannot be mapped", "(stock level: low stock) joins tables"];
    place.run(&["trace", "physical", "all.trace", "--for", "mongodb"]).fails(2, &refused);
    let Some(url) = mongodb() else { return };
    let expected = replay_of(&place, "tpcc.trace", "sqlite:a.db?synchronous=off", "lite");
    assert_eq!(replay_of(&place, "tpcc.trace", &url, "mongo"), expected);
    let same = place.run(&["analyze", "compare", "--results", "lite", "mongo"]).succeeds();
    assert!(same.contains("returned the same"), "{same}");
    let said = place.run(&["analyze", "validate", "mongo"]).succeeds();
    assert!(said.contains("no condition was checked, since the store cannot"), "{said}");
    assert!(said.contains("this store cannot check the consistency conditions"), "{said}");
}
