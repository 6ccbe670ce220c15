"""Prints answers as `encore analyze sql` does: a table, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FORMATS = ("table", "csv", "json")


def printed(frame: DataFrame, form: str) -> str:
    """The rows of an answer as text."""
    columns = frame.columns
    rows = [tuple(plain(value) for value in row) for row in frame.collect()]
    if form == "json":
        return json.dumps([dict(zip(columns, row)) for row in rows], ensure_ascii=False, separators=(",", ":"))
    if form == "csv":
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerows([columns, *(["" if value is None else text(value) for value in row] for row in rows)])
        return out.getvalue().rstrip("\n")
    return table(columns, rows)


def plain(value: Any) -> Any:
    """A value of Spark as one of JSON."""
    if hasattr(value, "asDict"):
        return {name: plain(own) for name, own in value.asDict().items()}
    if isinstance(value, (list, tuple)):
        return [plain(own) for own in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    number = type(value).__name__ == "Decimal"
    return float(value) if number else str(value)


def text(value: Any) -> str:
    """A value in a table or in CSV."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(text(own) for own in value) + "]"
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return str(value)


def table(columns: list[str], rows: list[tuple]) -> str:
    """Columns of text; numbers stand on the right."""
    cells = [[text(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells)]
    is_number = [all(row[at] is None or isinstance(row[at], (int, float)) and not isinstance(row[at], bool) for row in rows) for at in range(len(columns))]

    def line(row: list[str]) -> str:
        padded = [own.rjust(width) if right else own.ljust(width) for own, width, right in zip(row, widths, is_number)]
        return "  " + "   ".join(padded).rstrip()

    rule = "─" * (sum(widths) + 3 * (len(widths) - 1) + 4)
    count = f"{len(rows)} {'row' if len(rows) == 1 else 'rows'}"
    return "\n".join([line(list(columns)), rule, *map(line, cells), count])
