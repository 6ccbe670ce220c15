"""Tests of the module `encore`, with the installed wheel and a real run of its program.

`packaging/test` runs them: pytest packaging/python/test_encore.py
"""

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import encore

NOTEBOOK = Path(__file__).parent / "notebook.ipynb"

SPEC = """\
name = "small"
sessions = 4000
[data]
members = 100
friends_per_member = 20
[mix]
view_profile = 40
list_friends = 40
thaw_friendship = 20
"""

PLAN = """\
name = "pair"
title = "Two of the same"
spec = "small.toml"
rating = "soar"
sla = "95% < 100ms, 100% unpredictable, 1s"
search_s = 0.2
max_threads = 1
[axis]
label = "size"
points = [{ label = "small" }]
[[stores]]
label = "one"
url = "memory:?latency_us=20000"
"""


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encore")
    (folder / "small.toml").write_text(SPEC)
    (folder / "plan.toml").write_text(PLAN)
    return folder


def experiment(folder, name):
    """A real run of a second, against a store that tells some lies."""
    store = ("--store", "memory:?stale=0.5&latency_us=5000", "--sla", "95% < 100ms, 100% unpredictable, 1s")
    try:
        encore.run("run", "small.toml", *store, "--threads", 4, "--duration", "1s", "--name", name, cwd=folder)
    except encore.EncoreError as error:
        # A busy machine makes it void. Its log is whole all the same.
        if error.exit_code != 3 or " void" not in str(error):
            raise
    return folder / "runs" / name


@pytest.fixture(scope="session")
def run_folder(folder):
    return experiment(folder, "mine")


@pytest.fixture
def run(run_folder):
    with encore.load(run_folder) as run:
        yield run


def test_every_view_has_the_rows_that_the_program_sees(run, run_folder):
    for view in run.views:
        statement = f"SELECT count(*) AS n FROM {view}"
        answer = encore.run("analyze", "sql", run_folder, statement, "--format", "json")
        expect = json.loads(answer.stdout)[0]["n"]
        assert run.sql(statement).fetchall() == [(expect,)], view
        assert getattr(run, view).columns == run.view(view).columns, view
    assert run.sql("SELECT count(*) > 0 FROM unpredictable").fetchall() == [(True,)]


def test_the_experiment_is_as_the_program_says(run, run_folder):
    verdict = json.loads(next(run_folder.glob("experiments/*/verdict.json")).read_text())
    columns = "threads, ruling, reasons, throughput_per_s, slice_ns"
    threads, ruling, reasons, throughput, slice_ns = run.sql(f"SELECT {columns} FROM experiments").fetchall()[0]
    assert (threads, ruling, reasons) == (4, verdict["ruling"], verdict["reasons"])
    assert throughput == verdict["figures"]["throughput_per_s"]
    assert slice_ns == round(verdict["figures"]["timeline"]["slice_s"] * 1e9)
    # The timeline is computed here, from the operations and this table.
    assert run.sql("SELECT sum(ok) FROM timeline").fetchall()[0][0] == verdict["figures"]["overall"]["ok"]


def test_frames_of_pandas_and_polars(run):
    frame = run.df("FROM experiments")
    assert len(frame) == 1 and frame["threads"][0] == 4
    assert run.pl("SELECT operation FROM operations").height == run.operations.count("*").fetchall()[0][0]


def test_printed_commands_begin_as_the_command_was_called(run_folder):
    path = str(Path(sys.executable).with_name("encore"))

    def first_next(command, **environment):
        ask = ["rate", "small.toml", "--store", "memory:?latency_us=20000", "--search-s", "0.1", "--max-threads", "1"]
        ask += ["--sla", "95% < 100ms, 100% unpredictable, 0.5s"]
        folder = run_folder.parent.parent
        environment = {**os.environ, **environment}
        said = subprocess.run([*command, *ask], capture_output=True, text=True, cwd=folder, env=environment)
        lines = said.stdout.splitlines()
        return lines[lines.index("next:") + 1].strip()

    assert first_next([path]).startswith(f"{path} analyze ")
    assert first_next(["encore"], PATH=f"{Path(path).parent}:/usr/bin:/bin").startswith("encore analyze ")
    assert first_next([sys.executable, "-m", "encore"]).startswith(f"{path} analyze ")


