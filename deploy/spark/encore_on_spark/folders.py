"""Where a run or a trace set lies, for the program and for Spark: in a folder that every machine sees, or in object
storage."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from .errors import EncoreError, of_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: The class with which Spark reads object storage, and the package that has it, by scheme of the URL. Spark comes without.
CLIENTS = {
    "s3": ("org.apache.hadoop.fs.s3a.S3AFileSystem", "org.apache.hadoop:hadoop-aws:{hadoop}"),
    "gs": ("com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem", "com.google.cloud.bigdataoss:gcs-connector:VERSION"),
}


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
    configuration = spark._jsc.hadoopConfiguration()
    if scheme not in CLIENTS or configuration.get(f"fs.{scheme}.impl"):
        return place
    client, package = CLIENTS[scheme]
    if not configuration.getClassByNameOrNull(client):
        package = package.format(hadoop=spark._jvm.org.apache.hadoop.util.VersionInfo.getVersion())
        raise EncoreError(
            f"{place}: this Spark cannot read {scheme}://; add its client, for example with --conf "
            f"spark.jars.packages={package} (spark-submit: --packages)"
        )
    return re.sub("^s3://", "s3a://", place)


def sizes(spark: SparkSession, run: str, table: str) -> dict[str, int]:
    """The bytes of the files of a run's table, by their paths in the run."""
    path = spark._jvm.org.apache.hadoop.fs.Path(for_spark(spark, f"{run}/{table}"))
    try:
        system = path.getFileSystem(spark._jsc.hadoopConfiguration())
        if not system.exists(path):
            return {}
        start = len(system.makeQualified(path).toUri().getPath())
        found, listed = {}, system.listFiles(path, True)
        while listed.hasNext():
            file = listed.next()
            found[table + file.getPath().toUri().getPath()[start:]] = file.getLen()
        return found
    except Exception as error:
        raise of_spark(error) from None


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
