#!/usr/bin/env python3
"""Holds deploy/spark against one machine: the same bytes, verdicts and rows, however the tasks are spread.

    python3 test_encore_spark.py                    two small runs and the command line, on two executors
    python3 test_encore_spark.py --runs 100 --seed 7    so many runs drawn by seed

Takes the program from ENCORE, or from PATH. A run that differs is named by its seed.
"""

from __future__ import annotations

import argparse
import base64
import filecmp
import hmac
import http.client
import importlib.util
import json
import os
import random
import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
TRACES = HERE.parent.parent / "traces"
ENCORE = shutil.which(os.environ.get("ENCORE", "encore")) or os.environ.get("ENCORE", "encore")
MASTER = "local-cluster[2,1,1024]"
CACHE = Path(os.environ.get("ENCORE_CACHE") or Path.home() / ".cache" / "encore")
#: The jars of an S3 server, and of Hadoop's client of S3.
S3_SERVER = CACHE / "s3proxy-2.7.0"
HADOOP_AWS = CACHE / "hadoop-aws-3.4.1"
sys.path.insert(0, str(HERE))

from encore_on_spark import EncoreError, definitions, dialect, errors, folders, printing, register, tasks  # noqa: E402


def needs(what: str, *places: Path) -> None:
    """Skips a test whose parts are not on this machine; where tests/run installs them, it fails."""
    lacking = [str(place) for place in places if not place.exists()]
    if not lacking:
        return
    message = f"{what} is missing: {', '.join(lacking)}"
    if os.environ.get("ENCORE_TEST_SERVERS") == "required":
        raise AssertionError(f"{message}; `tests/run` installs it")
    raise unittest.SkipTest(message)


