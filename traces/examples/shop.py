"""Writes the tables of a small shop for `encore trace import table`: python3 shop.py FOLDER"""
import csv, json, os, random, sys

chance, folder = random.Random(7), sys.argv[1]
os.makedirs(folder, exist_ok=True)

def table(name, header, rows):
    with open(os.path.join(folder, name + ".csv"), "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])

with open(os.path.join(folder, "schema.sql"), "w") as file:
    file.write("""CREATE TABLE product (id INT PRIMARY KEY, name VARCHAR(20), price DECIMAL(8, 2), stock INT);
CREATE TABLE counter (name VARCHAR(10) PRIMARY KEY, next_id INT);
CREATE TABLE orders (id INT PRIMARY KEY, product INT, pieces INT, day DATE);""")
table("statements", ["statement", "text", "parameters"], [
    ["add product", "INSERT INTO product (id, name, price, stock) VALUES (?, ?, ?, ?)", "integer,text,decimal,integer"],
    ["add counter", "INSERT INTO counter (name, next_id) VALUES (?, ?)", "text,integer"],
    ["look", "SELECT name, price, stock FROM product WHERE id = ?", "integer"],
    ["next order", "SELECT next_id FROM counter WHERE name = ?", "text"],
    ["count up", "UPDATE counter SET next_id = next_id + 1 WHERE name = ?", "text"],
    ["take", "UPDATE product SET stock = stock - ? WHERE id = ?", "integer,integer"],
    ["order", "INSERT INTO orders (id, product, pieces, day) VALUES (?, ?, ?, ?)", "integer,integer,integer,date"]])
table("preload", ["statement", "parameters"],
      [["add product", json.dumps([n, f"product {n}", 0.5 + n, 1000])] for n in range(100)] +
      [["add counter", json.dumps(["orders", 1])]])
steps = []  # A row is a step: process, kind, due_us, think_us, statement, parameters.
for process in range(500):
    kind, due_us, product = chance.choice(["browse", "buy"]), process * 2000, chance.randrange(100)
    add = lambda statement, *values, think_us=0: steps.append(
        [process, kind, due_us, think_us, statement, json.dumps(values) if values else ""])
    add("look", product)
    if kind == "buy":  # The order has the number that its second statement has read, which is step 2.
        pieces, number = chance.randint(1, 3), {"step": 2, "column": 0, "row": "first", "type": "integer"}
        add("begin", think_us=1000)
        add("next order", "orders")
        add("count up", "orders")
        add("take", pieces, product)
        add("order", number, product, pieces, "2026-03-01")
        add("commit")
table("operations", ["process", "kind", "due_us", "think_us", "statement", "parameters"], steps)
