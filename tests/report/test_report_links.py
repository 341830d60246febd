"""Links to the user's own rows, and small pictures of queries and neighbours."""

import numpy as np
import pytest

from hubless.report import gallery
from hubless.report.links import check_link
from hubless.report.pictures import thumbnail
from tests.report.page_files import figures_of, write_table
from tests.report.test_report_details import Case, M, N


@pytest.mark.parametrize(
    "template",
    [
        "https://example.org/items/{id}",
        "http://localhost:8080/?row={id}&tab=1#{id}",
        "file:///home/me/pictures/{id}.png",
    ],
)
def test_links_that_a_page_may_have(template):
    assert check_link(template) == template


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("javascript:alert('{id}')", "starts with http"),
        ("data:text/html,{id}", "starts with http"),
        ("//example.org/{id}", "starts with http"),
        ("example.org/{id}", "starts with http"),
        ("https:///{id}", "starts with http"),
        ("http://[{id}", "starts with http"),
        ("https://example.org/items/", "needs {id}"),
        ("https://{id}.example.org/", "needs {id} after the name of the server"),
        ("https://example.org{id}/", "needs {id} after the name of the server"),
        ("https://example.org/{id} ", "without spaces"),
        ("https://example.org/{id}\u202e", "without spaces"),
        ("https://example.org/{id}" + "x" * 1000, "at most 1000"),
        ("https://me:word@example.org/{id}", "no password"),
        ("https://me@example.org/{id}", "no password"),
        ("https://example.org/{id}?api_key=abcdef", "no password"),
    ],
)
def test_links_that_are_refused(template, message):
    with pytest.raises(ValueError, match=message) as error:
        check_link(template)
    assert "abcdef" not in str(error.value)
    assert ":word@" not in str(error.value)


def test_a_link_is_refused_before_anything_is_read(refused, tmp_path):
    message = refused("report", tmp_path / "nothing.npy", "--labels", "a", "--link", "ftp://example.org/{id}")
    assert "a link starts with http" in message


def test_held_out_queries_are_linked_as_items_are(run, tmp_path):
    rng, link = np.random.default_rng(0), "https://example.org/{id}"
    np.save(tmp_path / "x.npy", rng.standard_normal((40, 3)).astype(np.float32))
    table = write_table(tmp_path / "x.json", label=[0, 1] * 20)
    source = [tmp_path / "x.npy", "--items", table, "--labels", "label", "--link", link]
    run("report", *source, "-o", tmp_path / "a.html")
    assert figures_of(tmp_path / "a.html")["links"] == {"items": link, "queries": link}
    asked = ["--queries", tmp_path / "x.npy", "--query-items", table]
    run("report", *source, *asked, "-o", tmp_path / "b.html")
    assert figures_of(tmp_path / "b.html")["links"] == {"items": link, "queries": None}


# --- pictures -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def case():
    return Case()


def plain_pictures(count, shade):
    """Pictures of one colour each, which differ."""
    return np.stack([np.full((4, 4), shade + i, dtype=np.uint8) for i in range(count)])


def shown(details):
    """Pictures by id, of items and of queries."""
    items = [*details["items"]["id"], *details["explorer"]["items"]["id"]]
    ids = {"items": items, "queries": details["queries"]["id"]}
    return {
        kind: {
            ids[kind][place]: picture for place, picture in zip(part["place"], part["picture"], strict=True)
        }
        for kind, part in details["pictures"].items()
    }


@pytest.mark.parametrize("max_points", [10_000, 40], ids=["all on the map", "some"])
def test_queries_and_what_they_find_have_their_own_pictures(case, max_points):
    images, asked = plain_pictures(N, 0), plain_pictures(M, 90)
    pictures = shown(case.report(max_points, images=images, query_images=asked).details)
    assert len(pictures["queries"]) == min(M, max_points // 2)
    for name, picture in pictures["queries"].items():
        assert picture == thumbnail(asked[int(name[1:])])
    rows = [int(name[1:]) for name in pictures["queries"]]
    assert {int(name[1:]) for name in pictures["items"]} == {
        int(item) for near in case.near for item in near[rows].reshape(-1)
    }
    for name, picture in pictures["items"].items():
        assert picture == thumbnail(images[int(name[1:])])


def test_pictures_stay_within_their_room_and_the_first_query_has_all(case, monkeypatch):
    monkeypatch.setattr(gallery, "ROOM", 4000)
    details = case.report(images=plain_pictures(N, 0), query_images=plain_pictures(M, 90)).details
    pictures = shown(details)
    sizes = [len(picture) for part in pictures.values() for picture in part.values()]
    assert sum(sizes) - max(sizes) < 4000
    change = [abs(int(a.sum()) - int(b.sum())) for a, b in zip(*case.wrong, strict=True)]
    first = change.index(max(change))
    assert f"q{first}" in pictures["queries"]
    assert {f"i{item}" for near in case.near for item in near[first]} <= set(pictures["items"])


def test_without_pictures_there_are_none(case):
    assert shown(case.report().details) == {"items": {}, "queries": {}}


def test_pictures_of_queries_need_one_each(case):
    with pytest.raises(ValueError, match="query_images must have one entry per query, 90; got 3"):
        case.report(query_images=plain_pictures(3, 0))
