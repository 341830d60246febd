"""Build the sdist and the wheel, and use the wheel as a stranger would: in an empty environment, elsewhere.

    python .ci/package.py            # in CI: what an extra lacks is asked
    python .ci/package.py --all      # extras are resolved together, and each is installed by itself
    python .ci/package.py --to dist  # and keep what was built

Nothing is published. Both archives are built twice and must be the same to the byte.
"""

import argparse
import ast
import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
LARGEST = {".whl": 1_000_000, ".gz": 4_000_000}  # bytes; more is something that does not belong there

# What each extra is for: in an environment without it, the command fails with a message that names the extra.
FILES = dict.fromkeys(("empty.parquet", "empty.faiss", "empty.db", "empty.duckdb"), "")  # to find
FILES["shard/edge_config.json"] = '{"vectors": {"": {"size": 4, "distance": "Cosine"}}}'
COMMANDS = {
    "torch": "python -c 'from hubless import nearest; nearest([[0.0]], [[1.0]], 1, precision=\"bfloat16\")'",
    "plot": "python -c 'from hubless.plot import check_card; check_card(\"card.png\")'",
    "files": "hubless doctor empty.parquet",
    "faiss": "hubless doctor empty.faiss",
    "lancedb": "hubless doctor lancedb:shard#table",
    "pgvector": "hubless doctor postgresql://localhost/database#table",
    "qdrant": "hubless doctor qdrant:shard#collection",
    "qdrant-edge": "hubless doctor qdrant-edge:shard",
    "chroma": "hubless doctor chroma:shard#collection",
    "embed": "hubless report vectors.npy --labels labels.npy --serve --embed st:unknown",
    "onnx": (
        "python -c 'from hubless import MoveLabeled, save; "
        'save(MoveLabeled().fit([[0.0], [1.0], [4.0]], [0, 0, 1]), "map")\' '
        "&& hubless export map onnx -o unwritten"
    ),
    "llama-index": (
        "python -c 'from hubless import load; from hubless.integrations.llama_index import MoveNodes; "
        'MoveNodes(load("model"))\''
    ),
    # files of these two are checked before their engine is asked for, so there is none to find
    "usearch": 'python -c \'from hubless.support.imports import need; need("usearch.index", "usearch")\'',
    "hnswlib": 'python -c \'from hubless.support.imports import need; need("hnswlib", "hnswlib")\'',
    "sqlite-vec": "hubless doctor sqlite:empty.db#items",
    "duckdb": "hubless doctor duckdb:empty.duckdb#items",
    "hub": "hubless explain hf://user/model",
    "mteb": "python -c 'from hubless.integrations.mteb import MovedEncoder; MovedEncoder(None, None)'",
    "dask": "hubless fit vectors.npy --labels labels.npy --dask -o unwritten",
}
GROUPS = {
    "stores": ("duckdb", "faiss", "files", "lancedb", "pgvector", "qdrant", "sqlite-vec", "usearch")
}  # extras that are several others
FOR_DEVELOPERS = {"bench", "test", "test-all", "docs", "dev"}


def run(*command: str | Path, **options: object) -> str:
    """Run a command and return what it prints; if it fails, show that and stop."""
    done = subprocess.run(
        list(map(str, command)), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}\nfailed with exit code {done.returncode}")
    return done.stdout


# --- building -----------------------------------------------------------------------------------------------


def build(folder: Path) -> tuple[Path, Path]:
    """Build the sdist and, from it, the wheel; return both."""
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, env=dated())
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


def dated() -> dict[str, str]:
    """Return the environment of a build: files in the archives have the time of the last commit."""
    shown = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True)
    return {"SOURCE_DATE_EPOCH": shown.stdout.strip() or "1580601600", **os.environ}


