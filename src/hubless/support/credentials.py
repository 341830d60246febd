"""Sources as they may be shown: without passwords and keys, and otherwise as they were typed."""

import re
from collections.abc import Iterable
from urllib.parse import quote, unquote

from .text import printable

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_TABLE = re.compile(r'#(?:[^#@"]*\.)?(?:[^#@"]*|"[^"]*")$')
# A password ends at the last @: one that was not encoded may contain any letter. http://host:6333#a@b has
# none.
_PASSWORD = re.compile(r"https?://[^/:@\s]*:\d+(?:#|$)|(:/{1,2}[^/:@]*):(.*)@", re.DOTALL)
_SECRET = re.compile(  # names of parameters; not passfile or sslkey, which are paths
    r"password$|passwd$|passphrase$|pwd$|secret|token|credential|signature|^sig$"
    r"|(?:^|[-_.]|api|access)key(?:[-_]?id)?$",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(r"\b((?:ssl)?password|passwd|pwd)\s*=\s*('(?:\\.|[^'\\])*'|\S+)", re.IGNORECASE)
POSTGRES = "set PGPASSWORD, or use ~/.pgpass or a service file (postgresql:///?service=NAME#TABLE)"
OTHERS = "give it in the way of the database that needs no address, such as an environment variable"


def without_secrets(source: str) -> str:
    """Return a source without its password and its secret parameters, such as `?sslpassword=…`."""
    return _separate(source)[0]


def secrets_in(source: str) -> set[str]:
    """Return what `without_secrets` leaves out, in every spelling: as typed, decoded and encoded."""
    typed = _separate(source)[1]
    decoded = {unquote(text) for text in typed}
    return {*typed, *decoded, *(quote(text, safe="") for text in decoded)} - {""}


def _separate(source: str) -> tuple[str, list[str]]:
    """Return a source without its secrets, and the secrets."""
    if _URL.match(source) is None and "://" not in source:
        return _ASSIGNED.sub(r"\1=***", source), [found[2] for found in _ASSIGNED.finditer(source)]
    table = _TABLE.search(source)
    end = len(source) if table is None else table.start()
    address = source[:end]
    secrets = [found[2] for found in _PASSWORD.finditer(address) if found[1] is not None]
    address = _PASSWORD.sub(lambda found: found[0] if found[1] is None else f"{found[1]}@", address)
    start, _, query = address.partition("?")
    kept = []
    for parameter in query.split("&") if query else []:
        name, _, value = parameter.partition("=")
        if _SECRET.search(unquote(name)):
            secrets.append(value)
        else:
            kept.append(parameter)
    return start + ("?" + "&".join(kept) if kept else "") + source[end:], secrets


def without_secrets_in(message: str, words: Iterable[str] = ()) -> str:
    """Return a message in which sources are without their secrets.

    Where a source with spaces in its password ends cannot be seen: such passwords are taken from `words`,
    those of the command line.
    """
    for secret in sorted({each for word in words for each in secrets_in(word)}, key=len, reverse=True):
        for text in {secret, repr(secret)[1:-1], printable(secret)} if len(secret.split()) > 1 else ():
            message = message.replace(f":{text}@", "@").replace(f"={text}", "=***")
    message = re.sub(_URL.pattern + r"\S+", lambda source: without_secrets(source[0]), message)
    return _ASSIGNED.sub(r"\1=***", message)


def how_to_supply(*sources: str | None) -> list[str]:
    """Return a line that says where a command finds the secrets of these sources; none without secrets."""
    for source in sources:
        if source is not None and secrets_in(source):
            advice = POSTGRES if source.startswith("postgres") else OTHERS
            return [f"The password is left out of the command: {advice}."]
    return []
