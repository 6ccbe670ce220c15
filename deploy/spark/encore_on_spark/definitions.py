"""Reads the statements that `encore analyze sql RUN --definitions` prints. Needs no Spark."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field


@dataclass
class Definitions:
    """Tables with their columns, views and functions with their texts, in the order of the statements."""

    #: The columns of tables that come from documents, or are empty: names and types of DuckDB.
    tables: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    #: The views and functions, with their statements without comments.
    views: dict[str, str] = field(default_factory=dict)


def parse(text: str) -> Definitions:
    """The definitions in a text of DuckDB's dialect."""
    found = Definitions()
    for statement in statements(text):
        create = re.match(r'CREATE (TABLE|VIEW|MACRO) "?(\w+)"?\s*(.*)$', statement, re.DOTALL)
        alter = re.match(r"ALTER TABLE (\w+) ADD COLUMN (\w+) (\w+)$", statement)
        if alter:
            found.tables[alter.group(1)].append((alter.group(2), alter.group(3)))
        elif create and create.group(1) == "TABLE":
            found.tables[create.group(2)] = columns(create.group(3))
        elif create:
            found.views[create.group(2)] = statement
    return found


def statements(text: str) -> list[str]:
    """The statements of a text, without comments and with single spaces outside of quotes."""
    out, current, position = [], [], 0
    # Quoted text, a comment, the end of a statement, space, or anything else.
    tokens = re.compile(r"""('(?:[^']|'')*'|"(?:[^"]|"")*")|(--[^\n]*)|(;)|(\s+)|(.)""", re.DOTALL)
    while position < len(text):
        token = tokens.match(text, position)
        position = token.end()
        quoted, comment, end, space, other = token.groups()
        if end:
            out.append("".join(current).strip())
            current = []
        elif space or comment:
            if current and current[-1] != " ":
                current.append(" ")
        else:
            current.append(quoted or other)
    out.append("".join(current).strip())
    return [statement for statement in out if statement]


def columns(text: str) -> list[tuple[str, str]]:
    """The names and types in the parentheses of CREATE TABLE."""
    found = []
    for part in split(text.strip()[1:-1]):
        name, kind = part.strip().split(" ", 1)
        found.append((name.strip('"'), kind.strip()))
    return found


def split(text: str) -> list[str]:
    """Splits at commas outside of parentheses."""
    parts, depth = [""], 0
    for c in text:
        depth += {"(": 1, ")": -1}.get(c, 0)
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return parts


PARQUET = re.compile(r"read_parquet\((\[(?:'(?:[^']|'')*'(?:, )?)*\]|'(?:[^']|'')*')")


def digest(statement: str) -> str:
    """What a definition of DuckDB is known by: the same for every run, since paths of files are left out."""
    return hashlib.sha256(PARQUET.sub("read_parquet('…'", statement).encode()).hexdigest()[:12]


def files(statement: str) -> list[str]:
    """The paths of files that a view reads by name."""
    found = PARQUET.search(statement)
    names = re.findall(r"'((?:[^']|'')*)'", found.group(1)) if found else []
    # DuckDB reads [c] as the character c.
    return [re.sub(r"\[(.)\]", r"\1", name.replace("''", "'")) for name in names]


SPARK_TYPES = {
    "BIGINT": "bigint", "INTEGER": "int", "SMALLINT": "smallint", "BOOLEAN": "boolean", "VARCHAR": "string",
    "DOUBLE": "double",
}  # fmt: skip


def spark_type(kind: str) -> str:
    """A type of DuckDB as one of Spark. KeyError for a type that no table of a run has."""
    if kind.endswith("[]"):
        return f"array<{spark_type(kind[:-2])}>"
    if kind.startswith("STRUCT("):
        inside = (part.strip().split(" ", 1) for part in split(kind[len("STRUCT(") : -1]))
        return "struct<" + ",".join(f"{name}:{spark_type(own)}" for name, own in inside) + ">"
    return SPARK_TYPES[kind]


def unnested(statement: str) -> str | None:
    """The query of a view whose only difference from Spark's SQL is a list of structs that it unnests.

    The program writes such views from its table of actions. None for other views.
    """
    if ":= true)" not in statement:
        return None
    query = statement.split(" AS ", 1)[1]
    query = query.replace("unnest(", "inline(").replace(", recursive := true)", ")").replace('"', "`")

    def struct(found: re.Match[str]) -> str:
        pairs = (pair.split(": ", 1) for pair in found.group(1).split(", "))
        return "named_struct(" + ", ".join(f"'{name}', {value}" for name, value in pairs) + ")"

    query = re.sub(r"\{([^{}]*)\}", struct, query)
    query = query.replace("[]", "NULL").replace("[", "array(").replace("]", ")")
    return re.sub(r"NULL::(\w+)", r"CAST(NULL AS \1)", query)
