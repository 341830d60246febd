"""Raw results become the paper's tables: known numbers in, known text out."""

import csv
import json
import re
import statistics
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import matplotlib as mpl
import pytest

from hubless.paper import tables
from hubless.paper.claims import verdicts
from hubless.paper.names import PAPER_METHODS
from hubless.paper.results import gains, read, rows
from hubless.paper.table_figures import draw
from tests.paper.raw_files import MACHINE, SETS, put, put_time

# accuracies of two splits, in per cent, and skewness
NEWS = {
    "original-metric": ((76.0, 77.0), 22.0),
    "lmnn": ((80.0, 80.2), 15.0),
    "itml": ((77.0, 77.0), 20.0),
    "dml-eig": ((73.0, 74.0), 2.004),
    "move-labeled": ((80.9, 81.3), 1.996),
    "move-query": ((70.0, 70.0), 33.0),
    "scale": ((82.0, 82.0), 1.5),
}
SECONDS = {"lmnn": 90.0, "itml": 150.0, "dml-eig": 600.0, "move-labeled": 0.25}


@pytest.fixture
def folder(tmp_path):
    """News with every number known; CUB on other features; an extra data set with one split."""
    raw = tmp_path / "raw"
    for method, (accuracies, skewness) in NEWS.items():
        for split, accuracy in enumerate(accuracies):
            put(raw, "news", method, split, accuracy=accuracy / 100, skewness=skewness)
    for method, seconds in SECONDS.items():
        put_time(raw, "news", method, seconds)
    put(raw, "cub", "original-metric", accuracy=0.63, skewness=2.6, note="other features: 100 % & more_")
    put(raw, "cub", "move-labeled", accuracy=0.62, skewness=2.1, note="other features: 100 % & more_")
    failed = {"status": "failed", "error": "MemoryError: {30} GiB | $_#^~\\ ünd λ ☃", "accuracy": None}
    put(raw, "cub", "lmnn", note="other features: 100 % & more_", **failed, skewness=None, machine=None)
    put(raw, "bank", "move-labeled", accuracy=0.913, chosen={"n_neighbors": 3, "alpha": 123.4, "kind": "a"})
    return raw


def block(results, number, caption, dim=300):
    table = next(table for table in tables.tables(results, dim) if table.number == number)
    return next(block for block in table.blocks if block.caption.startswith(caption))


def cells(block, label):
    return dict(zip(block.columns, dict(block.rows)[label], strict=True))


# Tables


def test_mean_and_standard_error_beside_the_papers(folder):
    results = read(folder)
    row = next(
        row for row in rows(results) if (row.table, row.dataset, row.method) == (3, "news", "move-labeled")
    )
    assert row.mean == pytest.approx(81.1)
    assert row.standard_error == pytest.approx(0.2)  # |81.3 − 80.9| / 2
    assert (row.n_splits, row.paper) == (2, 81.6)
    documents = block(results, 3, "Documents")
    assert documents.caption == "Documents (splits: 2)"
    assert cells(documents, "Move-labeled") == {"News": ("81.1 ± 0.2", "81.6", True)}
    assert cells(documents, "scale ‡")["News"] == ("82.0 ± 0.0", "", False)
    assert documents.notes == ["News: better than the best, 81.1, but not competing: scale ‡ 82.0."]
    assert [name for name, _ in documents.rows] == [*PAPER_METHODS.values(), "scale ‡"]


def test_figures_that_tie_as_printed_are_all_bold(folder):
    documents = block(read(folder), 2, "Documents")
    bold = [name for name, (cell,) in documents.rows if cell.bold]
    assert bold == ["DML-eig", "Move-labeled"]  # 2.004 and 1.996
    assert cells(documents, "DML-eig")["News"].ours == "2.00 ± 0.00"


def test_failed_and_missing_cells(folder):
    images = block(read(folder), 3, "Images")
    assert images.columns == ["CUB†"]
    assert cells(images, "LMNN") == {"CUB†": ("—", "†54.7", False)}
    assert cells(images, "original metric") == {"CUB†": ("63.0", "†51.6", True)}  # one split: no ±
    assert images.notes == [
        "CUB†: LMNN failed: MemoryError: {30} GiB | $_#^~\\ ünd λ ☃.",
        "CUB†: ITML, DML-eig, Move-query not run.",
    ]


def test_some_splits_missing(folder):
    for split, method in ((2, "lmnn"), (3, "lmnn"), (2, "itml")):
        put(folder, "news", method, split)
    put(folder, "news", "lmnn", 3, status="failed", error="too\nlong", accuracy=None)
    documents = block(read(folder), 3, "Documents")
    assert documents.caption == "Documents (splits: 3)"
    assert "News: LMNN split 3 failed: too long." in documents.notes
    assert "News: ITML split 3 not run." in documents.notes
    assert (
        "News: original metric, DML-eig, Move-labeled, Move-query, scale ‡ split 2, 3 not run."
        in documents.notes
    )


