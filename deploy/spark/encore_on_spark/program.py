"""Runs the program `encore`, on an executor or on the driver.

Executors get these functions with the tasks: they need Python and Spark, and nothing of this package.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile

from .errors import BEGIN, END


def find(binary: str) -> str:
    """The path of the program here: shipped with --files, else this path, else on PATH.

    Raises FileNotFoundError with the places that it is not in.
    """
    name = os.path.basename(binary)
    places = []
    try:
        from pyspark import SparkFiles

        # On YARN this is the folder of the task. Elsewhere that folder is the user's, and what lies there is not meant.
        places.append(os.path.join(SparkFiles.getRootDirectory(), name))
    except Exception:  # there is no Spark yet
        pass
    if os.sep in binary:
        places.append(binary)
    for place in places:
        if os.path.isfile(place):
            return place
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError(f"not among the files of Spark, not at {binary}, not on PATH")
    return found


def start(binary: str, arguments: list[str], folder: str | None = None) -> dict:
    """Runs a command to its end, in a folder. Returns its exit code and what it printed.

    Raises OSError if it cannot be started.
    """
    path = find(binary)
    # A library that was shipped lies beside the program.
    libraries = [os.path.dirname(os.path.abspath(path)), os.environ.get("LD_LIBRARY_PATH", "")]
    environment = {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(filter(None, libraries))}
    done = subprocess.run(
        [os.path.abspath(path), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment,
        cwd=folder,
        preexec_fn=_die_with_parent,
    )
    if done.returncode == 127 and b"shared librar" in done.stderr:
        raise OSError(done.stderr.decode(errors="replace").strip())
    return {
        "code": done.returncode,
        "stdout": done.stdout.decode(errors="replace"),
        "stderr": done.stderr.decode(errors="replace").strip(),
    }


def _die_with_parent() -> None:
    """A task that Spark kills leaves no program behind (Linux)."""
    try:
        import ctypes
        import signal

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    except Exception:
        pass


def unit(binary: str, label: str, arguments: list[str], files: dict[str, str] | None = None) -> dict:
    """Runs one unit of work on an executor, in a folder with these files if there are any.

    What the user has to correct is returned, since another try cannot help. Everything else is raised, so that Spark
    tries again, perhaps on another executor.
    """
    where = f"{label} on {socket.gethostname()}"
    try:
        if files:
            with tempfile.TemporaryDirectory() as folder:
                for name, text in files.items():
                    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                        file.write(text)
                done = start(binary, arguments, folder)
        else:
            done = start(binary, arguments)
    except OSError as error:
        raise RuntimeError(
            f"{BEGIN}{where}: cannot start {binary}: {error}; ship it with --ship (spark-submit: --files), or install it on "
            f"every executor{END}"
        ) from None
    if done["code"] in (0, 2):
        return {"label": label, **done}
    how = f"killed by signal {-done['code']}" if done["code"] < 0 else f"exit code {done['code']}"
    raise RuntimeError(f"{BEGIN}{where}: {how}: {done['stderr'] or 'it printed no error'}{END}")
