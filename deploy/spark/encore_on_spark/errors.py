"""Errors that a user can read, out of those of the program and of Spark."""

from __future__ import annotations

import logging
import re


class EncoreError(Exception):
    """What is wrong, why, and what to do. `exit_code` is 2 for what the user can correct, else 3."""

    def __init__(self, message: str, exit_code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = exit_code


#: An error of a task stands between these in the text of Spark's exception, which repeats it and adds stacks.
BEGIN, END = "<<encore>>", "<</encore>>"


def of_spark(error: Exception) -> EncoreError:
    """The error of a task, once and without stacks; of any other error of Spark its first lines."""
    # Py4J says first which of its objects was called.
    text = re.sub(r"^An error occurred while calling \S+\s*: ", "", str(error))
    found = re.search(re.escape(BEGIN) + "(.*?)" + re.escape(END), text, re.DOTALL)
    if found:
        return EncoreError(found.group(1).strip(), 3)
    return EncoreError(f"Spark: {first_lines(text)}", 3)


def first_lines(text: str) -> str:
    """The lines of an exception's text before its stack and before the plan of a query."""
    lines = []
    for line in text.strip().splitlines():
        if line.lstrip().startswith(("at ", "Traceback", "Driver stacktrace", "JVM stacktrace", "'")) or (lines and not line.strip()):
            break
        lines.append(line.strip())
    return " ".join(lines)[:2000]


def silence(spark) -> None:
    """Keeps Spark from printing each error before it is raised, with its stacks."""
    spark.sparkContext.setLogLevel("OFF")
    logging.getLogger("SQLQueryContextLogger").disabled = True
    logging.getLogger("DataFrameQueryContextLogger").disabled = True
