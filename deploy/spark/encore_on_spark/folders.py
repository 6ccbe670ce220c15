"""What experiments and fragments a run folder has, on a disk or in any storage that Spark reads."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import EncoreError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Experiment:
    """An experiment that has begun."""

    number: int
    name: str
    fragments: tuple[int, ...]
    has_verdict: bool


class Folder:
    """A run folder: a path, or a URL of a file system of Hadoop (s3:// is read as s3a://)."""

    def __init__(self, spark: SparkSession, run: str) -> None:
        self.run = run.rstrip("/")
        self._spark = spark
        self._is_url = "://" in run

    def for_spark(self, *parts: str) -> str:
        """The URL of a file or folder in it, as Spark reads it."""
        if self._is_url:
            return "/".join([re.sub("^s3://", "s3a://", self.run), *parts])
        return Path(self.run, *parts).resolve().as_uri()

    def name(self) -> str:
        """The run's name."""
        return self.run.rsplit("/", 1)[-1] if self._is_url else Path(self.run).resolve().name

    def names(self, *parts: str) -> list[str]:
        """The names of what is in a folder in it; empty if the folder is missing."""
        if not self._is_url:
            folder = Path(self.run, *parts)
            return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
        files, path = self._hadoop(*parts)
        return sorted(each.getPath().getName() for each in files.listStatus(path)) if files.exists(path) else []

    def read(self, *parts: str) -> str | None:
        """The text of a file in it; None if it is missing."""
        if not self._is_url:
            path = Path(self.run, *parts)
            return path.read_text(encoding="utf-8") if path.is_file() else None
        files, path = self._hadoop(*parts)
        if not files.exists(path):
            return None
        stream = files.open(path)
        try:
            return self._spark._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
        finally:
            stream.close()

    def _hadoop(self, *parts: str):
        path = self._spark._jvm.org.apache.hadoop.fs.Path(self.for_spark(*parts))
        return path.getFileSystem(self._spark._jsc.hadoopConfiguration()), path

    def experiments(self) -> list[Experiment]:
        """Its experiments, by number."""
        if self.read("run.json") is None:
            raise EncoreError(f"{self.run}: no run.json; is this a run folder? Create one with `encore rate` or `encore replay run`")
        found = []
        for name in self.names("experiments"):
            number = re.match(r"(\d+)-T", name)
            inside = [each for each in self.names("experiments", name) if not each.startswith(".")]
            if not number or not inside:
                continue
            # An experiment that never ran has a verdict and no plan.
            plan = json.loads(self.read("experiments", name, "plan.json") or "{}")
            fragments = tuple(part["fragment"] for part in plan.get("fragments", []))
            found.append(Experiment(int(number.group(1)), name, fragments, "verdict.json" in inside))
        return sorted(found, key=lambda each: each.number)
