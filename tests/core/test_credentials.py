"""Sources are shown without their secrets, and otherwise as they were typed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubless.support.credentials import how_to_supply, secrets_in, without_secrets, without_secrets_in

PG = "postgresql://me@host:5432/shop?sslmode=require&options=-c%20x%3D1#app.items"

UNCHANGED = [
    PG,
    "postgresql:///?service=shop#items",
    "postgresql://host:1,other:2/shop?passfile=/p&sslkey=/k&require_auth=scram-sha-256#items",
    'postgresql://host:5432/shop#"a@b"',
    "lancedb:s3://bucket/folder#items@branch",
    "lancedb:s3+ddb://bucket/folder?ddbTableName=t#items",
    "qdrant:http://localhost:6333#a@b",
    "qdrant-edge:/a/b:c",
    "folder/key=5/what?token=1.npy",
    "C:\\vectors.npy",
]
SHOWN = {
    "postgresql://me:secret@host:5432/shop?sslmode=require&options=-c%20x%3D1#app.items": PG,
    "postgresql://me@host:5432/shop?password=secret&sslmode=require&options=-c%20x%3D1#app.items": PG,
    "postgres://me@host/shop?sslpassword=secret#t": "postgres://me@host/shop#t",
    "postgres://me@host/shop?p%61ssword=secret&a=b#t": "postgres://me@host/shop?a=b#t",
    "postgresql://:secret@host/db#t": "postgresql://@host/db#t",
    'postgresql://me:secret@host/shop#app."a@b"': 'postgresql://me@host/shop#app."a@b"',
    "postgresql+psycopg://me:secret@host/db#t": "postgresql+psycopg://me@host/db#t",
    "postgresql://me:se/cret@host/db#t": "postgresql://me@host/db#t",
    "postgresql://me:se#cret@host/db#t": "postgresql://me@host/db#t",
    "postgresql://me:se#cret@host/db": "postgresql://me@host/db",
    "postgresql://me:se?cret@x@host/db#t": "postgresql://me@host/db#t",
    "postgresql://me:12/cret@host/db#t": "postgresql://me@host/db#t",
    "postgresql://me:se cret\n@host/db#t": "postgresql://me@host/db#t",
    "lancedb:s3://KEY:secret@bucket/x#t@branch": "lancedb:s3://KEY@branch",  # too much rather than too little
    "lancedb:s3://bucket/x?aws_secret_access_key=secret&region=eu#t": "lancedb:s3://bucket/x?region=eu#t",
    "lancedb:az://b/x?sig=secret&sv=1#t": "lancedb:az://b/x?sv=1#t",
    "qdrant:https://host:6333?api_key=secret#t": "qdrant:https://host:6333#t",
    "qdrant:https://host:6333?apikey=secret&X-Amz-Security-Token=secret#t": "qdrant:https://host:6333#t",
    "host=x password=secret user=me": "host=x password=*** user=me",
    "host=x password='se cret' user=me": "host=x password=*** user=me",
}


@pytest.mark.parametrize("source", UNCHANGED)
def test_a_source_without_secrets_is_shown_as_typed(source):
    assert without_secrets(source) == source
    assert not secrets_in(source)
    assert how_to_supply(source, None) == []


@pytest.mark.parametrize("source", SHOWN)
def test_secrets_are_left_out(source):
    assert without_secrets(source) == SHOWN[source]
    assert not [text for text in ("secret", "cret") if text in without_secrets(source)]
    assert secrets_in(source)
    (line,) = how_to_supply(None, "v.npy", source)
    assert ("PGPASSWORD" in line) == source.startswith("postgres")


def test_secrets_are_known_in_every_spelling():
    assert secrets_in("postgresql://me:p%40ss@h/db#t") == {"p%40ss", "p@ss"}
    assert secrets_in("postgresql://me:p@ss@h/db?sslpassword=a%62#t") == {"p@ss", "p%40ss", "a%62", "ab"}


def test_messages_show_sources_without_secrets():
    message = "'postgresql+psycopg://me:secret@h/db#t' and http://h?token=secret: password=secret, C: a@b:c"
    assert without_secrets_in(message) == (
        "'postgresql+psycopg://me@h/db#t' and http://h password=*** C: a@b:c"
    )
    assert without_secrets_in("File name too long: '/x/postgresql:/me:secret@h'") == (
        "File name too long: '/x/postgresql:/me@h'"
    )
    ours = "model: 3 of 7 rows; use http://localhost:6333 or lancedb:shop#items."
    assert without_secrets_in(ours) == ours


@given(st.text(min_size=1), st.sampled_from(["postgresql", "postgres+x", "https", "s3"]), st.booleans())
def test_no_password_is_shown_whatever_it_contains(text, scheme, has_table):
    """Whatever is typed before the last @, encoded or not."""
    source = f"{scheme}://me:{text}~@host/db{'#items' if has_table else ''}"
    assert without_secrets(source) == f"{scheme}://me@host/db{'#items' if has_table else ''}"
