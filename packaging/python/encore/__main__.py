"""The command `encore`: the program that the package brings, in the place of this process."""

import os
import shutil
import sys
from pathlib import Path

from encore import EncoreError, program


def called_as() -> str:
    """How commands that Encore prints have to begin, so that they can be pasted in every folder."""
    script = Path(sys.argv[0]).absolute()
    if script.name == "__main__.py":  # python -m encore
        script = Path(sys.executable).with_name("encore")
    found = shutil.which(script.name)
    return script.name if found is not None and Path(found).absolute() == script else str(script)


def main() -> None:
    try:
        path = str(program())
    except EncoreError as error:
        sys.exit(f"encore: {error}")
    sys.stdout.flush()
    os.execve(path, ["encore", *sys.argv[1:]], {**os.environ, "ENCORE_CALLED_AS": called_as()})


if __name__ == "__main__":
    main()
