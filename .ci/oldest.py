"""Write the oldest versions that pyproject.toml allows, for pip: python .ci/oldest.py > .ci/oldest.txt.

`make oldest` runs the tests with them; a test compares the file with pyproject.toml.
"""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
# what users do not install, and tools of the tests; pandas is there because users give data frames
FOR_DEVELOPERS = {"bench", "test-all", "docs", "dev"}
TOOLS = {"array-api-strict", "hatchling", "hypothesis", "pytest", "pytest-xdist", "hubless"}


def bounds() -> dict[str, Version]:
    """Return the lowest version of each package that hubless or an extra for users requires."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"]]
    lines += [line for name in set(extras) - FOR_DEVELOPERS for line in extras[name]]
    lowest: dict[str, Version] = {}
    for requirement in map(Requirement, lines):
        for bound in requirement.specifier:
            if bound.operator == ">=" and requirement.name not in TOOLS:
                version = Version(bound.version)
                lowest[requirement.name] = min(version, lowest.get(requirement.name, version))
    return lowest


if __name__ == "__main__":
    for name, version in sorted(bounds().items()):
        print(f"{name}=={version}")
