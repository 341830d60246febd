"""The checks of `make audit`, and SECURITY.md: exceptions have reasons, and tests that are named exist."""

import json
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def audit():
    return runpy.run_path(str(ROOT / ".ci" / "audit.py"))


def report(*packages):
    return json.dumps({"dependencies": list(packages), "fixes": []})


GOOD = {"name": "numpy", "version": "2.4", "vulns": []}
BAD = {
    "name": "old",
    "version": "1.0",
    "vulns": [{"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": ["1.1"]}],
}
UNKNOWN = {"name": "ours", "skip_reason": "Dependency not found on PyPI"}


def answer(audit, monkeypatch, reports, accepted=()):
    """Return the exit code where services answer with these reports."""
    names = audit["main"].__globals__
    monkeypatch.setitem(names, "ask", lambda service: reports.get(service, ""))
    monkeypatch.setitem(names, "ACCEPTED", dict(accepted))
    return audit["main"]()


@pytest.mark.parametrize("silent", ["", "Traceback", "{}", "[]", "null", report(), report(UNKNOWN)])
def test_where_no_service_answers_it_says_that_nothing_was_checked(silent, audit, monkeypatch, capsys):
    assert answer(audit, monkeypatch, {"pypi": silent, "osv": silent}) == 0
    shown = capsys.readouterr().out
    assert "NOT RUN" in shown
    assert "checked by" not in shown


def test_vulnerabilities_fail_unless_they_are_accepted(audit, monkeypatch, capsys):
    assert answer(audit, monkeypatch, {"pypi": report(GOOD, UNKNOWN)}) == 0
    assert "1 packages checked by pypi, 0 vulnerabilities" in (shown := capsys.readouterr().out)
    assert "not checked: ours" in shown
    assert answer(audit, monkeypatch, {"osv": report(GOOD, BAD)}) == 1
    assert "old 1.0: PYSEC-1, CVE-1; fixed in: 1.1" in capsys.readouterr().out
    assert answer(audit, monkeypatch, {"osv": report(BAD)}, {"CVE-1": "not used here"}) == 0
    assert "accepted: not used here" in capsys.readouterr().out


def test_exceptions_of_bandit_are_few_and_have_reasons():
    for file in (ROOT / "src").rglob("*.py"):
        lines = file.read_text().splitlines()
        for above, line in zip(["", *lines], lines, strict=False):
            if "nosec" in line:
                assert re.search(r"# nosec B\d{3}$", line), f"{file}: name the check"
                assert above.strip().startswith("# "), f"{file}: give the reason in the line above"
    settings = (ROOT / "pyproject.toml").read_text().split("[tool.bandit]")[1].split("\n\n")[0]
    assert all(re.search(r"# \w+", line) for line in settings.splitlines() if re.search(r'"B\d', line))


def test_the_page_of_threats_names_tests_that_exist():
    page = (ROOT / "SECURITY.md").read_text()
    assert len(page.splitlines()) <= 120
    named = re.findall(r"`(tests/[\w/.]+\.py)(?:::(\w+))?`", page)
    assert len(named) >= 15
    for file, function in named:
        assert (ROOT / file).is_file(), file
        assert not function or f"def {function}(" in (ROOT / file).read_text(), f"{file}::{function}"
    rows = [
        line for line in page.splitlines() if line.startswith("| ") and not line.startswith(("| what", "|--"))
    ]
    assert all("`tests/" in row for row in rows), "each promise names the test that holds it"
