#!/usr/bin/env python3
"""Generates trace sets, analyzes runs and answers SQL on a cluster of Apache Spark.

    spark-submit encore_spark.py analyze /shared/runs/first
    python3 encore_spark.py --master 'local-cluster[2,1,1024]' sql /shared/runs/first "SELECT * FROM timeline"

In a notebook:

    from encore_spark import register
    views = register(spark, "/shared/runs/first")
    spark.sql("SELECT operation, count(*) FROM operations GROUP BY ALL").show()
"""

from __future__ import annotations

import argparse
import os
import sys

from encore_on_spark import EncoreError, Views, dialect, errors, folders, printing, register, tasks

__all__ = ["EncoreError", "Views", "register"]

EXAMPLES = {
    None: """examples:
  spark-submit encore_spark.py generate spec.toml --output /shared/first.trace
  spark-submit encore_spark.py analyze /shared/runs/first
  spark-submit encore_spark.py sql /shared/runs/first "SELECT * FROM experiments"
  python3 encore_spark.py --master 'local-cluster[2,1,1024]' --binary bin/encore analyze runs/first

Traces and runs lie in folders that the driver and every executor see under the same
path, or in object storage (s3://, gs://), with credentials in the environment of all.
Exit codes: 0 success, 2 wrong usage or input, 3 Spark or the program failed.""",
    "generate": """examples:
  spark-submit encore_spark.py generate spec.toml --output /shared/first.trace
  spark-submit encore_spark.py generate spec.toml --output /shared/first.trace --tasks 64 --set sessions=1000000
  spark-submit encore_spark.py generate spec.toml --output s3://bucket/first.trace""",
    "analyze": """examples:
  spark-submit encore_spark.py analyze /shared/runs/first
  spark-submit encore_spark.py analyze /shared/runs/first --experiment 7 --trace /shared/first.trace
  spark-submit encore_spark.py analyze s3://bucket/runs/first --trace s3://bucket/first.trace""",
    "sql": """examples:
  spark-submit encore_spark.py sql runs/first "SELECT * FROM experiments"
  spark-submit encore_spark.py sql runs/first "SELECT * FROM freshness" --format csv
  spark-submit --packages org.apache.hadoop:hadoop-aws:3.4.1 \\
      encore_spark.py sql s3://bucket/runs/first "SELECT * FROM experiments"
  spark-submit encore_spark.py sql runs/a runs/b "SELECT run, avg(throughput_per_s) FROM experiments GROUP BY run"
  spark-submit encore_spark.py sql runs/first --dialect duckdb "FROM timeline SELECT max(p99_ns)"

The views are those of `encore analyze sql`. Those of several runs have a first column, run.""",
}


def parser() -> argparse.ArgumentParser:
    """The command line."""

    def raw(command: str | None) -> dict:
        return {"epilog": EXAMPLES[command], "formatter_class": argparse.RawDescriptionHelpFormatter}

    top = argparse.ArgumentParser(
        prog="encore_spark.py", description="Generate, analyze and ask on a cluster of Apache Spark.", **raw(None)
    )
    top.add_argument("--master", metavar="URL", help="the cluster, such as spark://HOST:7077 or local-cluster[2,1,1024] [default: that of spark-submit]")
    top.add_argument("--binary", metavar="PATH", default="encore", help="the program: among the files of Spark, at this path, or on PATH [default: encore]")
    top.add_argument("--ship", metavar="FILE", action="append", default=[], help="copy this file to every executor, such as the program; as --files of spark-submit; repeat for more files")
    top.add_argument("--conf", metavar="KEY=VALUE", action="append", default=[], help="a setting of Spark; repeat for more")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    generate = commands.add_parser("generate", help="generate a trace set", description="Generate a trace set: the same bytes as `encore trace gen`.", **raw("generate"))
    generate.add_argument("spec", metavar="SPEC", help="the specification, a TOML file")
    generate.add_argument("--output", "-o", metavar="DIR", required=True, help="the folder to write, or its URL (s3://, gs://)")
    generate.add_argument("--tasks", type=count, metavar="N", help="tasks to spread the fragments over [default: 4 a core]")
    generate.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="set a value of the specification; repeat for more")

    analyze = commands.add_parser("analyze", help="analyze a run", description="Analyze the experiments of a run that have no verdict: the same verdicts as `encore analyze summary`.", **raw("analyze"))
    analyze.add_argument("run", metavar="RUN", help="the run: a folder, or its URL (s3://, gs://)")
    analyze.add_argument("--experiment", type=count, metavar="E", help="only this experiment, even if it has a verdict")
    analyze.add_argument("--tasks", type=count, metavar="N", help="tasks to spread the fragments over [default: one a fragment]")
    analyze.add_argument("--trace", metavar="DIR", help="the trace set, a folder or its URL [default: the one that the run names]")
    analyze.add_argument("--sla", metavar="SLA", help="judge by this agreement [default: the run's]")

    sql = commands.add_parser("sql", help="ask runs in SQL", description="Answer one statement of SQL over the views of analyzed runs.", **raw("sql"))
    sql.add_argument("runs", metavar="RUN", nargs="+", help="runs: folders, or their URLs (s3://, gs://)")
    sql.add_argument("statement", metavar="STATEMENT", help="one statement that reads")
    sql.add_argument("--format", choices=printing.FORMATS, default="table", help="the output format [default: table]")
    sql.add_argument("--dialect", choices=("spark", "duckdb"), default="spark", help="what the statement is written in; duckdb needs the Python package sqlglot [default: spark]")
    return top


