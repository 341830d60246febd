"""The page: one file that loads nothing, in which no text of a user is ever markup."""

import base64
import gzip
import json
import math
from html.parser import HTMLParser

import numpy as np
import pytest

from hubless.evaluation import BeforeAfter, evaluate_classes
from hubless.report.details import Captions
from hubless.report.map_layout import Drawing
from hubless.report.report import ModelDescription, make_report

HOSTILE = {
    "script": "</script><script>alert(1)</script>",
    "upper": "</SCRIPT ><img src=x onerror=alert(1)>",
    "title": "</title><script>alert(1)</script>",
    "noscript": "</noscript><iframe src='https://example.org'></iframe>",
    "comment": "<!-- <script> --!> -->",
    "cdata": "<![CDATA[ ]]>",
    "marks": "{{title}} {{noscript}} /*{{css}}*/ /*{{js}}*/ {{figures}} {{details}}",
    "quotes": "\"'` onmouseover=alert(1) \\ \\u003c &lt;b&gt; &amp;",
    "address": "javascript:alert(1)",
    "emoji": "🙂👩‍👩‍👧 é ﷽ 你好",
    "right to left": "\u202e\u2067 שלום \u200f",
    "lines": "a\u2028b\u2029c\r\nd\te\x0bf\x85",
    "controls": "".join(map(chr, range(32))) + "end",
    "surrogate": "a\ud800b",
    "long": "<b>" * 33_334,
    "python": "%s {0} {figures} \\g<0> \\1",
}


def report_of(text, *, names=None, n=24, m=18):
    """A report in which a text is everywhere that a user may put one."""
    rng = np.random.default_rng(0)
    X, queries = rng.standard_normal((n, 3)), rng.standard_normal((m, 3))
    classes = np.array([f"{text} {i}" for i in range(3)]) if names is None else names
    y, truth = classes[rng.integers(0, 3, n)], classes[rng.integers(0, 3, m)]
    evaluation = evaluate_classes(
        BeforeAfter(X, -X), BeforeAfter(queries, queries), y, truth, BeforeAfter(3, 3), notes=[f"note {text}"]
    )
    shown = Captions(
        [f"{text} {i}" for i in range(n)], [text] * m, [text] * n, [text] * m, [text] * n, title=text
    )
    description = ModelDescription(
        text,
        choice={"words": text, "movers": [{"name": text, "score": 0.5}]},
        apply={"words": text, "steps": [{"title": text, "code": text, "language": "sh"}]},
        provenance=[("source", text)],
    )
    return make_report(evaluation, shown, description)


class Seen(HTMLParser):
    """Every element with its attributes, and what is inside of scripts and the title."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.elements, self.comments, self.inside, self.path = [], [], {}, []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, tuple(attributes)))
        if tag in ("script", "style", "title"):
            self.path = [(tag, dict(attributes).get("id", ""))]

    def handle_endtag(self, tag):
        self.elements.append((f"/{tag}", ()))
        self.path = []

    def handle_comment(self, text):
        self.comments.append(text)

    def handle_data(self, data):
        if self.path:
            self.inside[self.path[0]] = self.inside.get(self.path[0], "") + data


def strict(text):
    return json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


def plain(value):
    """What JSON has of a value, written anew: arrays as lists, nothing that is not finite."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(entry) for entry in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def unpacked(value):
    """Details as a page reads them: {"type", "data"} are arrays."""
    kinds = {"u8": "|u1", "u16": "<u2", "u32": "<u4", "i32": "<i4", "f32": "<f4"}
    if isinstance(value, dict) and set(value) == {"type", "data"}:
        return np.frombuffer(base64.b64decode(value["data"], validate=True), kinds[value["type"]]).tolist()
    if isinstance(value, dict):
        return {key: unpacked(entry) for key, entry in value.items()}
    return [unpacked(entry) for entry in value] if isinstance(value, list) else value


@pytest.fixture(scope="session")
def harmless():
    return report_of("harmless")


def details_in(page):
    packed = Seen(page).inside["script", "details"]
    return unpacked(strict(gzip.decompress(base64.b64decode(packed, validate=True)).decode("utf-8")))


# --- what is inside -----------------------------------------------------------------------------------------


