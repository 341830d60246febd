"""`make release` refuses what is not ready, and publishes nothing."""

import re
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

from hubless import __version__

ROOT = Path(__file__).parent.parent
RELEASE = runpy.run_path(str(ROOT / ".ci" / "release.py"))
TODAY = "2030-01-31"
CHANGELOG = "CHANGELOG.md"


def git(folder, *words):
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder, check=True)


def commit(folder):
    """Commit all, and say that CI has passed."""
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "a change")
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True).stdout
    (folder / ".git" / "hubless-ci").write_text(head)


@pytest.fixture
def ready(tmp_path):
    """A checkout that can be released."""
    for name in ("CITATION.cff", CHANGELOG, "recipe/recipe.yaml", "src/hubless/support/version.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    citation = (tmp_path / "CITATION.cff").read_text()
    (tmp_path / "CITATION.cff").write_text(f"{citation}date-released: {TODAY}\n")
    changes = (tmp_path / CHANGELOG).read_text()
    (tmp_path / CHANGELOG).write_text(
        re.sub("^## .*$", f"## [{__version__}] - {TODAY}", changes, count=1, flags=re.MULTILINE)
    )
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    commit(tmp_path)
    return tmp_path


def replace(file, old, new):
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new, 1))


def faults(folder, today=TODAY):
    return " | ".join(RELEASE["faults"](folder, today))


def test_what_is_ready_is_not_refused(ready):
    assert faults(ready) == ""


def test_another_day_is_refused(ready):
    assert "CHANGELOG.md" in (said := faults(ready, "2030-02-01"))
    assert "date-released: 2030-02-01" in said


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        (CHANGELOG, f"## [{__version__}] - {TODAY}", "## [Unreleased]", "'## [Unreleased]'"),
        ("CITATION.cff", f"version: {__version__}", "version: 0.0.1", f"the line 'version: {__version__}'"),
        ("recipe/recipe.yaml", f'version: "{__version__}"', 'version: "0.0.1"', "recipe/recipe.yaml"),
        ("src/hubless/support/version.py", f'"{__version__}"', '"0.3.dev1"', "three numbers"),
    ],
)
def test_files_that_do_not_agree_are_refused(file, old, new, said, ready):
    replace(ready / file, old, new)
    assert "not committed" in faults(ready)
    commit(ready)
    assert said in faults(ready)


def test_a_commit_that_is_not_on_main_tested_and_new_is_refused(ready):
    git(ready, "tag", f"v{__version__}")
    assert f"the tag v{__version__} exists" in faults(ready)
    git(ready, "switch", "--quiet", "--create", "aside")
    assert "the branch aside" in faults(ready)
    git(ready, "commit", "--quiet", "--allow-empty", "--message", "another")
    assert "CI has not passed" in faults(ready)


def test_the_commands_are_printed_and_not_run(ready):
    printed = RELEASE["commands"](__version__)
    assert f"git tag --annotate v{__version__}" in printed
    assert "twine upload" in printed
    source = (ROOT / ".ci" / "release.py").read_text()
    assert [line for line in source.splitlines() if "upload" in line and "run(" in line] == []
