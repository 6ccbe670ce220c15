"""Results of Encore as DuckDB relations, pandas and Polars frames.

    import encore

    run = encore.load("runs/quickstart")
    run.experiments                       # a DuckDB relation; see also run.views
    run.df("FROM experiments")            # a pandas frame
    run.pl("SELECT operation, response_ns FROM operations WHERE NOT warmup")    # a Polars frame

The wheel brings the program with it: the command `encore`, and `encore.run` from Python.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import tempfile
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars

__all__ = ["Comparison", "EncoreError", "Run", "load", "program", "run"]

try:
    __version__ = metadata.version("encore-rating")
except metadata.PackageNotFoundError:  # the folder is on the path, and nothing is installed
    __version__ = "unknown"


class EncoreError(Exception):
    """Encore could not do what it was asked for; the message is the program's.

    `exit_code` is the program's, or None if it was not called.
    """

    def __init__(self, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def program() -> Path:
    """The program that this package brings."""
    path = Path(__file__).resolve().parent / "program" / "bin" / "encore"
    if not path.exists():
        raise EncoreError(f"{path} is missing; install the wheel `encore-rating` again")
    return path


def run(*arguments: object, cwd: str | os.PathLike[str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a command of Encore, such as ``run("rate", "--name", "mine")``.

    Waits for its end and returns its exit code and what it printed. The exit code is 0, or 1 when
    the SLA was missed or a violation was found. `EncoreError` is raised for every other one, such
    as 3 for a void experiment, whose run folder can be loaded nevertheless.
    """
    command = [str(program()), *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        # A void experiment is no error: what it says stands in its table.
        message = done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}"
        raise EncoreError(f"encore {' '.join(command[1:2])} failed: {message}", done.returncode)
    return done


def load(path: str | os.PathLike[str], memory_limit: str | None = None) -> Run | Comparison:
    """Opens the folder of a run, or of a comparison.

    A run that is not analyzed yet is analyzed first, as by `encore analyze`. `memory_limit` is the
    most memory that DuckDB uses, such as "4GiB"; it is 80% of the machine's by default.
    """
    folder = Path(path).resolve()
    if not folder.is_dir():
        raise EncoreError(f"{folder} is not a folder; give the folder of a run, such as runs/NAME")
    kind = Comparison if (folder / "comparison.json").exists() else Run
    return kind(folder, memory_limit)


class _Database:
    """An in-memory DuckDB with the views of a run or of a comparison."""

    #: The names of the views.
    views: tuple[str, ...] = ()

    def __init__(self, folder: Path, memory_limit: str | None) -> None:
        # Here, so that the command `encore` does not wait for it.
        import duckdb

        self.folder = folder
        self._memory_limit = memory_limit
        # DuckDB makes this folder when it needs it and removes it at the end. Without a name of
        # ours it would be one in the current folder.
        spill = Path(tempfile.gettempdir()) / f"encore-{os.getpid()}-{id(self):x}"
        config = {"temp_directory": str(spill)}
        if memory_limit is not None:
            config["memory_limit"] = memory_limit
        #: The connection, for everything that DuckDB can do.
        self.connection = duckdb.connect(":memory:", config=config)

    def sql(self, statement: str) -> duckdb.DuckDBPyRelation:
        """The answer to a SELECT, or to ``FROM view``, as a DuckDB relation."""
        return self.connection.sql(statement)

    def df(self, statement: str) -> pandas.DataFrame:
        """The same as a pandas frame."""
        _require("pandas", "pandas")
        return self.sql(statement).df()

    def pl(self, statement: str) -> polars.DataFrame:
        """The same as a Polars frame."""
        _require("polars", "polars")
        _require("pyarrow", "polars")
        return self.sql(statement).pl()

    def view(self, name: str) -> duckdb.DuckDBPyRelation:
        """A view by its name."""
        if name not in self.views:
            raise KeyError(f"there is no view {name!r}; the views are {', '.join(self.views)}")
        return self.connection.sql(f"FROM {name}")

    def close(self) -> None:
        """Closes the database. Relations of it cannot be used afterwards."""
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<encore.{type(self).__name__} {str(self.folder)!r}: {', '.join(self.views)}>"

    def _rows_of(self, table: str) -> list[dict[str, Any]]:
        """What the program says is in a table. Figures and verdicts are the program's alone."""
        limit = [] if self._memory_limit is None else ["--memory-limit", self._memory_limit]
        return json.loads(run("analyze", "sql", self.folder, f"FROM {table}", "--format", "json", *limit).stdout)

    def _define(self) -> None:
        """Makes the views as the program defines them."""
        self.connection.execute(run("analyze", "sql", self.folder, "--definitions").stdout)

    def _fill(self, table: str, rows: list[dict[str, Any]]) -> None:
        if rows:
            columns = ", ".join(f'"{column}"' for column in rows[0])
            marks = ", ".join("?" * len(rows[0]))
            statement = f"INSERT INTO {table} ({columns}) VALUES ({marks})"
            self.connection.executemany(statement, [tuple(row.values()) for row in rows])


