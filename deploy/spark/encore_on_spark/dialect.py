"""Translates a statement of DuckDB's dialect, such as those of the documentation, into Spark's."""

from __future__ import annotations

from . import errors
from .errors import EncoreError


def from_duckdb(statement: str) -> str:
    """The statement in Spark's dialect. Needs the Python package sqlglot."""
    try:
        import sqlglot
        from sqlglot import exp
    except ImportError:
        raise EncoreError("--dialect duckdb needs sqlglot; install it with `pip install sqlglot`") from None

    def spelled(node):
        if isinstance(node, exp.Div):
            # DuckDB divides whole numbers and decimals as doubles, and by zero without an error.
            node.set("this", exp.cast(node.this, "double"))
            node.set("expression", exp.func("nullif", node.expression, exp.Literal.number(0)))
        is_percentile = isinstance(node, (exp.PercentileDisc, exp.PercentileCont))
        if is_percentile and node.expression and not isinstance(node.parent, exp.WithinGroup):
            order = exp.Order(expressions=[exp.Ordered(this=node.this)])
            return exp.WithinGroup(this=type(node)(this=node.expression), expression=order)
        return node

    def as_doubles(node):
        # In Spark they are whole numbers.
        return exp.cast(node.copy(), "double") if isinstance(node, (exp.Floor, exp.Ceil)) else node

    try:
        return sqlglot.parse_one(statement, read="duckdb").transform(spelled).transform(as_doubles).sql(dialect="spark")
    except sqlglot.errors.SqlglotError as error:
        raise EncoreError(f"SQL: {errors.first_lines(str(error))}") from None