def test_the_page_holds_the_figures_and_the_details(harmless):
    page = harmless.html()
    assert strict(Seen(page).inside["script", "figures"]) == plain(harmless.figures)
    assert details_in(page) == plain(harmless.details)
    assert Seen(page).inside["title", ""] == "harmless"


def test_the_page_loads_nothing(harmless):
    """Scripts, styles and pictures are inside; anchors stay in the page; the policy forbids the rest."""
    seen = Seen(harmless.html())
    loading = {"src", "href", "srcset", "data", "action", "poster", "background", "xlink:href", "formaction"}
    for tag, attributes in seen.elements:
        assert tag not in ("link", "base", "iframe", "object", "embed", "frame", "form"), tag
        for name, value in attributes:
            assert name not in loading or value.startswith(("#", "data:")), (tag, name, value)
            assert not name.startswith("on"), (tag, name)
    policy = [dict(attributes).get("content") for tag, attributes in seen.elements if tag == "meta"]
    assert any(
        content and content.startswith("default-src 'none'") and "connect-src" not in content
        for content in policy
    )
    style = seen.inside["style", ""]
    assert "@import" not in style
    assert style.count("url(") == style.count("url(data:") + style.count('url("data:')
    assert "<noscript>" in harmless.html()


def test_no_mark_of_the_template_is_left(harmless):
    page = harmless.html()
    for mark in ("{{title}}", "{{noscript}}", "{{css}}", "{{js}}", "{{figures}}", "{{details}}"):
        assert mark not in page


def test_without_scripts_the_figures_are_a_table(harmless):
    page = harmless.html()
    inside = page.split("<noscript>")[1].split("</noscript>")[0]
    first = harmless.figures["summary"]["figures"][0]
    for value in (first["before"], first["after"]):
        assert f"<td>{100 * value:.1f}\u00a0%</td>" in inside


# --- texts of users -----------------------------------------------------------------------------------------


def is_cut(shown, text, length):
    """Whether a text is shown whole, or if it is longer, its beginning."""
    return shown == text if len(text) <= length else len(shown) == length and text.startswith(shown[:-1])


@pytest.mark.parametrize("name", HOSTILE)
def test_texts_are_never_markup(name, harmless):
    text = HOSTILE[name]
    report = report_of(text)
    page = report.html()
    seen, other = Seen(page), Seen(harmless.html())
    assert seen.elements == other.elements
    assert seen.comments == other.comments == []
    # browsers end a script, or begin a comment in it, more readily than this parser: let there be no <
    assert not set("<>&") & set(seen.inside["script", "figures"] + seen.inside["script", "details"])
    figures = strict(seen.inside["script", "figures"])
    assert figures == plain(report.figures)
    kept = text.encode("utf-8", "replace").decode()  # half of a character has no bytes
    assert is_cut(figures["title"], kept, 200)
    (heading, source), *_ = figures["provenance"]
    assert heading == "source"
    assert is_cut(source, kept, 2000)
    assert is_cut(figures["apply"]["steps"][0]["code"], kept, 2000)
    details = details_in(page)
    assert details == plain(report.details)
    assert is_cut(details["hubs"][0]["text"], kept, 2000)
    assert len(page.encode()) < 2_000_000


@pytest.mark.parametrize("name", HOSTILE)
def test_the_small_version_has_no_script_and_no_markup_of_users(name, harmless):
    small = report_of(HOSTILE[name])._repr_html_()
    seen = Seen(small)
    kinds = [(tag, {key for key, _ in attributes}) for tag, attributes in seen.elements]
    assert kinds == [
        (tag, {key for key, _ in attributes}) for tag, attributes in Seen(harmless._repr_html_()).elements
    ]
    assert not {"script", "iframe", "img", "link", "style"} & {tag for tag, _ in seen.elements}
    assert not [key for _, keys in kinds for key in keys if key.startswith("on")]
    assert len(small.encode()) < 400_000


def test_classes_that_differ_at_the_end_alone_stay_apart():
    names = np.array(["c" * 200 + end for end in "xyz"])
    figures = report_of("harmless", names=names).figures
    assert figures["counts"]["classes"] == 3
    assert len(figures["classes"]["names"]) == 3


# --- size, bytes, file --------------------------------------------------------------------------------------


LETTERS = {"latin": (33, 127), "chinese": (0x4E00, 0x9FFF)}


