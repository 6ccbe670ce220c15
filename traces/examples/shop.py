"""Writes the tables of a small shop for `encore trace import table`: python3 shop.py FOLDER"""
import csv, json, os, random, sys

chance, folder, steps = random.Random(7), sys.argv[1], []
os.makedirs(folder, exist_ok=True)
with open(os.path.join(folder, "schema.sql"), "w") as file:
    file.write("""CREATE TABLE product (id INT PRIMARY KEY, price DECIMAL(8, 2), stock INT);
CREATE TABLE counter (name VARCHAR(10) PRIMARY KEY, next_id INT);
CREATE TABLE orders (id INT PRIMARY KEY, product INT, pieces INT);""")
statements = {"add product": "INSERT INTO product (id, price, stock) VALUES (?, ?, ?)",
              "add counter": "INSERT INTO counter (name, next_id) VALUES (?, ?)",
              "look": "SELECT price, stock FROM product WHERE id = ?",
              "next order": "SELECT next_id FROM counter WHERE name = ?",
              "count up": "UPDATE counter SET next_id = next_id + 1 WHERE name = ?",
              "take": "UPDATE product SET stock = stock - ? WHERE id = ?",
              "order": "INSERT INTO orders (id, product, pieces) VALUES (?, ?, ?)"}
preload = [["add product", [n, n + 0.5, 1000]] for n in range(100)] + [["add counter", ["orders", 1]]]
for process in range(500):  # A step is: process, due_us, statement, parameters.
    product, pieces = chance.randrange(100), chance.randint(0, 2)
    transaction = [["begin"], ["next order", "orders"], ["count up", "orders"], ["take", pieces, product],
                   # Step 2 of the process has read the number of the order.
                   ["order", {"step": 2, "column": 0, "type": "integer"}, product, pieces], ["commit"]] if pieces else []
    steps += [[process, process * 2000, name, values] for name, *values in [["look", product], *transaction]]
for table, header, rows in [("statements", ["statement", "text"], statements.items()),
                            ("preload", ["statement", "parameters"], preload),
                            ("operations", ["process", "due_us", "statement", "parameters"], steps)]:
    with open(os.path.join(folder, table + ".csv"), "w", newline="") as file:
        written = lambda value: (json.dumps(value) if value else "") if isinstance(value, list) else value
        csv.writer(file).writerows([header, *(map(written, row) for row in rows)])