def digest(file: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def committed() -> set[str]:
    """Return the files that git knows, none where this is not a checkout."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout
    return set(listed.splitlines())


def check_contents(sdist: Path, wheel: Path) -> None:
    """Refuse archives that lack a file, or have one that does not belong there."""
    known = committed()
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()} - {"PKG-INFO"}
    with zipfile.ZipFile(wheel) as archive:
        installed = {name for name in archive.namelist() if ".dist-info/" not in name}
    if known:
        refuse("the sdist", inside ^ known)
        refuse("the wheel", installed ^ {name[4:] for name in known if name.startswith("src/hubless/")})
    for file in (sdist, wheel):
        if file.stat().st_size > LARGEST[file.suffix]:
            sys.exit(f"{file.name} has {file.stat().st_size:,} bytes; {LARGEST[file.suffix]:,} are allowed")
        print(f"{file.name}: {file.stat().st_size:,} bytes, SHA-256 {digest(file)}")


def refuse(what: str, differing: set[str]) -> None:
    """Stop where an archive has other files than those that are committed."""
    if differing:
        sys.exit(f"{what} and what is committed differ in: {', '.join(sorted(differing))}")


# --- using --------------------------------------------------------------------------------------------------


def environment(folder: Path, *packages: str | Path) -> Path:
    """Make an empty environment, install packages into it, and return its folder of programs."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    programs = folder / "bin"
    run(*PIP, "--python", programs / "python", "install", "--quiet", "--no-compile", *packages)
    return programs


def outside(programs: Path, folder: Path) -> dict[str, object]:
    """Return the options that run a program of an environment in a folder, and hide the checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}
    return {"cwd": folder, "env": {**kept, "PATH": f"{programs}:/usr/bin:/bin", "NO_COLOR": "1"}}


def use(programs: Path, folder: Path) -> None:
    """Run the program, the demo, and a user's program that calls the whole public API."""
    at = outside(programs, folder)
    where = run(programs / "python", "-c", "import hubless; print(hubless.__file__)", **at).strip()
    if not Path(where).is_relative_to(programs.parent):
        sys.exit(f"hubless was imported from {where}, and not from the wheel")
    assert "first steps" in run(programs / "hubless", **at)
    assert run(programs / "hubless", "--version", **at).split() == ["hubless", where and version()]
    assert "Move-labeled" in run(programs / "hubless", "demo", "--splits", "1", "--report", "demo.html", **at)
    print(run(programs / "python", ROOT / ".ci" / "program.py", **at), end="")


def version() -> str:
    """Return the version in the source."""
    file = ROOT / "src" / "hubless" / "support" / "version.py"
    return str(ast.literal_eval(file.read_text(encoding="utf-8").rsplit("= ", 1)[1]))


def check_types(programs: Path, folder: Path) -> None:
    """Let mypy and pyright check the user's program against what is installed: strictly."""
    program = ROOT / ".ci" / "program.py"
    here = {"cwd": folder, "env": outside(programs, folder)["env"]}
    mypy = ("-m", "mypy", "--strict", "--ignore-missing-imports", "--cache-dir", folder / "mypy")
    print(
        "mypy:",
        run(sys.executable, *mypy, "--python-executable", programs / "python", program, **here),
        end="",
    )
    settings = {"include": [str(program)], "typeCheckingMode": "standard", "reportMissingTypeStubs": False}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    pyright = ("-m", "basedpyright", "--project", folder, "--pythonpath", programs / "python")
    print("pyright:", run(sys.executable, *pyright, **here), end="")


# --- extras -------------------------------------------------------------------------------------------------


def users_extras() -> list[str]:
    """Return the extras that are for users, each with a command that needs it."""
    extras = set(PROJECT["optional-dependencies"]) - FOR_DEVELOPERS
    refuse("COMMANDS of .ci/package.py", (set(COMMANDS) | set(GROUPS)) ^ extras)
    return sorted(extras)


def check_messages(programs: Path, folder: Path) -> None:
    """Refuse a command that does not name the extra that it lacks."""
    for name, content in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    for extra, command in COMMANDS.items():
        done = ask(command, programs, folder)
        if not done.returncode or f"pip install 'hubless[{extra}]'" not in done.stderr:
            sys.exit(f"without its extra, {extra}, this does not name it: {command}\n{done.stderr}")
    print(f"without an extra, {len(COMMANDS)} commands name the one that they lack")


def ask(command: str, programs: Path, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a command that may fail."""
    at = outside(programs, folder)
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300, **at)


def resolve(wheel: Path) -> None:
    """Refuse extras for which there are no packages, all together."""
    every = f"{wheel}[{','.join(users_extras())}]"
    run(*PIP, "install", "--dry-run", "--quiet", "--ignore-installed", *pinned(), every)
    print(f"packages for all extras exist: {', '.join(users_extras())}")


def pinned() -> Iterator[str]:
    """Return the one version of torch that is tested: others bring gigabytes of CUDA."""
    return (line for line in PROJECT["optional-dependencies"]["test-all"] if line.startswith("torch=="))


def modules_needed(extra: str) -> set[str]:
    """Return the modules that the source loads by need(module, extra)."""
    return {
        node.args[0].value
        for file in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "need"
        and [each.value for each in node.args[1:] if isinstance(each, ast.Constant)] == [extra]
    }  # fmt: skip


def install_each(wheel: Path, folder: Path, work: Path) -> None:
    """Install each extra into an empty environment: what the source needs by it is there, and is found."""
    for extra in users_extras():
        began = monotonic()
        torch = pinned() if extra in ("torch", "embed") else ()
        programs = environment(folder / extra, f"{wheel}[{extra}]", *torch)
        for part in GROUPS.get(extra, (extra,)):
            for module in sorted(modules_needed(part)):
                run(programs / "python", "-c", f"import {module}", **outside(programs, work))
            said = ask(COMMANDS[part], programs, work).stderr
            if "is not installed" in said or "pip install" in said:
                sys.exit(f"hubless[{extra}] is installed, and yet: {COMMANDS[part]}\n{said}")
        print(f"hubless[{extra}]: installed and found, {monotonic() - began:.0f} s", flush=True)


# --- all of it ----------------------------------------------------------------------------------------------


def timed(words: str, step: Callable[..., object], *arguments: object) -> object:
    """Run a step and print how long it took."""
    began = monotonic()
    result = step(*arguments)
    print(f"  {words}: {monotonic() - began:.0f} s", flush=True)
    return result


def main() -> None:
    """Build, compare, install and use; stop at the first fault."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--all", action="store_true", help="install each extra, too")
    options.add_argument("--to", type=Path, help="folder to keep the archives in")
    wanted = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, work = Path(name), Path(name, "work")
        work.mkdir()
        sdist, wheel = timed("build", build, folder / "dist")
        again = timed("build again", build, folder / "again")
        refuse(
            "two builds", {file.name for file in again if digest(file) != digest(folder / "dist" / file.name)}
        )
        check_contents(sdist, wheel)
        run(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel)
        programs = timed("install", environment, folder / "empty", wheel)
        timed("use", use, programs, work)
        timed("check types", check_types, programs, work)
        timed("ask for extras", check_messages, programs, work)
        if wanted.all:  # CI has an environment with all of them
            timed("resolve extras", resolve, wheel)
            install_each(wheel, folder, work)
        if wanted.to:
            wanted.to.mkdir(exist_ok=True)
            for file in (sdist, wheel):
                (wanted.to / file.name).write_bytes(file.read_bytes())
                print(f"kept: {wanted.to / file.name}")


if __name__ == "__main__":
    main()
