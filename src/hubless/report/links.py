"""Links from a page to the user's own rows: an address with {id}, which the page replaces."""

from urllib.parse import urlsplit

from ..support.credentials import secrets_in

SCHEMES = ("http", "https", "file")  # javascript:, data: and others could run what an id says
PLACE = "{id}"
LONGEST = 1000  # characters
EXAMPLE = "'https://example.org/items/{id}'"


def check_link(template: str) -> str:
    """Return the address of a row, with {id} where its id belongs; ValueError where a page must not have it.

    An id never chooses the server, and no password gets into a page.
    """
    try:
        parts = urlsplit(template)
    except ValueError:  # such as http://[
        parts = urlsplit("")
    if "@" in parts.netloc or secrets_in(template):
        raise ValueError("a link must have no password, key or token: whoever gets the page could read it.")
    problem = None
    if parts.scheme not in SCHEMES or not (parts.netloc or parts.scheme == "file"):
        problem = "starts with http://, https:// or file://"
    elif PLACE in parts.netloc or PLACE not in template:
        problem = f"needs {PLACE} after the name of the server"
    elif len(template) > LONGEST or not template.isprintable() or " " in template:
        problem = f"is one line of at most {LONGEST} characters, without spaces"
    if problem is not None:
        raise ValueError(f"a link {problem}, such as {EXAMPLE}; got {template!r}.")
    return template
