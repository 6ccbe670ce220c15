"""Spreads the tasks of the program over executors: fragments share nothing, and each task can be repeated."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from . import errors, program
from .errors import EncoreError
from .folders import Folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def call(binary: str, *arguments: str) -> str:
    """Runs a command on the driver and returns what it printed."""
    try:
        done = program.start(binary, list(arguments))
    except OSError as error:
        raise EncoreError(f"cannot start {binary} on the driver: {error}; say where it is with --binary") from None
    if done["code"] != 0:
        raise EncoreError(_without_prefix(done["stderr"]) or f"encore ended with code {done['code']}", done["code"])
    return done["stdout"]


def spread(spark: SparkSession, binary: str, units: list[tuple[str, list[str]]], tasks: int) -> list[dict]:
    """Runs units of work, each a label and the arguments of a command, in so many tasks of Spark."""
    from pyspark import cloudpickle

    if not units:
        return []
    # Executors do not have this package.
    for module in (program, errors):
        cloudpickle.register_pickle_by_value(module)
    run = program.unit
    rdd = spark.sparkContext.parallelize(units, max(1, min(tasks, len(units))))
    try:
        results = rdd.mapPartitions(lambda part: [run(binary, label, arguments) for label, arguments in part]).collect()
    except Exception as error:
        raise errors.of_spark(error) from None
    failed = [result for result in results if result["code"] != 0]
    if failed:
        more = f" ({len(failed) - 1} more tasks failed too)" if len(failed) > 1 else ""
        raise EncoreError(f"{failed[0]['label']}: {_without_prefix(failed[0]['stderr'])}{more}")
    return results


def _without_prefix(text: str) -> str:
    return re.sub(r"^error: ", "", text.strip())


def ranges(fragments: int, tasks: int) -> list[tuple[int, int]]:
    """Splits fragments 0 to N-1 into so many ranges of about one length; at most one a fragment."""
    tasks = max(1, min(tasks, fragments))
    ends = [fragments * task // tasks for task in range(tasks + 1)]
    return list(zip(ends, ends[1:]))


def generate(
    spark: SparkSession, binary: str, spec: str, output: str, tasks: int | None = None, settings: tuple[str, ...] = ()
) -> str:
    """Generates a trace set: its fragments on executors, then its manifest on the driver.

    `settings` are further arguments of `encore trace gen`, such as ("--sessions", "1000"). Returns what `encore trace
    assemble --json` prints.
    """
    # The program knows how a family derives the number of fragments.
    printed = call(binary, "trace", "gen", spec, *settings, "--print-spec")
    found = re.search(r"^fragments = (\d+)$", printed, re.MULTILINE)
    fragments = int(found.group(1)) if found else 1
    parts = ranges(fragments, tasks or 4 * spark.sparkContext.defaultParallelism)
    units = [
        (
            f"fragments {first} to {end - 1}",
            ["trace", "gen", spec, *settings, "-o", output, "--only-fragments", f"{first}..{end}", "--json"],
        )
        for first, end in parts
    ]
    spread(spark, binary, units, len(units))
    return call(binary, "trace", "assemble", output, "--json")


def analyze(
    spark: SparkSession,
    binary: str,
    run: str,
    experiment: int | None = None,
    tasks: int | None = None,
    trace: str | None = None,
    sla: str | None = None,
) -> str:
    """Analyzes a run: each fragment of each experiment on an executor, then the verdicts on the driver.

    Experiments that have a verdict are left as they are, unless `experiment` names one. Returns what `encore analyze
    merge --json` prints.
    """
    found = Folder(spark, run).experiments()
    chosen = [each for each in found if (each.number == experiment if experiment is not None else not each.has_verdict)]
    if experiment is not None and not chosen:
        known = ", ".join(str(each.number) for each in found) or "none"
        raise EncoreError(f"{run}: no experiment {experiment}; it has {known}")
    options = [*(["--trace", trace] if trace else []), *(["--sla", sla] if sla else [])]
    units = [
        (
            f"experiment {each.number}, fragment {fragment}",
            ["analyze", "fragment", run, "--experiment", str(each.number), "--fragment", str(fragment), *options],
        )
        for each in chosen
        for fragment in each.fragments
    ]
    spread(spark, binary, units, tasks or len(units))
    only = ["--experiment", str(experiment)] if experiment is not None else []
    return call(binary, "analyze", "merge", run, *only, "--json")
