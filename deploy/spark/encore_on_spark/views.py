"""The views of `encore analyze sql` in a session of Spark.

The program says which views a run has, and what is in the tables that come from documents. A view of DuckDB is known by
the digest of its definition. The file of SQL that has this digest in its first line says the same to Spark; a view
without such a file is missing, by name, rather than computed in another way.
"""

from __future__ import annotations

import json
import re
from importlib import resources
from typing import TYPE_CHECKING

from . import definitions
from .errors import EncoreError, first_lines
from .folders import everywhere, for_spark, name as name_of, sizes
from .tasks import call, experiments

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Sealed tables, by the view that reads them.
SEALED = {"sealed_operations": "operations", "unpredictable": "unpredictable", "closing_reads": "closing_reads"}
#: What the sealed tables are called within this package's SQL.
FILES_OF = "files_of_"


def known() -> dict[tuple[str, str], str]:
    """Spark's SQL, by the name of a view or function and the digest of DuckDB's definition."""
    found = {}
    for file in (resources.files(__package__) / "sql").iterdir():
        first, text = file.read_text(encoding="utf-8").split("\n", 1)
        name, mark = file.name.split(".")[0], re.fullmatch(r"-- DuckDB's: (\w+)", first)
        if mark:
            found[name, mark.group(1)] = text
    return found


class Views:
    """The views of one run, or of several. Spark computes a view when it is asked."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        #: The views by name.
        self.frames: dict[str, DataFrame] = {}
        #: Views that cannot be had here, with the reason.
        self.missing: dict[str, str] = {}

    def sql(self, statement: str) -> DataFrame:
        """The answer to a statement of Spark's SQL."""
        from pyspark.errors import AnalysisException, ParseException

        try:
            return self._spark.sql(statement)
        except (AnalysisException, ParseException) as error:
            message = first_lines(str(error))
            for name, reason in self.missing.items():
                if re.search(rf"TABLE_OR_VIEW_NOT_FOUND.*`{name}`", message):
                    raise EncoreError(f"view {name} cannot be had on Spark: {reason}") from None
            raise EncoreError(f"SQL: {message}") from None

    def _add(self, name: str, frame: DataFrame) -> None:
        frame.createOrReplaceTempView(name)
        self.frames[name] = frame


def register(spark: SparkSession, *runs: str, binary: str = "encore") -> Views:
    """Registers the views of a run, under the names and columns of docs/src/reference/views.md.

    The views of several runs have all their rows, and a first column `run`: the name of the run's folder.
    """
    for name, _ in known():
        # What an earlier call has registered is no answer about these runs.
        spark.catalog.dropTempView(name)
    each = [(name_of(run), _one(spark, everywhere(run), binary)) for run in runs]
    if len(each) == 1:
        return each[0][1]
    from pyspark.sql import functions

    names = [name for name, _ in each]
    if len(set(names)) < len(names):
        raise EncoreError(f"two runs have the same name: {', '.join(names)}; rename a folder")
    together = Views(spark)
    lacking = {view for _, views in each for view in views.missing}
    for name in dict.fromkeys(view for _, views in each for view in views.frames):
        if name in lacking:
            # The rows of some runs alone would look like those of all.
            spark.catalog.dropTempView(name)
            continue
        union = None
        for run, views in each:
            if name in views.frames:
                frame = views.frames[name].select(functions.lit(run).alias("run"), "*")
                union = frame if union is None else union.unionByName(frame, allowMissingColumns=True)
        together._add(name, union)
    for run, views in each:
        together.missing.update({name: f"{run}: {reason}" for name, reason in views.missing.items()})
    return together


def _one(spark: SparkSession, run: str, binary: str) -> Views:
    each = experiments(binary, run)
    without = [own["experiment"] for own in each if not own["has_verdict"]]
    if without:
        numbers = ", ".join(map(str, without))
        raise EncoreError(f"{run}: experiment {numbers} is not analyzed; run `encore_spark.py analyze {run}` first")
    _check_sealed(spark, run, each)
    views = Views(spark)
    found = definitions.parse(call(binary, "analyze", "sql", run, "--definitions"))
    for name, rows in _documents(run, binary, found).items():
        views._add(name, _table(spark, found.tables[name], rows))
    texts = known()
    for name, statement in found.views.items():
        text = texts.get((name, definitions.digest(statement))) or definitions.unnested(statement)
        if text is None:
            views.missing[name] = (
                "this version of the program defines it in a way that deploy/spark/ does not know; use the deploy/spark/ of "
                f"its version, or ask `encore analyze sql {run}` (DuckDB's: {definitions.digest(statement)})"
            )
            continue
        try:
            if name in SEALED:
                _sealed(spark, run, SEALED[name])
            elif name == "checks":
                spark.read.parquet(*(for_spark(spark, file) for file in definitions.files(statement))).createOrReplaceTempView(FILES_OF + name)
            if "CREATE OR REPLACE TEMPORARY FUNCTION" in text:
                spark.sql(text)
            else:
                views._add(name, spark.sql(text))
        except EncoreError:
            raise
        except Exception as error:
            needed = [other for other in views.missing if re.search(rf"\b{other}\b", text)]
            views.missing[name] = f"it needs {', '.join(needed)}" if needed else first_lines(str(error))
            spark.catalog.dropTempView(name)
    return views


def _check_sealed(spark: SparkSession, run: str, each: list[dict]) -> None:
    """Refuses a run whose sealed tables are not those that its verdicts name: an answer from some of the rows would look
    like one from all of them."""
    found = {name: size for table in SEALED.values() for name, size in sizes(spark, run, table).items()}
    for own in each:
        for name, size in own["sealed"].items():
            if found.get(name) == size:
                continue
            what = f"has {found[name]} bytes instead of {size}" if name in found else "is missing"
            again = f"encore_spark.py analyze {run} --experiment {own['experiment']}"
            raise EncoreError(f"{run}/{name}: {what}; run `{again}` to make the tables again")


def _sealed(spark: SparkSession, run: str, table: str) -> None:
    """A sealed table, whose partitions come first and are whole numbers of 64 bits."""
    from pyspark.sql import types

    path = for_spark(spark, f"{run}/{table}")
    schema = spark.read.parquet(path).schema
    keys = ("experiment", "fragment")
    own = [column for column in schema.fields if column.name not in keys]
    wide = types.StructType(own + [types.StructField(key, types.LongType()) for key in keys])
    frame = spark.read.schema(wide).parquet(path)
    frame.select(*keys, *(column.name for column in own)).createOrReplaceTempView(FILES_OF + table)


def _documents(run: str, binary: str, found: definitions.Definitions) -> dict[str, list[dict]]:
    """The rows of all tables that come from documents, as the program has them."""
    if not found.tables:
        return {}
    lists = ", ".join(f"(SELECT list(t) FROM {name} AS t) AS {name}" for name in found.tables)
    answer = json.loads(call(binary, "analyze", "sql", run, f"SELECT {lists}", "--only-documents", "--format", "json"))[0]
    return {name: rows or [] for name, rows in answer.items()}


def _table(spark: SparkSession, columns: list[tuple[str, str]], rows: list[dict]) -> DataFrame:
    schema = ", ".join(f"`{name}` {definitions.spark_type(kind)}" for name, kind in columns)

    def value(row: dict, name: str, kind: str):
        own = row[name]
        return float(own) if kind == "DOUBLE" and own is not None else own

    return spark.createDataFrame([tuple(value(row, *column) for column in columns) for row in rows], schema)
