"""Check all that a release needs, and print the commands that make it. Publishes nothing.

`.ci/run` leaves the commit that it passed in `.git/hubless-ci`; without that, or after another commit, a
release is refused.
"""

import ast
import datetime
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def git(*words: str, at: Path = ROOT) -> str:
    """Return what git prints; "" where it fails."""
    return subprocess.run(["git", *words], cwd=at, capture_output=True, text=True).stdout.strip()


def text(name: str, at: Path) -> str:
    """Return the text of a file of the checkout."""
    return (at / name).read_text(encoding="utf-8")


def version(at: Path) -> str:
    """Return the version in the source."""
    return str(ast.literal_eval(text("src/hubless/support/version.py", at).rsplit("= ", 1)[1]))


def faults(at: Path, today: str) -> Iterator[str]:
    """Say what keeps this checkout from being released, and how to repair it."""
    name = version(at)
    if not re.fullmatch(r"\d+\.\d+\.\d+", name):
        yield f"the version is {name}: a release has three numbers, such as 0.2.0"
    yield from faults_of_git(at, name)
    first = re.search(r"^## .*$", text("CHANGELOG.md", at), re.MULTILINE)
    wanted = f"## [{name}] - {today}"
    if first is None or first[0] != wanted:
        yield f"the first section of CHANGELOG.md is {first and first[0]!r}: call it {wanted!r}"
    for line in (f"version: {name}", f"date-released: {today}"):
        if line not in text("CITATION.cff", at).splitlines():
            yield f"CITATION.cff lacks the line {line!r}"
    if f'  version: "{name}"' not in text("recipe/recipe.yaml", at).splitlines():
        yield f"recipe/recipe.yaml is of another version: let it be {name}"


def faults_of_git(at: Path, name: str) -> Iterator[str]:
    """Say what keeps the commit from being released."""
    if (branch := git("branch", "--show-current", at=at)) != "main":
        yield f"this is the branch {branch or '(none)'}: releases are made from main"
    if changed := git("status", "--porcelain", at=at):
        yield f"there are changes that are not committed: {', '.join(changed.splitlines()[:3])}"
    if f"v{name}" in git("tag", at=at).split():
        yield f"the tag v{name} exists: raise the version in src/hubless/support/version.py"
    passed = Path(at, git("rev-parse", "--git-path", "hubless-ci", at=at))
    commit = git("rev-parse", "HEAD", at=at)
    if not passed.is_file() or passed.read_text().strip() != commit:
        yield f"CI has not passed for {commit[:12] or 'this commit'}: run .ci/run"


def commands(name: str) -> str:
    """Return what a person types to release; the upload cannot be undone."""
    return f"""
Version {name} can be released. Nothing has been published. Type this; the upload cannot be undone:

  git tag --annotate v{name} --message 'hubless {name}'
  git push origin main v{name}
  python -m twine upload dist/hubless-{name}.tar.gz dist/hubless-{name}-py3-none-any.whl

Then let README.md and docs/start.md say that hubless is on PyPI, and let recipe/recipe.yaml take its
source from there."""


def main() -> int:
    """Print what is wrong; where nothing is, build, use what was built, and print the commands."""
    found = list(faults(ROOT, datetime.datetime.now(datetime.UTC).date().isoformat()))
    for fault in found:
        print(f"not ready: {fault}")
    if found:
        return 1
    subprocess.run([sys.executable, ROOT / ".ci" / "package.py", "--to", ROOT / "dist"], check=True)
    print(commands(version(ROOT)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
