"""Spreads the tasks of the program over executors: fragments share nothing, and each task can be repeated."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from . import errors, program
from .errors import EncoreError
from .folders import everywhere, is_url

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


def spread(
    spark: SparkSession, binary: str, units: list[tuple[str, list[str]]], tasks: int, files: dict[str, str] | None = None
) -> list[dict]:
    """Runs units of work, each a label and the arguments of a command, in so many tasks of Spark.

    `files` are texts that each of the commands finds in its working directory, by name.
    """
    from pyspark import cloudpickle

    if not units:
        return []
    # Executors do not have this package.
    for module in (program, errors):
        cloudpickle.register_pickle_by_value(module)
    run = program.unit
    rdd = spark.sparkContext.parallelize(units, max(1, min(tasks, len(units))))
    try:
        results = rdd.mapPartitions(lambda part: [run(binary, label, arguments, files) for label, arguments in part]).collect()
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
    output = everywhere(output)
    # Without a folder that all machines see, the specification travels with the tasks.
    travels = is_url(output) and Path(spec).is_file()
    files = {Path(spec).name: Path(spec).read_text(encoding="utf-8")} if travels else {}
    theirs = Path(spec).name if travels else everywhere(spec)
    # The program knows how a family derives the number of fragments.
    printed = call(binary, "trace", "gen", spec, *settings, "--print-spec")
    found = re.search(r"^fragments = (\d+)$", printed, re.MULTILINE)
    fragments = int(found.group(1)) if found else 1
    parts = ranges(fragments, tasks or 4 * spark.sparkContext.defaultParallelism)
    units = [
        (
            f"fragments {first} to {end - 1}",
            ["trace", "gen", theirs, *settings, "-o", output, "--only-fragments", f"{first}..{end}", "--json"],
        )
        for first, end in parts
    ]
    spread(spark, binary, units, len(units), files)
    return call(binary, "trace", "assemble", output, "--json")


def experiments(binary: str, run: str) -> list[dict]:
    """The experiments of a run: experiment, has_verdict, fragments."""
    return json.loads(call(binary, "analyze", "tasks", run, "--json"))


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
    run = everywhere(run)
    found = experiments(binary, run)
    chosen = [each for each in found if (each["experiment"] == experiment if experiment else not each["has_verdict"])]
    if experiment and not chosen:
        known = ", ".join(str(each["experiment"]) for each in found) or "none"
        raise EncoreError(f"{run}: no experiment {experiment}; it has {known}")
    options = [*(["--trace", everywhere(trace)] if trace else []), *(["--sla", sla] if sla else [])]
    units = [
        (
            f"experiment {each['experiment']}, fragment {fragment}",
            ["analyze", "fragment", run, "--experiment", str(each["experiment"]), "--fragment", str(fragment), *options],
        )
        for each in chosen
        for fragment in each["fragments"]
    ]
    spread(spark, binary, units, tasks or len(units))
    if len(chosen) == len(found):
        return call(binary, "analyze", "merge", run, *options, "--json")
    # Those that had a verdict may have been analyzed in one go, and have nothing to merge.
    merged = [
        verdict
        for each in chosen
        for verdict in json.loads(call(binary, "analyze", "merge", run, "--experiment", str(each["experiment"]), *options, "--json"))
    ]
    return json.dumps(merged)