def encore(*arguments: object, codes: tuple[int, ...] = (0,)) -> str:
    """Runs the program on this machine and returns what it printed."""
    done = subprocess.run([ENCORE, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode not in codes:
        raise AssertionError(f"encore {' '.join(map(str, arguments))}: code {done.returncode}: {done.stderr or done.stdout}")
    return done.stdout


def connect(**settings: str):
    """A session on two executor processes."""
    from pyspark.sql import SparkSession

    fixed = {
        "spark.master": MASTER,
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        # Runs are small: compiling a query would take longer than its answer.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    builder = SparkSession.builder.appName("test")
    for name, value in {**fixed, **settings}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    errors.silence(spark)
    return spark


class Draw:
    """A workload, a store and how it is replayed, all drawn from one seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        chance = random.Random(seed)
        self.chance = chance
        self.family = chance.choice(["social", "social", "kv", "kv", "kv", "economy", "transactions", "consbench", "tpcc"])
        self.fragments = 1 if self.family == "tpcc" else chance.choice([1, 2, 3, 5, 8])
        stale = f"stale={chance.choice(['0', '0.01', '0.05'])}&error={chance.choice(['0', '0.005'])}"
        faulty = f"memory:?{stale}&latency_us={chance.choice([0, 50, 200])}"
        isolation = chance.choice(["none", "read-uncommitted&write_locks=off", "read-committed", "serializable"])
        transacting = f"memory:?isolation={isolation}&latency_us=50"
        spec, sizes, sessions, stores = {
            "social": (chance.choice(["quickstart", "bg-sessions"]), {"data.members": chance.choice([200, 600])}, (500, 6000), [faulty, faulty, "null:", "sqlite:"]),
            "kv": (f"ycsb-{chance.choice('abdef')}", {"data.records": chance.choice([100, 1000])}, (500, 5000), [faulty, faulty, "null:", "sqlite:"]),
            "economy": ("economy", {"data.records": 300}, (500, 3000), [transacting, "sqlite:"]),
            "transactions": ("transactions", {"data.records": 200}, (500, 3000), [transacting, "sqlite:"]),
            "consbench": ("golden-consbench", {}, None, [faulty]),
            "tpcc": ("tpcc", {}, (50, 200), ["null:", "sqlite:"]),
        }[self.family]  # fmt: skip
        # A fragment of `social` needs more than 40 members, and one of consbench time between its writes.
        if self.family == "social":
            self.fragments = min(self.fragments, sizes["data.members"] // 50)
        if self.family == "consbench":
            self.fragments = max(self.fragments, 2)
        self.spec = TRACES / f"{spec}.toml"
        self.settings = [f"{key}={value}" for key, value in sizes.items()] + [f"seed={chance.randrange(1 << 30)}"]
        if self.family != "tpcc":
            self.settings.append(f"fragments={self.fragments}")
        if sessions:
            self.settings.append(f"sessions={chance.randint(*sessions)}")
        if self.family == "kv" and chance.random() < 0.3:
            self.settings.append('sla="95% < 100ms, 95% gamma < 5ms, 5% unpredictable, 5s"')
        self.store = chance.choice(stores)
        self.replay = ["-T", str(chance.randint(1, 12))]
        if self.family in ("social", "kv") and chance.random() < 0.3:
            self.replay += ["--rate", str(chance.choice([2000, 8000]))]
        if self.family != "consbench" and chance.random() < 0.5:
            self.replay += ["--warmup", "50"]
        if self.family in ("economy", "transactions"):
            self.replay += ["--tries", str(chance.randint(1, 3))]
        self.experiments = 2 if self.family != "tpcc" and chance.random() < 0.3 else 1

    def __str__(self) -> str:
        settings = " ".join(self.settings)
        return f"seed {self.seed}: {self.spec.stem} {settings}, {self.store} {' '.join(self.replay)}, {self.experiments} experiments"

    def set_flags(self) -> list[str]:
        """The settings as flags of `encore trace gen`."""
        return [flag for each in self.settings for flag in ("--set", each)]

    def make(self, folder: Path) -> tuple[Path, Path]:
        """The trace set and the run, which is not analyzed, as one machine makes them."""
        trace, run = folder / "one.trace", folder / "run"
        encore("trace", "gen", self.spec, *self.set_flags(), "-o", trace)
        store = f"sqlite:{folder}/store.db" if self.store == "sqlite:" else self.store
        for _ in range(self.experiments):
            encore("replay", "run", "--trace", trace, "--load", "--store", store, *self.replay, "-o", run)
        return trace, run


def files(folder: Path) -> dict[str, Path]:
    """The files of a folder by their paths in it, without hidden ones."""
    all_of = (path for path in folder.rglob("*") if path.is_file())
    named = {path.relative_to(folder): path for path in all_of}
    return {str(name): path for name, path in named.items() if not any(part.startswith(".") for part in name.parts)}


def same_files(one: Path, other: Path, which: str = "") -> list[str]:
    """The files of one folder that are missing or different in another."""
    expected, found = files(one), files(other)
    wanted = {name for name in expected if name.startswith(which)}
    missing = [f"{name} is missing" for name in sorted(wanted - found.keys())]
    return missing + [f"{name} differs" for name in sorted(wanted & found.keys()) if not filecmp.cmp(expected[name], found[name], False)]


def shuffled(seed: int):
    """`tasks.spread` with the units in a random order, and one of them twice: at the same time, if it can be."""
    spread, chance = tasks.spread, random.Random(seed)

    def in_any_order(spark, binary, units, number, files=None):
        mixed = [*units, chance.choice(units)] if units else []
        chance.shuffle(mixed)
        return spread(spark, binary, mixed, number, files)

    return mock.patch.object(tasks, "spread", in_any_order)


def kills(folder: Path, victim: str, after_ms: int, times: int = 1) -> str:
    """The program, but the first units of work are killed in the middle: the program itself, the Python process of its
    task, or the whole executor."""
    script = folder / f"encore-{victim}"
    kill = {
        "program": "kill -9 $child; kill -9 $$",
        "task": "kill -9 $child; kill -9 $PPID; sleep 60",
        "executor": "kill -9 $child; kill -9 $(ps -o ppid= -p $(ps -o ppid= -p $PPID)); sleep 60",
    }[victim]
    script.write_text(
        "#!/bin/bash\n"
        'if [[ " $* " == *" --only-fragments "* || " $* " == *" fragment "* ]]; then\n'
        f"    for time in {{1..{times}}}; do\n"
        f'        mkdir "{folder}/{victim}.$time" 2>/dev/null || continue\n'
        f'        "{ENCORE}" "$@" & child=$!\n        sleep {after_ms / 1000}\n'
        # Whether it was still at work.
        f'        kill -0 $child 2>/dev/null && touch "{folder}/{victim}.hit"\n        {kill}\n    done\n'
        f'fi\nexec "{ENCORE}" "$@"\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(script)


def check_trace(spark, draw: Draw, folder: Path, trace: Path, number: int, binary: str = ENCORE) -> None:
    """Generated in so many tasks, a trace set has the same files."""
    made = folder / f"{number}.trace"
    with shuffled(draw.seed):
        tasks.generate(spark, binary, str(draw.spec), str(made), number, tuple(draw.set_flags()))
    expect(not (made / "parts").exists(), f"{made}: parts are left")
    found = same_files(trace, made) + same_files(made, trace)
    expect(not found, f"{draw}\n{number} tasks: {found}")
    shutil.rmtree(made)


def check_verdicts(spark, draw: Draw, folder: Path, run: Path, one: Path, number: int, binary: str = ENCORE) -> None:
    """Analyzed in so many tasks, a run has the same verdicts and sealed tables."""
    copy = folder / f"run-{number}"
    shutil.copytree(run, copy)
    with shuffled(draw.seed):
        tasks.analyze(spark, binary, str(copy), tasks=number)
    for name in ("operations", "unpredictable", "closing_reads"):
        found = same_files(one, copy, name) + same_files(copy, one, name)
        expect(not found, f"{draw}\n{number} tasks: {found}")
    for verdict in sorted(one.glob("experiments/*/verdict.json")):
        own = copy / verdict.relative_to(one)
        expect(own.exists() and own.read_bytes() == verdict.read_bytes(), f"{draw}\n{number} tasks: {own} differs")
    shutil.rmtree(copy)


def check_views(spark, draw: Draw | str, run: Path) -> int:
    """Each view has the rows of DuckDB's, to the last digit. Returns how many views there are."""
    views = register(spark, str(run), binary=ENCORE)
    expect(not views.missing, f"{draw}\n{views.missing}")
    text = encore("analyze", "sql", run, "--definitions")
    defined = definitions.parse(text)
    names = [*defined.tables, *(name for name, own in defined.views.items() if own.startswith("CREATE VIEW"))]
    expect(sorted(names) == sorted(views.frames), f"{draw}\n{names} are not {list(views.frames)}")

    # All of them at once: a process for each view would take most of the time.
    lists = ", ".join(f"(SELECT list(t) FROM {name} AS t) AS {name}" for name in names)
    rows = json.loads(encore("analyze", "sql", run, f"SELECT {lists}", "--format", "json"))[0]
    columns = described(run)

    def differs(name: str) -> str | None:
        expected, found = rows[name] or [], json.loads(printing.printed(views.frames[name], "json"))
        if expected and list(views.frames[name].columns) != columns[name]:
            return f"{name}: the columns are {views.frames[name].columns}, not {columns[name]}"
        expected, found = (sorted(json.dumps(row, sort_keys=True) for row in rows) for rows in (expected, found))
        if expected == found:
            return None
        lacks = next((row for row in expected if row not in set(found)), None)
        has = next((row for row in found if row not in set(expected)), None)
        return f"{name}: {len(found)} rows, {len(expected)} in DuckDB; DuckDB has {lacks}; Spark has {has}"

    with ThreadPoolExecutor(3) as pool:
        found = [answer for answer in pool.map(differs, views.frames) if answer]
    expect(not found, f"{draw}\n" + "\n".join(found))
    return len(views.frames)


def documented() -> list[str]:
    """The statements of the documentation, with all of their rows."""
    texts = [(TRACES.parent / "docs/src" / page).read_text(encoding="utf-8") for page in ("how-to/sql-cookbook.md", "reference/views.md")]
    blocks = [block for text in texts for block in re.findall(r"^```sql\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)]
    statements = [statement for block in blocks for statement in re.sub(r"^--.*$", "", block, flags=re.MULTILINE).split(";")]
    plain = (" ".join(statement.split()) for statement in statements if statement.strip())
    # Which of several equal rows are the first few is left to the engine.
    return [re.sub(r" LIMIT \d+$", "", statement) for statement in plain]


def described(run: Path) -> dict[str, list[str]]:
    """The columns that the views of DuckDB have."""
    statement = "SELECT table_name AS view, list(column_name ORDER BY column_index) AS columns FROM duckdb_columns() GROUP BY view"
    rows = json.loads(encore("analyze", "sql", run, statement, "--format", "json"))
    return {row["view"]: row["columns"] for row in rows}


def expect(condition: bool, message: str) -> None:
    """Fails with a message."""
    if not condition:
        raise AssertionError(message)


def check(spark, draw: Draw, numbers: tuple[int, ...]) -> None:
    """All of it, for one draw."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trace, run = draw.make(folder)
        one = folder / "one"
        shutil.copytree(run, one)
        encore("analyze", "summary", one, codes=(0, 1, 3))
        for number in numbers:
            check_trace(spark, draw, folder, trace, number)
            check_verdicts(spark, draw, folder, run, one, number)
        check_views(spark, draw, one)


class OnTwoExecutors(unittest.TestCase):
    """Two small runs on two executor processes."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.spark = connect()
        cls.folder = Path(tempfile.mkdtemp())
        cls.draw = fixed(1, "kv", 3, "memory:?stale=0.02&error=0.005&latency_us=50", ["-T", "6", "--rate", "8000"], 1500)
        cls.trace, cls.run_folder = cls.draw.make(cls.folder)
        cls.one = cls.folder / "one"
        shutil.copytree(cls.run_folder, cls.one)
        encore("analyze", "summary", cls.one, codes=(0, 1, 3))

    @classmethod
    def tearDownClass(cls) -> None:
        cls.spark.stop()
        shutil.rmtree(cls.folder)

    def test_any_number_of_tasks_in_any_order_gives_the_same(self) -> None:
        for number in (1, 2, 16):
            check_trace(self.spark, self.draw, self.folder, self.trace, number)
            check_verdicts(self.spark, self.draw, self.folder, self.run_folder, self.one, number)

    def test_a_task_that_is_killed_is_repeated(self) -> None:
        for victim in ("program", "task", "executor"):
            for check_it, made in ((check_trace, (self.trace,)), (check_verdicts, (self.run_folder, self.one))):
                with self.subTest(victim=victim, what=check_it.__name__):
                    # On a fast machine, the first kills come when the work is done.
                    for after_ms in (15, 5, 2, 0):
                        place = Path(tempfile.mkdtemp(dir=self.folder))
                        binary = kills(place, victim, after_ms)
                        check_it(self.spark, self.draw, self.folder, *made, 2, binary=binary)
                        if (place / f"{victim}.hit").exists():
                            break
                    else:
                        self.fail("no kill came in the middle")

    def test_a_task_that_is_killed_each_time_leaves_nothing_that_looks_whole(self) -> None:
        place, made = Path(tempfile.mkdtemp(dir=self.folder)), self.folder / "killed.trace"
        binary = kills(place, "program", after_ms=5, times=99)
        generate = (str(self.draw.spec), str(made), 2, tuple(self.draw.set_flags()))
        with self.assertRaisesRegex(EncoreError, r"^fragments 0 to 0|^fragments 1 to 2"):
            tasks.generate(self.spark, binary, *generate)
        self.assertFalse((made / "manifest.json").exists())
        copy = self.folder / "killed"
        shutil.copytree(self.run_folder, copy)
        with self.assertRaisesRegex(EncoreError, r"^experiment 1, fragment \d"):
            tasks.analyze(self.spark, binary, str(copy))
        self.assertEqual(list(copy.glob("experiments/*/verdict.json")), [])
        # The same commands again end the work.
        tasks.generate(self.spark, ENCORE, *generate)
        self.assertEqual(same_files(self.trace, made) + same_files(made, self.trace), [])
        tasks.analyze(self.spark, ENCORE, str(copy))
        self.assertEqual(same_files(self.one, copy, "operations") + same_files(copy, self.one, "operations"), [])

    def test_views_have_the_rows_of_duckdb(self) -> None:
        self.assertGreater(check_views(self.spark, self.draw, self.one), 25)
        social = fixed(2, "social", 2, "memory:?stale=0.02", ["-T", "4"], 800)
        with tempfile.TemporaryDirectory() as name:
            _, run = social.make(Path(name))
            encore("analyze", "summary", run, codes=(0, 1, 3))
            check_views(self.spark, social, run)
            # Both runs at once.
            register(self.spark, str(run), str(self.one), binary=ENCORE)
            counted = self.spark.sql("SELECT run, count(*) AS n FROM operations GROUP BY run ORDER BY run").collect()
            expected = [json.loads(encore("analyze", "sql", each, "SELECT count(*) AS n FROM operations", "--format", "json"))[0]["n"] for each in (self.one, run)]
            self.assertEqual([(row["run"], row["n"]) for row in counted], [("one", expected[0]), ("run", expected[1])])

    def test_the_sql_of_the_documentation_runs(self) -> None:
        """Each statement of the cookbook and of the views' page that DuckDB answers has the same answer here."""
        translator = importlib.util.find_spec("sqlglot")
        needs("sqlglot", Path(translator.origin if translator else "sqlglot"))
        draw = fixed(4, "social", 2, "memory:?stale=0.05&error=0.002&latency_us=50", ["-T", "4"], 1500)
        with tempfile.TemporaryDirectory() as name:
            _, run = draw.make(Path(name))
            encore("analyze", "summary", run, codes=(0, 1, 3))
            views, answered = register(self.spark, str(run), binary=ENCORE), 0
            for statement in documented():
                with self.subTest(statement=statement):
                    done = subprocess.run([ENCORE, "analyze", "sql", run, statement, "--format", "json"], capture_output=True, text=True)
                    if "does not exist" in done.stderr:
                        # A view that only comparisons or other families have.
                        continue
                    self.assertEqual(done.returncode, 0, done.stderr)
                    found = json.loads(printing.printed(views.sql(dialect.from_duckdb(statement)), "json"))
                    self.assertEqual(*(sorted(json.dumps(row, sort_keys=True) for row in rows) for rows in (found, json.loads(done.stdout))))
                    answered += 1
            self.assertGreater(answered, 20)

    def test_a_url_of_a_folder_is_read(self) -> None:
        question = "SELECT count(*), max(response_ns) FROM operations"
        answers = [register(self.spark, run, binary=ENCORE).sql(question).collect() for run in (str(self.one), self.one.as_uri())]
        self.assertEqual(answers[0], answers[1])

    def test_a_table_that_is_missing_or_cut_is_refused(self) -> None:
        copy = self.folder / "cut"
        shutil.copytree(self.one, copy)
        table = copy / "operations/experiment=1/fragment=1/part-0.parquet"
        content = table.read_bytes()
        table.write_bytes(content[:-1])
        wrong = f"^{copy}/operations/experiment=1/fragment=1/part-0.parquet: has {len(content) - 1} bytes instead of {len(content)}; run `.* --experiment 1`"
        with self.assertRaisesRegex(EncoreError, wrong):
            register(self.spark, str(copy), binary=ENCORE)
        table.unlink()
        with self.assertRaisesRegex(EncoreError, "part-0.parquet: is missing; run `encore_spark.py analyze .* --experiment 1`"):
            register(self.spark, str(copy), binary=ENCORE)
        # What the message says ends the trouble.
        tasks.analyze(self.spark, ENCORE, str(copy), experiment=1)
        self.assertEqual(table.read_bytes(), content)
        self.assertEqual(register(self.spark, str(copy), binary=ENCORE).missing, {})

    def test_a_url_without_its_client_is_refused(self) -> None:
        for scheme, package in (("s3", "hadoop-aws:3"), ("gs", "gcs-connector:")):
            with self.assertRaisesRegex(EncoreError, f"^{scheme}://b/r: this Spark cannot read {scheme}://; add .*{package}"):
                folders.for_spark(self.spark, f"{scheme}://b/r")

    def test_an_analyzed_experiment_is_left_as_it_is(self) -> None:
        copy = self.folder / "copy"
        shutil.copytree(self.one, copy)
        self.assertEqual(json.loads(tasks.analyze(self.spark, ENCORE, str(copy))), [])
        with self.assertRaisesRegex(EncoreError, "no experiment 7"):
            tasks.analyze(self.spark, ENCORE, str(copy), experiment=7)

    def test_a_missing_program_is_an_error_of_one_line(self) -> None:
        with self.assertRaises(EncoreError) as caught:
            tasks.spread(self.spark, "/nowhere/encore", [("fragment 0", ["--version"])], 1)
        self.assertRegex(str(caught.exception), r"^fragment 0 on \S+: cannot start /nowhere/encore: not among .*; ship it with --ship")
        self.assertNotIn("\n", str(caught.exception))

    def test_what_a_task_prints_comes_back_once(self) -> None:
        units = [("fragment 0", ["analyze", "summary", "/nowhere"])]
        with self.assertRaises(EncoreError) as caught:
            tasks.spread(self.spark, ENCORE, units * 2, 2)
        self.assertRegex(str(caught.exception), r"^fragment 0: /nowhere/run.json: .*\(1 more tasks failed too\)$")

    def test_a_view_that_is_not_known_says_so(self) -> None:
        real = definitions.parse
        changed = lambda text: real(text.replace("AS duration_ns", "+ 1 AS duration_ns"))  # noqa: E731
        with mock.patch.object(definitions, "parse", changed):
            views = register(self.spark, str(self.one), binary=ENCORE)
        self.assertEqual(list(views.missing), ["sessions"])
        with self.assertRaisesRegex(EncoreError, "view sessions cannot be had on Spark: this version of the program"):
            views.sql("SELECT * FROM sessions")


class ObjectStorage:
    """A server of S3 on loopback, with a bucket: the jars that tests/run installs."""

    def __init__(self, bucket: str = "encore") -> None:
        self.bucket = bucket
        self.folder = tempfile.TemporaryDirectory()
        root = Path(self.folder.name)
        (root / "data" / bucket).mkdir(parents=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.endpoint = f"http://127.0.0.1:{free.getsockname()[1]}"
        settings = {
            "s3proxy.endpoint": self.endpoint, "s3proxy.authorization": "aws-v2-or-v4", "s3proxy.identity": "encore",
            "s3proxy.credential": "hush", "jclouds.provider": "filesystem-nio2", "jclouds.identity": "none",
            "jclouds.credential": "none", "jclouds.filesystem.basedir": str(root / "data"),
        }  # fmt: skip
        (root / "s3proxy.properties").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        java = shutil.which("java", path=os.path.join(os.environ.get("JAVA_HOME", ""), "bin")) or "java"
        command = [java, "-Xmx256m", "-XX:+UseSerialGC", f"-Djava.io.tmpdir={root}", "-cp", f"{S3_SERVER}/*"]
        command += ["org.gaul.s3proxy.Main", "--properties", str(root / "s3proxy.properties")]
        self.process = subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.variables = {
            "AWS_ENDPOINT_URL": self.endpoint, "AWS_ACCESS_KEY_ID": "encore", "AWS_SECRET_ACCESS_KEY": "hush", "AWS_REGION": "us-east-1",
        }  # fmt: skip
        host, port = self.endpoint.removeprefix("http://").split(":")
        while True:
            try:
                socket.create_connection((host, int(port)), 1).close()
                return
            except OSError:
                if self.process.poll() is not None:
                    raise AssertionError("the S3 server does not start") from None
                time.sleep(0.05)

    def files(self, name: str) -> Path:
        """The server keeps objects as files."""
        return Path(self.folder.name) / "data" / self.bucket / name

    def upload(self, folder: Path, name: str) -> None:
        """Copies a folder into the bucket, with the old way of signing."""
        for file in files(folder):
            path, date = f"/{self.bucket}/{name}/{file}", formatdate(usegmt=True)
            signed = hmac.digest(b"hush", f"PUT\n\n\n{date}\n{path}".encode(), "sha1")
            headers = {"Date": date, "Authorization": f"AWS encore:{base64.b64encode(signed).decode()}"}
            client = http.client.HTTPConnection(self.endpoint.removeprefix("http://"))
            client.request("PUT", path, (folder / file).read_bytes(), headers)
            expect(client.getresponse().status == 200, path)
            client.close()

    def close(self) -> None:
        """Ends the server."""
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()


class InObjectStorage(unittest.TestCase):
    """The program as a user types it, on two executors that share nothing but a bucket."""

    @classmethod
    def setUpClass(cls) -> None:
        needs("S3Proxy", S3_SERVER)
        cls.store = ObjectStorage()
        cls.place = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.place.name)
        cls.draw = fixed(3, "kv", 3, "memory:?stale=0.02&latency_us=50", ["-T", "4"], 900)
        cls.trace, cls.run_folder = cls.draw.make(cls.folder)
        cls.one = cls.folder / "one"
        shutil.copytree(cls.run_folder, cls.one)
        encore("analyze", "summary", cls.one, codes=(0, 1, 3))
        # The trace set that the plan names is not there any more.
        cls.trace = cls.trace.rename(cls.folder / "aside.trace")

    @classmethod
    def tearDownClass(cls) -> None:
        cls.store.close()
        cls.place.cleanup()

    def typed(self, *arguments: object, code: int = 0, **variables: str) -> str:
        command = [sys.executable, str(HERE / "encore_spark.py"), "--master", MASTER, "--binary", ENCORE, *map(str, arguments)]
        # Not the folder with the specification.
        done = subprocess.run(command, capture_output=True, text=True, cwd="/", env={**os.environ, **self.store.variables, **variables})
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr if code else done.stdout

    def test_a_trace_set_and_a_run_live_there(self) -> None:
        trace, run = "s3://encore/one.trace", "s3://encore/runs/one"
        self.typed("generate", self.draw.spec, *self.draw.set_flags(), "--output", trace, "--tasks", 2)
        made = self.store.files("one.trace")
        self.assertEqual(same_files(self.trace, made) + same_files(made, self.trace), [])

        there = self.store.files("runs/one")
        self.store.upload(self.run_folder, "runs/one")
        self.typed("analyze", run, "--trace", trace)
        for name in ("operations", "unpredictable", "closing_reads", "experiments/0001-T4/verdict.json"):
            self.assertEqual(same_files(self.one, there, name) + same_files(there, self.one, name), [])

        question = "SELECT operation, count(*) AS n, max(response_ns) AS longest FROM operations GROUP BY ALL ORDER BY ALL"
        self.assertRegex(self.typed("sql", run, question, code=2), r"cannot read s3://; add .*hadoop-aws:3")
        needs("Hadoop's client of S3", HADOOP_AWS)
        client = [f"spark.{which}.extraClassPath={HADOOP_AWS}/*" for which in ("driver", "executor")]
        flags = [flag for each in client for flag in ("--conf", each)]
        found = json.loads(self.typed(*flags, "sql", run, question, "--format", "json"))
        self.assertEqual(found, json.loads(encore("analyze", "sql", self.one, question, "--format", "json")))

    def test_what_is_wrong_is_said_before_a_task_starts(self) -> None:
        for run, words in (("s3://nowhere/run", "there is no bucket nowhere"), ("s3://encore/other", "run.json")):
            said = self.typed("analyze", run, code=2)
            self.assertRegex(said.strip().splitlines()[-1], f"^error: {run}.*{words}")
        said = self.typed("generate", self.draw.spec, "--output", "s3://nowhere/one.trace", code=2)
        self.assertRegex(said.strip().splitlines()[-1], "^error: fragments 0 to .*s3://nowhere.*there is no bucket nowhere")
        said = self.typed("analyze", "s3://encore/runs/one", code=2, AWS_SECRET_ACCESS_KEY="wrong")
        self.assertRegex(said.strip().splitlines()[-1], "^error: .*s3://encore.*the store refuses these credentials")


class CommandLine(unittest.TestCase):
    """The program as a user types it."""

    def typed(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(HERE / "encore_spark.py"), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True)

    def test_help_has_examples(self) -> None:
        for command in ([], ["generate"], ["analyze"], ["sql"]):
            done = self.typed(*command, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn("examples:\n  spark-submit encore_spark.py", done.stdout)

    def test_a_wrong_run_is_an_error_of_one_line(self) -> None:
        done = self.typed("--master", "local[1]", "--binary", ENCORE, "sql", "/nowhere", "SELECT 1")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr.strip().splitlines()[-1], "^error: /nowhere/run.json: .*is this a run folder")


class Definitions(unittest.TestCase):
    """What is read of DuckDB's statements."""

    def test_statements_end_outside_of_quotes_and_comments(self) -> None:
        text = "-- it's; so\nCREATE VIEW a AS\n  SELECT ';--' AS \"b;\";\nCREATE TABLE t (a BIGINT, \"b\" VARCHAR[]);"
        found = definitions.parse(text)
        self.assertEqual(found.views, {"a": "CREATE VIEW a AS SELECT ';--' AS \"b;\""})
        self.assertEqual(found.tables, {"t": [("a", "BIGINT"), ("b", "VARCHAR[]")]})

    def test_a_digest_does_not_depend_on_the_folder_of_the_run(self) -> None:
        of = lambda path: definitions.digest(f"CREATE VIEW a AS SELECT * FROM read_parquet({path}, x = true)")  # noqa: E731
        self.assertEqual(of("'/a/*'"), of("'/it''s/*'"))
        self.assertEqual(of("['/a', '/b']"), of("['/c']"))
        self.assertEqual(definitions.files("FROM read_parquet(['/a[[]b', '/it''s'])"), ["/a[b", "/it's"])

    def test_lists_of_structs_are_unnested(self) -> None:
        text = "CREATE VIEW a AS SELECT b, unnest(CASE c WHEN 'x' THEN [{item: 'y', owner: \"comment\", element: NULL::BIGINT}] END, recursive := true) FROM d"
        expected = "SELECT b, inline(CASE c WHEN 'x' THEN array(named_struct('item', 'y', 'owner', `comment`, 'element', CAST(NULL AS BIGINT))) END) FROM d"
        self.assertEqual(definitions.unnested(text), expected)

    def test_ranges_cover_all_fragments(self) -> None:
        for fragments in (1, 2, 7, 64):
            for number in (1, 2, 16, 100):
                found = tasks.ranges(fragments, number)
                self.assertEqual([f for first, end in found for f in range(first, end)], list(range(fragments)))
                self.assertEqual(len(found), min(fragments, number))

    def test_an_error_of_spark_is_its_first_lines(self) -> None:
        text = "[X] wrong here.\nSQLSTATE: 42\n\tat org.apache.Stack\n\tat more"
        self.assertEqual(str(errors.of_spark(Exception(text))), "Spark: [X] wrong here. SQLSTATE: 42")


def fixed(seed: int, family: str, fragments: int, store: str, replay: list[str], sessions: int) -> Draw:
    """A draw whose parts are given."""
    draw = Draw(seed)
    spec, size = {"kv": ("ycsb-a", "data.records=100"), "social": ("quickstart", "data.members=200")}[family]
    draw.family, draw.fragments, draw.store, draw.replay, draw.experiments = family, fragments, store, replay, 1
    draw.spec = TRACES / f"{spec}.toml"
    draw.settings = [size, f"seed={seed}", f"fragments={fragments}", f"sessions={sessions}"]
    return draw


def long(runs: int, seed: int) -> int:
    """So many runs drawn by seed; the number of those that differ."""
    spark, failed = connect(), 0
    try:
        for each in range(seed, seed + runs):
            draw = Draw(each)
            try:
                check(spark, draw, (draw.chance.choice([1, 2, 16]),))
                print(f"same    {draw}", flush=True)
            except Exception as error:
                failed += 1
                print(f"FAILED  {draw}\n{error}", flush=True)
    finally:
        spark.stop()
    print(f"{runs - failed} passed, {failed} failed")
    return failed


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, help="check so many runs drawn by seed instead")
    options.add_argument("--seed", type=int, default=1, help="the first seed [default: 1]")
    given, rest = options.parse_known_args()
    if given.runs:
        sys.exit(1 if long(given.runs, given.seed) else 0)
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