@pytest.mark.parametrize(("method", "package", "extra"), [("df", "pandas", "pandas"), ("pl", "polars", "polars")])
def test_a_missing_package_is_named_with_its_remedy(run, monkeypatch, method, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"Python package {package}.*pip install 'encore-rating\[{extra}\]'"):
        getattr(run, method)("FROM experiments")


def test_a_run_that_is_not_analyzed_yet_is_analyzed(folder):
    fresh = experiment(folder, "fresh")
    for table in ("operations", "unpredictable"):
        subprocess.run(["rm", "-r", fresh / table], check=True)
    with encore.load(fresh) as run:
        assert run.operations.count("*").fetchall()[0][0] > 0


def test_names_with_quotes_and_patterns(folder, run_folder):
    odd = folder / "it's [one] *"
    odd.symlink_to(run_folder)
    with encore.load(odd) as run:
        assert run.operations.count("*").fetchall()[0][0] > 0
    copy = folder / "a'b [c] *?"
    subprocess.run(["cp", "-r", run_folder, copy], check=True)
    with encore.load(copy) as run:
        assert run.operations.count("*").fetchall()[0][0] > 0


def test_a_run_without_operations_has_empty_views(folder, run_folder):
    empty = folder / "empty"
    subprocess.run(["cp", "-r", run_folder, empty], check=True)
    for part in ("operations", "unpredictable", "experiments"):
        subprocess.run(["rm", "-r", empty / part], check=True)
    (empty / "experiments").mkdir()
    with encore.load(empty) as run:
        assert [run.view(view).fetchall() for view in run.views] == [[]] * len(run.views)


def test_a_comparison_has_cells(folder):
    encore.run("compare", "plan.toml", cwd=folder)
    with encore.load(folder / "runs" / "pair") as comparison:
        assert comparison.views == ("cells",)
        point, store, outcome, soar = comparison.sql("SELECT point, store, outcome, soar FROM cells").fetchall()[0]
        assert (point, store, outcome) == ("small", "one", "rated") and soar > 0
        assert comparison.cells.count("*").fetchall() == [(1,)]


def test_errors_say_what_is_wrong(run, folder):
    with pytest.raises(KeyError, match="no view 'nothing'; the views are operations"):
        run.view("nothing")
    with pytest.raises(encore.EncoreError, match="is not a folder; give the folder of a run"):
        encore.load(folder / "nothing")
    with pytest.raises(encore.EncoreError, match="encore analyze failed: "):
        encore.load(folder)
    with pytest.raises(encore.EncoreError, match="encore run failed: "):
        encore.run("run", "nothing.toml", cwd=folder)


def test_nothing_is_left_in_the_current_folder(run_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with encore.load(run_folder, memory_limit="1GiB") as run:
        run.sql("SELECT * FROM operations ORDER BY response_ns").fetchall()
    assert list(tmp_path.iterdir()) == []


def test_the_command_is_the_program(tmp_path):
    command = Path(sys.executable).with_name("encore")
    said = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
    assert encore.__version__ in said.split()
    assert subprocess.run([command, "no-such-command"], capture_output=True).returncode == 2


def test_the_notebook_runs(run_folder, tmp_path, monkeypatch):
    """The cells one after the other, with a plot that is drawn and not shown."""
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    assert all(not cell.get("outputs") for cell in cells), "outputs do not belong into the repository"
    source = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    script = tmp_path / "notebook.py"
    script.write_text(source.replace('"runs/notebook"', repr(os.fspath(run_folder))))
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(tmp_path)
    found = runpy.run_path(str(script))
    assert found["run"].folder == run_folder
    assert found["figure"].axes[0].lines