@pytest.mark.parametrize(
    ("counts", "caption"),
    [((4, 4), "Images"), ((2, 2), "Images (splits: 2)"), ((4, 1), "Images (splits: CUB 4, SUN 1)")],
)
def test_number_of_splits_in_the_caption(tmp_path, monkeypatch, counts, caption):
    monkeypatch.setitem(SETS, "sun", ("SUN", "image"))
    for dataset, count in zip(("cub", "sun"), counts, strict=True):
        for split in range(count):
            put(tmp_path, dataset, "itml", split)
    assert block(read(tmp_path), 3, "Images").caption == caption


def test_statistics_of_the_data(folder):
    put(folder, "iris", "itml")
    results = read(folder)
    assert cells(block(results, 1, "Documents"), "original dimension") == {"News": ("26214", "26214", False)}
    assert [name for name, _ in block(results, 1, "UCI").rows] == ["objects", "classes", "dimension"]
    notes = tables.tables(results)[0].notes
    assert notes[0] == "† CUB: other features: 100 % & more_."
    assert notes[-1].startswith("Without results: ionosphere, balance-scale, wine, glass, RCV, Reuters, TDT,")


def test_training_time_and_speed_up(folder):
    put_time(folder, "news", "nca", 30.0)
    put_time(folder, "news", "original-metric", 0.0)
    put_time(folder, "iris", "lmnn", 1.0)
    results = read(folder)
    documents = block(results, 4, "Documents")
    names = [name for name, _ in documents.rows]
    assert names[:5] == ["LMNN", "ITML", "DML-eig", "Move-labeled", "NCA ‡"]
    assert cells(documents, names[5])["News"] == ("360 ×", "166 ×", False)  # 90 / 0.25, 1164.7 / 7.0
    assert cells(documents, "Move-labeled")["News"] == ("0.25", "7.0", True)
    table = tables.tables(results)[3]
    assert [block.caption for block in table.blocks] == ["UCI (splits: 1)", "Documents (splits: 1)"]
    # the paper times no UCI set
    assert cells(block(results, 4, "UCI"), "LMNN") == {"iris": ("1.0", "", True)}
    assert "Timed on AMD EPYC, 2 cores, 2 threads, cpu, 24 GiB of memory, python 3.11.7" in table.notes[0]
    assert table.notes[1] == "Not timed: RCV, Reuters, TDT, AwA, CUB, SUN, aPY."


def test_a_learner_without_a_time_is_noted(folder):
    (folder / "news" / "dim-300" / "lmnn" / "split-0.time.json").unlink()
    documents = block(read(folder), 4, "Documents")
    assert cells(documents, "LMNN")["News"] == ("—", "1164.7", False)
    assert documents.rows[-1][1][0].ours == "600 ×"
    assert documents.notes == [
        "News: LMNN not timed.",
        "News: fastest Mahalanobis learner / Move-labeled without LMNN.",
    ]


@pytest.mark.parametrize(
    "other",
    [
        {"machine": MACHINE | {"processor": "Xeon"}},
        {"machine": MACHINE | {"cores": 64}},
        {"device": "cuda"},
        {"threads": 1},
    ],
)
def test_times_of_two_machines_are_refused(folder, other):
    put_time(folder, "cub", "itml", 5.0, **other)
    with pytest.raises(
        ValueError, match=r"come from 2: .*AMD EPYC, 2 cores, 2 threads, cpu \(4, for example news dml-eig\)"
    ):
        tables.write(folder, folder / "out")
    assert not (folder / "out").exists()


def test_another_version_or_day_is_the_same_machine(folder):
    put_time(folder, "cub", "itml", 5.0, machine=MACHINE | {"python": "3.12.1", "date": "2026-11-20"})
    notes = tables.tables(read(folder))[3].notes
    assert sum(note.startswith("Timed on") for note in notes) == 2


def test_what_was_chosen(folder):
    page = tables.markdown(read(folder))
    assert "| LMNN | k 10 |" in page  # of 5 and 15
    assert "| Move-labeled | k 3, alpha 123, kind a |" in page


def test_gains_are_paired_by_split(folder):
    result = {row.method: row for row in gains(read(folder)) if row.dataset == "news"}
    differences = [80.9 - 76.0, 81.3 - 77.0]
    assert result["move-labeled"].mean == pytest.approx(statistics.fmean(differences))
    assert result["move-labeled"].standard_error == pytest.approx(statistics.stdev(differences) / 2**0.5)
    assert result["move-labeled"].paper == pytest.approx(81.6 - 76.9)
    assert "original-metric" not in result


