"""Encore on Apache Spark: generate, analyze and ask on a cluster.

Spark decides where the tasks of the program `encore` run, and answers SQL over the tables that they write. Figures and
verdicts are the program's alone.
"""

from .errors import EncoreError
from .views import Views, register

__all__ = ["EncoreError", "Views", "register"]
