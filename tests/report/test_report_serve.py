"""A served page: who may ask, what is answered (against a search by plain loops), and what embeds a text."""

import http.client
import json
import shlex
import signal
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from hubless.evaluation import BeforeAfter
from hubless.report import embed, server
from hubless.report.ask import answer_texts, find
from hubless.report.embed import embedder
from hubless.report.server import HOST, LARGEST, LONGEST, POLICY, PageServer
from tests import reference
from tests.report.page_files import write_table
from tests.report.test_report_details import Case, D, M

PAGE = f"<meta {POLICY} script-src>the page"


# --- who may ask --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served():
    """A server that answers a text with it, and fails for one."""

    def answer(text):
        if text == "fail":
            raise ValueError("it cannot be embedded")
        return {"before": [text], "after": []}

    with PageServer() as running:
        running.show(PAGE, answer)
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def request(served, method, path, body=None, **headers):
    """The status, the headers and the body; a header that is None is left out."""
    given = {"Host": f"{HOST}:{served.server_port}", **{k.replace("_", "-"): v for k, v in headers.items()}}
    connection = http.client.HTTPConnection(HOST, served.server_port, timeout=30)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in given.items():
        if value is not None:
            connection.putheader(name, value)
    connection.endheaders(body)
    response = connection.getresponse()
    return response.status, response.headers, response.read().decode()


def ask(served, content, **headers):
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    ours = {"Origin": f"http://{HOST}:{served.server_port}", "Content_Type": "application/json"}
    ours |= {"Content_Length": str(len(body))}
    return request(served, "POST", f"{served.path}search", body, **{**ours, **headers})


def test_the_page_and_answers(served):
    status, headers, page = request(served, "GET", served.path)
    assert (status, page) == (200, PAGE.replace(POLICY, f"{POLICY} connect-src 'self';"))
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert headers["Cache-Control"] == "no-store"
    assert "Access-Control-Allow-Origin" not in headers
    status, _, answer = ask(served, {"text": "naïve \u202e"})
    assert (status, json.loads(answer)) == (200, {"before": ["naïve \u202e"], "after": []})
    assert ask(served, {"text": "fail"})[::2] == (422, '{"error": "it cannot be embedded"}')


def test_it_listens_on_this_computer_alone(served):
    assert served.server_address[0] == "127.0.0.1"
    assert len(served.path) > 30
    with PageServer() as other:
        assert other.path != served.path


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:{port}"},
        {"Host": "127.0.0.1"},
        {"Host": None},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:{port}"},  # another name than that of the host
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_other_pages_may_not_ask(served, headers):
    given = {k: v and v.format(port=served.server_port) for k, v in headers.items()}
    assert request(served, "GET", served.path, **given)[0] == 403
    assert ask(served, {"text": "a"}, **given)[0] == 403


def test_a_text_needs_an_origin(served):
    assert ask(served, {"text": "a"}, Origin=None)[0] == 403


@pytest.mark.parametrize("path", ["/", "/search", "/x/search", "/../etc/passwd", "//evil.example/", "/%00"])
def test_without_the_token_there_is_nothing(served, path):
    assert request(served, "GET", path)[0] == 404
    origin = f"http://{HOST}:{served.server_port}"
    assert request(served, "POST", path, b"{}", Origin=origin, Content_Length="2")[0] == 404


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"{}", {}, 400),
        (b"[1]", {}, 400),
        (b"not JSON", {}, 400),
        (b"[" * 5000, {}, 400),
        (b"\xff", {}, 400),
        ({"text": 7}, {}, 400),
        ({"text": "  "}, {}, 400),
        ({"text": "x" * (LONGEST + 1)}, {}, 400),
        (b"", {"Content_Length": str(LARGEST + 1)}, 413),
        (b"", {"Content_Length": "9" * 5000}, 413),
        (b"", {"Content_Length": "-1"}, 411),
        (b"", {"Content_Length": "²"}, 411),
        (b"", {"Content_Length": None}, 411),
        ({"text": "a"}, {"Transfer_Encoding": "chunked"}, 411),
        ({"text": "a"}, {"Content_Type": "text/plain"}, 415),
    ],
)
def test_what_is_no_text_is_refused(served, content, headers, status):
    assert ask(served, content, **headers)[0] == status


def test_other_methods_do_nothing(served):
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE"):
        assert request(served, method, served.path)[0] == 501


def test_a_page_without_a_policy_is_not_served():
    with PageServer() as other, pytest.raises(ValueError, match="policy"):
        other.show("<p>")


# --- what is answered ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["l2", "cosine", "ip"])
def test_a_typed_query_finds_what_plain_loops_find(metric):
    rng = np.random.default_rng(0)
    X, moved = rng.standard_normal((60, D)), rng.standard_normal((60, D + 1))
    if metric == "cosine":
        X /= np.linalg.norm(X, axis=1)[:, None]
    answers = SimpleNamespace(
        stored=BeforeAfter(X, moved), neighbors=BeforeAfter(np.zeros((M, 10)), None), metric=metric
    )
    report = SimpleNamespace(evaluation=SimpleNamespace(answers=answers))
    for vector in 3 * rng.standard_normal((5, D)):
        query = vector / np.linalg.norm(vector) if metric == "cosine" else vector
        asked = {"before": query, "after": np.append(query, 0)}
        found = find(report, vector)
        for state, stored in (("before", X), ("after", moved)):
            if metric == "ip":
                order = np.argsort([-sum(asked[state] * row) for row in stored])
            else:
                order = reference.nearest(asked[state][None], stored, 10)[1][0]
            assert found[state] == list(order[:10]), state