# Claims


def test_verdicts_true_false_and_unknown(folder):
    result = {verdict.claim: verdict for verdict in verdicts(read(folder))}
    assert len(result) == 2 + 2 + 2 + 1 + 1  # those on News and CUB, the only data that were run
    holds = {claim: verdict.holds for claim, verdict in result.items()}
    assert holds["News: Move-labeled lowers the N10 skewness"] is True
    assert holds["News: Move-query raises the N10 skewness"] is True
    assert holds["CUB†: Move-labeled is at least as accurate as the original metric"] is False
    assert holds["CUB†: Move-query raises the N10 skewness"] is None
    near = result["News: accuracy within 1.0 point of the paper's"]
    assert near.holds is True
    assert near.detail == "original metric 76.50 (paper: 76.9), Move-labeled 81.10 (paper: 81.6)"
    fast = result["News: Move-labeled trains 100 × faster than the fastest Mahalanobis learner"]
    assert fast == (fast.claim, True, "360 × (paper: 166 ×)")


def test_verdicts_at_their_limits(folder):
    for split in range(2):
        put(folder, "news", "original-metric", split, accuracy=0.779, skewness=33.0)  # 1.0 from the paper's
        put(folder, "news", "move-labeled", split, accuracy=0.779, skewness=33.0)  # 3.7 from it
    put_time(folder, "news", "move-labeled", 0.9)  # 100 times less than 90
    result = {verdict.claim: verdict.holds for verdict in verdicts(read(folder))}
    assert result["News: Move-labeled lowers the N10 skewness"] is False  # equal is not lower
    assert result["News: Move-query raises the N10 skewness"] is False
    assert result["News: Move-labeled is at least as accurate as the original metric"] is True
    assert result["News: accuracy within 1.0 point of the paper's"] is False
    assert result["News: Move-labeled trains 100 × faster than the fastest Mahalanobis learner"] is True
    for split in range(2):
        put(folder, "news", "move-labeled", split, accuracy=0.826)
    result = {verdict.claim: verdict.holds for verdict in verdicts(read(folder))}
    assert result["News: accuracy within 1.0 point of the paper's"] is True


# Formats


def test_markdown_page(folder):
    put(folder, "news", "itml", dim=100, accuracy=0.7)
    page = tables.markdown(read(folder))
    assert page.startswith("<!-- made by `hubless tables`; do not edit -->\n\n# ")
    assert "| Move-labeled | **81.1 ± 0.2** (81.6) |" in page
    assert "- ✗ CUB†: Move-labeled is at least as accurate as the original metric: 63.00 → 62.00" in page
    assert "Hold (✓): " in page
    assert "## Table 3: Accuracy in per cent, in 100 dimensions" in page
    assert "| ITML | **70.0** |" in page  # the paper has no figures for 100 dimensions
    assert page.endswith("    hubless tables results\n")
    widths = None
    for line in page.splitlines():
        if not line.startswith("|"):
            widths = None
            continue
        bars = len(re.findall(r"(?<!\\)\|", line))
        assert widths in (None, bars), line
        widths = bars


def test_page_of_one_split_of_one_data_set_says_nothing_of_others(tmp_path):
    """As after a first try; no mark, no claim and no time that is not on the page is explained."""
    put(tmp_path, "iris", "move-labeled")
    results = read(tmp_path)
    page = tables.markdown(results)
    assert "for testing, once. " in page
    assert "λ of Move-labeled: 13 values from 0.0001 to 100 times the mean eigenvalue" in page
    assert "## What differs from the paper\n\n- Data: all data sets have the paper's objects" in page
    absent = (
        "†",
        "‡",
        "±",
        "✓",
        "✗",
        "Hold",
        "Timed on",
        "Training time is",
        "scale is",
        "γ of",
        "python -m",
    )
    assert [words for words in absent if words in page] == []
    assert "\n    hubless reproduce --datasets iris --methods move-labeled --splits 1\n" in page
    assert verdicts(results) == []
    assert "description" not in tables.latex(results)  # LaTeX refuses a list without items


def test_page_explains_what_is_on_it(folder):
    put(folder, "news", "itml", dim=100)
    page = tables.markdown(read(folder))
    assert "for testing, up to 2 times over; " in page
    assert "to at most 300 dimensions first (100 where a table says so)" in page
    assert "mean ± standard error over the splits (one split has no ±)" in page
    marks = ("† marks", "‡ marks", "scale is a control")
    assert [mark for mark in marks if mark not in page] == []
    assert "γ of ITML: 1, 0.1, 0.01 or 0.001; " in page
    assert "g of scale: 20 values from 0.05 to 1 in equal steps" in page
    assert "- Data: CUB: other features: 100 % & more\\_.\n" in page
    assert "    hubless reproduce --datasets news --methods itml --splits 1 --dim 100\n" in page


