"""Where a run or a trace set lies, for the program and for Spark: in a folder that every machine sees, or in object
storage."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from .errors import EncoreError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def is_url(place: str) -> bool:
    """Whether a place is a URL rather than a path."""
    return "://" in place


def everywhere(place: str) -> str:
    """A place by a name that means the same to a program with another working directory."""
    return place.rstrip("/") if is_url(place) else os.path.abspath(place)


def name(run: str) -> str:
    """The name of a run: that of its folder."""
    return everywhere(run).rsplit("/", 1)[-1]


def for_spark(spark: SparkSession, place: str) -> str:
    """The URL of a file or folder, as Spark reads it: s3:// as s3a://, unless the cluster has its own s3://."""
    if not is_url(place):
        return "file://" + os.path.abspath(place)
    scheme = place.split("://", 1)[0]
    if scheme != "s3" or spark._jsc.hadoopConfiguration().get("fs.s3.impl"):
        return place
    if not spark._jsc.hadoopConfiguration().getClassByNameOrNull("org.apache.hadoop.fs.s3a.S3AFileSystem"):
        version = spark._jvm.org.apache.hadoop.util.VersionInfo.getVersion()
        raise EncoreError(
            f"{place}: this Spark cannot read s3://; add Hadoop's client, for example with --conf "
            f"spark.jars.packages=org.apache.hadoop:hadoop-aws:{version} (spark-submit: --packages)"
        )
    return re.sub("^s3://", "s3a://", place)


def settings(environment: dict[str, str]) -> dict[str, str]:
    """Settings of Spark for the store that the variables of the environment name, as `encore` reads them.

    Credentials are none of them: Spark takes them from the same variables.
    """
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or (endpoint and "us-east-1")
    found = {
        "spark.hadoop.fs.s3a.endpoint": endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": region,
        # Buckets are rarely names of hosts but at Amazon.
        "spark.hadoop.fs.s3a.path.style.access": endpoint and "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": endpoint and str(not endpoint.startswith("http://")).lower(),
    }
    return {name: value for name, value in found.items() if value}
