#!/usr/bin/env python3
"""Types the commands of docs/src/how-to/cluster.md, against a server of S3 and a cluster of Spark on this machine.

Only addresses are changed, to ports that are free, and packages that are in the cache are not downloaded.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path

from test_encore_spark import ENCORE, HADOOP_AWS, HERE, S3_SERVER, ObjectStorage, needs

ROOT = HERE.parent.parent
PAGE = ROOT / "docs/src/how-to/cluster.md"
#: Ports of the page.
PORT = re.compile(r"\b(7070|7077|8077|8078|8079)\b")
#: What is waited for before the commands that follow.
LISTENS = re.compile(r"--listen (\S+):(\d+)|--host (\S+) --port (\d+)")
WAIT = 'until (exec 3<>"/dev/tcp/{host}/{port}") 2>/dev/null; do sleep 0.1; done\n'


def blocks() -> list[str]:
    """What the page has the user type, without the variables of the store."""
    typed = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [block for block in typed if "AWS_ENDPOINT_URL" not in block]


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def script() -> str:
    """All commands, with free ports."""
    ports = {port: str(free_port()) for port in dict.fromkeys(PORT.findall("".join(blocks())))}
    text = "set -eux -o pipefail\n"
    for block in blocks():
        block = PORT.sub(lambda found: ports[found.group()], block)
        block = re.sub(r" --packages \S+", "", block)
        # On a busy machine the verdict is void, which is 3.
        block = re.sub(r"(--publish s3://bucket/runs)$", r"\1 || [ $? = 3 ]", block, flags=re.MULTILINE)
        text += block
        for found in LISTENS.finditer(block):
            host, port = [own for own in found.groups() if own]
            text += WAIT.format(host=host, port=port)
    return text


class Page(unittest.TestCase):
    """The page, from its first command to its last."""

    def test_the_commands_work_as_typed(self) -> None:
        import pyspark

        needs("S3Proxy or Hadoop's client of S3", S3_SERVER, HADOOP_AWS)
        store, place = ObjectStorage("bucket"), tempfile.TemporaryDirectory()
        folder = Path(place.name)
        for name in ("deploy", "traces"):
            (folder / name).symlink_to(ROOT / name)
        client = "".join(f"spark.{which}.extraClassPath {HADOOP_AWS}/*\n" for which in ("driver", "executor"))
        (folder / "spark-defaults.conf").write_text(f"{client}spark.sql.shuffle.partitions 2\n")
        spark = Path(pyspark.__file__).parent
        programs = [str(Path(ENCORE).resolve().parent), str(spark / "bin"), os.environ["PATH"]]
        variables = {
            **os.environ, **store.variables, "PATH": os.pathsep.join(programs), "SPARK_HOME": str(spark),
            "SPARK_CONF_DIR": place.name, "SPARK_LOCAL_IP": "127.0.0.1",
        }  # fmt: skip
        log = folder / "log"
        with log.open("w") as out:
            shell = subprocess.Popen(["bash", "-c", script()], cwd=folder, env=variables, stdout=out, stderr=out, start_new_session=True)
            try:
                code = shell.wait(timeout=600)
            finally:
                # The servers that the page has started.
                os.killpg(shell.pid, signal.SIGKILL)
        said = log.read_text(errors="replace")
        try:
            self.assertEqual(code, 0, said[-4000:])
            # A cluster, a loop and a coordinator come to one verdict, but for the tables that the first two have made.
            for run in ("first", "second"):
                published = store.files(f"runs/{run}")
                [verdict] = published.glob("experiments/*/verdict.json")
                there, here = json.loads(verdict.read_text()), json.loads((folder / "runs" / run / verdict.relative_to(published)).read_text())
                self.assertEqual(len(there.pop("sealed")), 8)
                here.pop("sealed", None)
                self.assertEqual(there, here)
            same = subprocess.run(["diff", "-r", store.files("ycsb.trace"), store.files("loop.trace")], capture_output=True, text=True)
            self.assertEqual(same.stdout, "")
        finally:
            store.close()
            place.cleanup()


if __name__ == "__main__":
    unittest.main(verbosity=2)
