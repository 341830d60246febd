"""Contents of files: their checksum, and half of them."""

import hashlib


def digest(content):
    return hashlib.sha256(content).hexdigest()


def cut(content):
    return content[: len(content) // 2]
