"""Tables to make a page of, and what is inside of a written page."""

import base64
import gzip
import json
from pathlib import Path


def write_table(path, **columns):
    path.write_text(json.dumps(columns))
    return path


def figures_of(page):
    return json.loads(_inside(page, "figures"))


def details_of(page):
    return json.loads(gzip.decompress(base64.b64decode(_inside(page, "details"))))


def _inside(page, name):
    return Path(page).read_text(encoding="utf-8").split(f'id="{name}">')[1].split("</script>")[0]
