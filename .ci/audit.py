"""Ask pip-audit whether installed packages have known vulnerabilities; fail where one has.

pip-audit asks a service on the network. Where none answers, nothing is known: this says so, and neither fails
nor claims that all is well.
"""

import json
import subprocess
import sys
from typing import Any

SERVICES = ("pypi", "osv")
ACCEPTED: dict[str, str] = {}  # id of a vulnerability → why it does not concern hubless
PATIENCE = 600  # seconds


def ask(service: str) -> str:
    """Return what pip-audit prints as JSON; "" where it fails."""
    options = ["--format", "json", "--progress-spinner", "off", "--skip-editable"]
    command = [sys.executable, "-m", "pip_audit", *options, "--vulnerability-service", service]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE).stdout
    except subprocess.TimeoutExpired:
        return ""


def read(report: str) -> tuple[list[Any], list[str]] | None:
    """Return the packages that were checked, and the names of the others; None where none was checked."""
    try:
        packages = json.loads(report)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return None
    checked = [package for package in packages if "vulns" in package]
    others = [package["name"] for package in packages if "vulns" not in package]
    return (checked, others) if checked else None


def judge(checked: list[Any], accepted: dict[str, str]) -> tuple[list[str], bool]:
    """Return a line for each vulnerability, and whether one is not accepted."""
    lines, is_bad = [], False
    for package in checked:
        for found in package["vulns"]:
            ids = [found["id"], *found.get("aliases", ())]
            why = next((accepted[name] for name in ids if name in accepted), None)
            is_bad |= why is None
            fixed = ", ".join(found.get("fix_versions", ())) or "none yet"
            tail = f"accepted: {why}" if why else f"fixed in: {fixed}"
            lines.append(f"pip-audit: {package['name']} {package['version']}: {', '.join(ids)}; {tail}")
    return lines, is_bad


def main() -> int:
    """Ask one service after the other; 1 where a package has a vulnerability that is not accepted."""
    for service in SERVICES:
        result = read(ask(service))
        if result is not None:
            checked, others = result
            lines, is_bad = judge(checked, ACCEPTED)
            print(f"pip-audit: {len(checked)} packages checked by {service}, {len(lines)} vulnerabilities")
            print(*lines, sep="\n", end="\n" * bool(lines))
            if others:
                print(f"pip-audit: not known to {service}, so not checked: {', '.join(others)}")
            return int(is_bad)
    print(f"pip-audit: NOT RUN, its services ({', '.join(SERVICES)}) cannot be reached; nothing was checked")
    return 0


if __name__ == "__main__":
    sys.exit(main())
