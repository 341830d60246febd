"""From fit to rollback on PostgreSQL, by the commands that are printed, in processes of their own."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from hubless import cli
from hubless.testing.store_cases import sample
from tests.stores.pg_cases import as_text, fill, run
from tests.stores.postgres import PASSWORD

pytestmark = pytest.mark.services

TABLE = 'app."The Items"'


@pytest.fixture
def bash(tmp_path):
    """Runs a line by bash; neither its result nor an error may show the password."""
    program = tmp_path / "hubless"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m hubless "$@"\n')
    program.chmod(0o700)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PGPASSWORD": PASSWORD}

    def bash(line):
        ran = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=tmp_path, env=env)
        assert ran.returncode == 0, ran.stderr
        assert PASSWORD not in ran.stdout + ran.stderr
        return ran.stdout

    return bash


def rows(address):
    return run(address, f"SELECT id, embedding::text FROM {TABLE} ORDER BY id")


@pytest.mark.slow
def test_printed_commands_run_without_the_password(address, bash, tmp_path):
    """Two columns of vectors, a name with a space, and an option that the connection needs."""
    ids, X, y, _ = sample(120)
    d = X.shape[1]
    run(
        address,
        "CREATE SCHEMA app",
        f"CREATE TABLE {TABLE} (id bigint PRIMARY KEY, kind text, embedding vector({d}), other vector({d}))",
    )
    values = zip(ids.tolist(), map(str, y), map(as_text, X), map(as_text, X), strict=True)
    fill(address, ("app", "The Items"), ("id", "kind", "embedding", "other"), values)
    before = rows(address)
    option = ("&" if "?" in address else "?") + "options=-c%20work_mem%3D9MB"
    source = f"'{address}{option}#{TABLE}' --vector embedding"
    said = bash(f"hubless fit {source} --labels kind --mover ridge -o 'a model'")
    for verb in ("apply", "promote", "rollback"):
        (line,) = re.findall(rf"^(?:next|To undo): (hubless {verb} .*)$", said, re.MULTILINE)
        assert "options=-c%20work_mem%3D9MB" in line
        assert ("PGPASSWORD" in said) == (verb == "apply")  # the others were typed without a password
        said = bash(line)
        assert (rows(address) == before) == (verb != "promote")
    assert "serves the original again" in said
    said = bash(f"hubless apply 'a model' {source} -o '{address}#app.named'")  # the target is an address, too
    (line,) = re.findall("^next: (hubless promote .*)$", said, re.MULTILINE)
    assert "now serves" in bash(line)
    np.testing.assert_array_equal([i for i, _ in rows(address)], sorted(ids))
    folder = tmp_path / "a model"
    assert not [path for path in folder.iterdir() if PASSWORD.encode() in path.read_bytes()]


def test_no_verb_shows_the_password_in_an_error(capsys, tmp_path, monkeypatch):
    """Of servers that cannot be reached, of names that are wrong, in usage errors and as JSON."""
    monkeypatch.chdir(tmp_path)
    np.save("v.npy", np.eye(3, dtype=np.float32))
    source = f"postgresql://me:{PASSWORD}@127.0.0.1:1/db#items"
    for arguments in (
        ["doctor", source],
        ["doctor", source, "--json"],
        ["doctor", "v.npy", "--queries", source],
        ["status", source],
        ["rollback", source],
        ["promote", source, "moved"],
        ["fit", source, "--labels", "kind"],
        ["doctor", f"postgresql+psycopg://me:{PASSWORD}@host/db#t"],
        ["doctor", f"lancedb:s3://KEY:{PASSWORD}@bucket#t"],
        ["doctor", f"qdrant:http://localhost:1?api_key={PASSWORD}#t"],
        ["doctor", f"qdrant-edge:http://me:{PASSWORD}@host", "--id", "x"],
        ["doctor", f"host=x password={PASSWORD}"],
        ["doctor", f"postgresql:/me:{PASSWORD}@host/{'x' * 300}.npy"],
    ):
        assert cli.main(arguments) == 1
        shown = capsys.readouterr()
        assert shown.err.startswith("hubless: ")
        assert PASSWORD not in shown.out + shown.err
    for arguments in (
        ["doctor", "v.npy", source],
        [source, "doctor"],
        ["doctor", "v.npy", f"postgresql://me:a b {PASSWORD}@h/d#t"],
        ["doctor", "v.npy", "-k", source],
    ):
        with pytest.raises(SystemExit):
            cli.main(arguments)
        assert PASSWORD not in capsys.readouterr().err