class Run(_Database):
    """The results of a run. Columns and units are described in Encore's docs/src/reference/views.md."""

    views = (
        "operations",
        "unpredictable",
        "sessions",
        "experiments",
        "timeline",
        "spectrum",
        "service_spectrum",
        "item_updates",
        "item_reads",
        "freshness",
    )

    def __init__(self, folder: Path, memory_limit: str | None = None) -> None:
        super().__init__(folder, memory_limit)
        # First of all, because it analyzes the run when that has not been done.
        experiments = self._rows_of("experiments")
        self._define()
        self._fill("experiments", experiments)

    @property
    def operations(self) -> duckdb.DuckDBPyRelation:
        """One row an operation."""
        return self.view("operations")

    @property
    def unpredictable(self) -> duckdb.DuckDBPyRelation:
        """One row for each stale or wrong item of a read."""
        return self.view("unpredictable")

    @property
    def sessions(self) -> duckdb.DuckDBPyRelation:
        """One row a session."""
        return self.view("sessions")

    @property
    def experiments(self) -> duckdb.DuckDBPyRelation:
        """One row an experiment: its threads, its verdict and its figures."""
        return self.view("experiments")

    @property
    def timeline(self) -> duckdb.DuckDBPyRelation:
        """One row a slice of an experiment's time."""
        return self.view("timeline")

    @property
    def spectrum(self) -> duckdb.DuckDBPyRelation:
        """One row a response time of an experiment and an operation."""
        return self.view("spectrum")

    @property
    def service_spectrum(self) -> duckdb.DuckDBPyRelation:
        """One row a service time of an experiment and an operation, in an open loop."""
        return self.view("service_spectrum")

    @property
    def item_updates(self) -> duckdb.DuckDBPyRelation:
        """One row for each item that a write changed."""
        return self.view("item_updates")

    @property
    def item_reads(self) -> duckdb.DuckDBPyRelation:
        """One row for each item that a read observed."""
        return self.view("item_reads")

    @property
    def freshness(self) -> duckdb.DuckDBPyRelation:
        """One row an experiment and age of what was read."""
        return self.view("freshness")


class Comparison(_Database):
    """The results of a comparison."""

    views = ("cells",)

    def __init__(self, folder: Path, memory_limit: str | None = None) -> None:
        super().__init__(folder, memory_limit)
        self._define()
        self._fill("cells", self._rows_of("cells"))

    @property
    def cells(self) -> duckdb.DuckDBPyRelation:
        """One row a store and point of the comparison's axis."""
        return self.view("cells")


def _require(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        message = f"this needs the Python package {module}; install it with: pip install 'encore-rating[{extra}]'"
        raise ImportError(message) from error