def letters(rng, kind, count):
    """A text of random letters, which no packing makes much smaller."""
    return rng.integers(*LETTERS[kind], count, dtype=np.uint32).tobytes().decode("utf-32-le")


@pytest.mark.parametrize(
    ("kind", "length"), [pytest.param("latin", 32, marks=pytest.mark.slow), ("chinese", 32), ("latin", 80)]
)
def test_ten_thousand_objects_with_long_texts_are_small_enough(kind, length):
    """Long texts on everything, ids as long as a hash or an address; hundreds of queries change."""
    rng = np.random.default_rng(1)
    n, m = 10_000, 3000
    X, queries = rng.standard_normal((n, 4), dtype=np.float32), rng.standard_normal((m, 4), dtype=np.float32)
    classes = rng.integers(0, 9, n + m).astype(str)
    pool = letters(rng, kind, 2_000_000)
    texts = [pool[start : start + 3000] for start in rng.integers(0, 1_990_000, n + m)]
    ids = [letters(rng, "latin", length) for _ in range(n + m)]
    moved = X[rng.permutation(n)]
    evaluation = evaluate_classes(
        BeforeAfter(X, moved), BeforeAfter(queries, queries), classes[:n], classes[n:], BeforeAfter(1, 1)
    )
    captions = Captions(ids[:n], ids[n:], texts[:n], texts[n:], title="long")
    report = make_report(evaluation, captions, ModelDescription("chance"))
    assert report.figures["changed"]["shown"] == {"broken": 100, "fixed": 100}
    page = report.html()
    least = {32: 32, 80: 40}[length]  # ids of 80 random letters are more than fits on a page
    assert all(
        is_cut(shown, whole, least)
        for shown, whole in zip(details_in(page)["items"]["id"], ids, strict=False)
    )
    assert len(page.encode("utf-8")) < 2_000_000


def test_the_same_report_gives_the_same_bytes(harmless):
    assert harmless.html() == harmless.html()
    again = report_of("harmless")
    for figures in (again.figures, harmless.figures):
        assert figures["made"]
    again.figures["made"] = harmless.figures["made"]
    again.figures["choice"]["seconds"] = harmless.figures["choice"]["seconds"]
    assert again.html() == harmless.html()


def test_saving_replaces_a_page_whole_or_not_at_all(harmless, tmp_path, monkeypatch):
    file = report_of("yesterday").save(tmp_path / "page.html")
    yesterday = file.read_bytes()
    monkeypatch.setattr("os.replace", lambda *given: (_ for _ in ()).throw(OSError("no room")))
    with pytest.raises(OSError, match="no room"):
        harmless.save(file)
    assert file.read_bytes() == yesterday
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    monkeypatch.undo()
    assert harmless.save(str(file)) == file
    assert file.read_bytes() == harmless.html().encode("utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_other_files_are_not_overwritten(harmless, tmp_path):
    (tmp_path / "index.html").write_text("<p>a page of somebody else")
    with pytest.raises(ValueError, match=r"index\.html exists and is not a hubless page"):
        harmless.save(tmp_path / "index.html")
    assert (tmp_path / "index.html").read_text() == "<p>a page of somebody else"
    with pytest.raises(ValueError, match="is a folder"):
        harmless.save(tmp_path)


def test_a_page_with_half_of_a_character_can_be_saved(tmp_path):
    file = report_of(HOSTILE["surrogate"]).save(tmp_path / "page.html")
    assert "a?b" in file.read_text(encoding="utf-8")


def test_a_home_folder_is_found(harmless, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert harmless.save("~/new/page.html") == tmp_path / "new" / "page.html"


def test_printed_it_says_sentence_and_verdict(harmless):
    summary = harmless.figures["summary"]
    verdict = summary["verdict"]
    assert str(harmless).startswith(f"{summary['sentence']}\n{verdict['title']}. {verdict['words']}")


def test_a_drawing_of_few_points_is_smaller(harmless):
    few = make_report(
        harmless.evaluation, harmless.captions, ModelDescription("harmless"), Drawing(max_points=5)
    )
    assert len(details_in(few.html())["items"]["id"]) == 5
    assert plain(few.figures["skyline"]) == plain(harmless.figures["skyline"])