def test_answers_describe_items_and_their_places_on_the_map():
    case = Case()
    report = case.report(40)
    drawn = report.details["items"]["id"]
    answer = answer_texts(report, lambda text: case.queries[int(text)])("5")
    for i, state in enumerate(("before", "after")):
        assert [item["id"] for item in answer[state]] == [f"i{row}" for row in case.near[i][5]]
        for row, item in zip(case.near[i][5], answer[state], strict=True):
            place = drawn.index(f"i{row}") if f"i{row}" in drawn else -1
            assert (item["text"], item["label"]) == (f"text of item {row}", case.y[row])
            assert (item["key"], item["place"], item["picture"]) == (row, place, None)
    json.dumps(answer)


# --- what embeds --------------------------------------------------------------------------------------------


@pytest.fixture
def program(tmp_path):
    """A command that runs a line of Python, with the text as `text`."""

    def command(line):
        file = tmp_path / "embed it.py"
        start = "import sys\ntext = sys.stdin.buffer.read().decode()\n"
        file.write_text(start + line)
        return shlex.join([sys.executable, str(file)])

    return command


@pytest.mark.parametrize(
    "line", ["print([len(text), 2, 3.5])", "print(len(text), 2, 3.5)", "print(f'[[{len(text)}, 2, 35e-1]]')"]
)
def test_a_command_gets_the_text_as_it_is(program, line):
    encode = embedder(program(line), 3)
    assert encode("; $(touch here) é\n'").tolist() == [19, 2, 3.5]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("print(1, 2)", "the queries have 3 columns, and .* gives 2 numbers"),
        ("print([[1, 2, 3], [1, 2, 3]])", "gives 2 × 3 numbers"),
        ("print('nan 1 2')", "not finite"),
        ("print('0 0 0')", "is 0"),
        ("print('hello \\x1b[31m')", "must print numbers and nothing else"),
        ("print('[1, [2], 3]')", "must print numbers"),
        ("print('[' * 99999)", "must print numbers"),
        ("print('no model', file=sys.stderr); sys.exit(3)", "ended with code 3. no model"),
    ],
)
def test_what_is_no_vector_is_refused_at_once(program, line, message):
    with pytest.raises(ValueError, match=message) as error:
        embedder(program(line), 3)
    assert "\x1b" not in str(error.value)


def test_a_command_that_does_not_end_is_ended(program, monkeypatch):
    monkeypatch.setattr(embed, "SECONDS", 0.2)
    with pytest.raises(ValueError, match=r"took longer than 0\.2 s"):
        embedder(program("import time; time.sleep(60)"), 3)


def test_a_program_that_is_not_there():
    for source in ("no-such-program --at all", ""):
        with pytest.raises(ValueError, match="--embed needs a program that can be run, or st:MODEL"):
            embedder(source, 3)


def test_models_are_read_from_this_computer_alone(monkeypatch):
    given = []

    class Model:
        def __init__(self, name, **options):
            given.append((name, options))
            if name == "missing/model":
                raise OSError("offline")

        def encode_query(self, text):
            return np.arange(1, 4, dtype=np.float32)

    monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(SentenceTransformer=Model))
    assert embedder("st:some/model", 3)("text").tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match=r"hubless downloads nothing.*hf download missing/model"):
        embedder("st:missing/model", 3)
    assert given == [(name, {"local_files_only": True}) for name in ("some/model", "missing/model")]


# --- the command --------------------------------------------------------------------------------------------


def test_refused_before_the_first_long_step(run, refused, tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", np.eye(40, 3, dtype=np.float32) + 1)
    table = write_table(tmp_path / "x.json", label=[0, 1] * 20)
    source = ["report", tmp_path / "x.npy", "--items", table, "--labels", "label"]
    monkeypatch.setattr("hubless.report.serve.report_index", lambda *a, **b: pytest.fail("too late"))
    assert "needs a program" in refused(*source, "--serve", "--embed", "no-such-program")
    with PageServer() as busy:
        assert "in use" in refused(*source, "--serve", str(busy.server_port))


def test_it_is_served_until_ctrl_c_and_writes_nothing(tmp_path, program):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    table = write_table(tmp_path / "x.json", label=[0, 1] * 30, id=[f"row {i}" for i in range(60)])
    words = ["report", "x.npy", "--items", str(table), "--labels", "label", "--json", "--serve"]
    words += ["--embed", program("print(*map(float, text.split())) if ' ' in text else print(1, 1, 1)")]
    before = sorted(path.name for path in tmp_path.iterdir())
    running = subprocess.Popen(
        [sys.executable, "-m", "hubless", *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background shell ignores it
    )
    lines = []
    while not lines or lines[-1] != "}\n":
        lines.append(running.stdout.readline())
        assert lines[-1], "it ended"
    address = json.loads("".join(lines))["page"]
    here = SimpleNamespace(server_port=int(address.split(":")[2].split("/")[0]))
    here.path = address.split(str(here.server_port))[1]
    assert '"asks":true' in request(here, "GET", here.path)[2]
    status, _, answer = ask(here, {"text": "0.5 -1 2"})
    assert status == 200
    assert len(json.loads(answer)["before"]) == 10
    running.send_signal(signal.SIGINT)
    assert running.wait(60) == 0
    running.stdout.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_what_is_sent_is_not_logged(served, capfd):
    request(served, "GET", "/nowhere")
    ask(served, {"text": "secret"})
    assert capfd.readouterr() == ("", "")
    assert server.Handler.server_version == "hubless"