def test_latex_is_escaped_and_balanced(folder):
    text = tables.latex(read(folder))
    assert r"other features: 100 \% \& more\_" in text
    assert r"MemoryError: \{30\} GiB $|$ \$\_\#\textasciicircum{}\textasciitilde{}\textbackslash{}" in text
    assert r"ünd $\lambda$ ?" in text
    assert r"\textbf{81.1 $\pm$ 0.2} (81.6)" in text
    assert r"CUB$^\dagger$" in text
    bare = re.sub(r"\\[{}$%&#_]", "", text)
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    for name in ("table", "tabular", "description"):
        assert text.count(rf"\begin{{{name}}}") == text.count(rf"\end{{{name}}}") > 0
    for body in re.findall(
        r"\\begin\{tabular\}\{(l r*)\}(.*?)\\bottomrule".replace(" ", ""), bare, re.DOTALL
    ):
        lines = [line for line in body[1].split(r"\\") if "&" in line]
        assert {line.count("&") for line in lines} == {len(body[0]) - 1}


def test_csv_can_be_read_again(folder):
    put(folder, "news", "itml", dim=100, accuracy=0.7)
    lines = list(csv.DictReader(tables.csv(read(folder)).splitlines()))
    place = {(line["dim"], line["table"], line["dataset"], line["method"]): line for line in lines}
    assert len(place) == len(lines)
    line = place["300", "3", "news", "move-labeled"]
    assert (float(line["mean"]), float(line["standard_error"])) == pytest.approx((81.1, 0.2))
    assert (line["n_splits"], line["paper"], line["missing"]) == ("2", "81.6", "")
    assert place["300", "3", "cub", "lmnn"]["mean"] == ""
    assert "☃" in place["300", "3", "cub", "lmnn"]["missing"]
    assert place["100", "3", "news", "itml"]["paper"] == ""
    assert float(place["300", "4", "news", "speed-up"]["mean"]) == 360


def test_json_round_trip(folder):
    made = tables.as_json(read(folder))
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    assert made["dim-300"]["table-2"]["news"]["move-query"]["mean"] == 33.0
    assert made["dim-300"]["table-1"]["cub"]["n_classes"]["paper"] == 200
    assert {"claim", "holds", "detail"} == set(made["verdicts"][0])


# Files and figures


def test_write_makes_everything_and_the_same_again(folder, tmp_path):
    files = tables.write(folder, tmp_path / "deep" / "out")
    names = "results.md tables.tex tables.csv tables.json table1.svg table2.svg table3.svg table4.svg"
    assert [file.name for file in files] == names.split()
    assert sorted((tmp_path / "deep" / "out").iterdir()) == sorted(files)  # nothing unfinished is left
    before = {file: file.read_bytes() for file in files}
    with mpl.rc_context({"font.size": 30, "svg.fonttype": "path", "axes.facecolor": "red"}):
        assert tables.write(folder, tmp_path / "deep" / "out") == files
        assert mpl.rcParams["font.size"] == 30  # the user's settings do not matter, and stay
    assert before == {file: file.read_bytes() for file in files}
    page = files[0].read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)]+)\)", page):
        assert (files[0].parent / link).exists()


def test_figures_are_xml_with_text(folder):
    put(folder, "iris", "original-metric", skewness=-0.2)
    put(folder, "iris", "unheard-of", skewness=0.0)
    results = read(folder)
    drawn = draw(rows(results), gains(results))
    assert list(drawn) == [1, 2, 3, 4]
    for number, picture in drawn.items():
        root = ElementTree.fromstring(picture)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        text = " ".join(root.itertext())
        assert "News" in text
        assert ("hollow: the paper's" in text) is (number in (3, 4))
        assert ("CUB†" in text) is (number != 4)
        assert "<dc:date>" not in picture.decode()


def test_no_figure_without_numbers(tmp_path):
    put(tmp_path, "iris", "itml", status="failed", error="no", accuracy=None)
    results = read(tmp_path)
    assert set(draw(rows(results), gains(results))) <= {1}  # the sizes of the data are known all the same
    assert "| ITML | — (97.8) |" in tables.markdown(results)


def test_tables_are_written_without_matplotlib_and_a_warning_says_how_to_get_figures(folder, monkeypatch):
    script = "import sys; from hubless.paper import tables; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.warns(UserWarning, match=r"pip install 'hubless\[plot\]'\. The tables are written without"):
        files = tables.write(folder, folder / "out")
    assert [file.name for file in files] == ["results.md", "tables.tex", "tables.csv", "tables.json"]
    assert files[0].read_text(encoding="utf-8") == tables.markdown(read(folder))  # it shows no figure