def count(text: str) -> int:
    """A whole number above 0."""
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return number


def session(arguments: argparse.Namespace):
    """Connects to the cluster."""
    try:
        from pyspark import SparkConf
        from pyspark.sql import SparkSession
    except ImportError:
        raise EncoreError("pyspark is missing; install it with `pip install 'pyspark>=4,<5'`, or use spark-submit") from None
    conf = SparkConf()
    ours = {"spark.app.name": "encore", "spark.ui.showConsoleProgress": "false"}
    if arguments.master:
        ours["spark.master"] = arguments.master
    for setting in arguments.conf:
        name, equals, value = setting.partition("=")
        if not equals:
            raise EncoreError(f"--conf {setting}: expected KEY=VALUE")
        ours[name] = value
    if any(run.startswith("s3://") for run in getattr(arguments, "runs", [])):
        for name, value in folders.settings(dict(os.environ)).items():
            if not conf.contains(name):
                ours.setdefault(name, value)
    for name, value in ours.items():
        conf.set(name, value)
    # What spark-submit was given is known once there is a session; its programs are started with this variable.
    if not conf.contains("spark.master") and "PYSPARK_GATEWAY_PORT" not in os.environ:
        raise EncoreError("no cluster: give --master, such as local-cluster[2,1,1024], or use spark-submit")
    try:
        spark = SparkSession.builder.config(conf=conf).getOrCreate()
    except Exception as error:
        raise errors.of_spark(error) from None
    # What went wrong in a task comes back as an error, without the stacks of its tries.
    errors.silence(spark)
    for file in arguments.ship:
        if not os.path.isfile(file):
            raise EncoreError(f"--ship {file}: no such file")
        spark.sparkContext.addFile(file)
    return spark


def run(arguments: argparse.Namespace) -> str:
    """Runs a command and returns what it prints."""
    spark = session(arguments)
    try:
        binary = arguments.binary
        if arguments.command == "generate":
            settings = [flag for each in arguments.set for flag in ("--set", each)]
            return tasks.generate(spark, binary, arguments.spec, arguments.output, arguments.tasks, tuple(settings))
        if arguments.command == "analyze":
            return tasks.analyze(
                spark, binary, arguments.run, arguments.experiment, arguments.tasks, arguments.trace, arguments.sla
            )
        is_foreign = arguments.dialect == "duckdb"
        statement = dialect.from_duckdb(arguments.statement) if is_foreign else arguments.statement
        views = register(spark, *arguments.runs, binary=binary)
        try:
            return printing.printed(views.sql(statement), arguments.format)
        except EncoreError:
            raise
        except Exception as error:
            raise errors.of_spark(error) from None
    finally:
        spark.stop()


def main() -> int:
    """The program."""
    try:
        print(run(parser().parse_args()).rstrip("\n"))
    except EncoreError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
