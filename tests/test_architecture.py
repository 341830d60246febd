"""The shape of the package: imports go upward, two files name torch, files stay readable."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "hubless"
FILES = sorted(PACKAGE.rglob("*.py"))

# Each file may import those of earlier rows only; a folder is a row, or rows, of its own.
ROWS = [
    {"threads", "progress", "download", "stores.__init__", "stores.store"},
    {"stores.items", "stores.switch", "stores.points"},
    {"stores.lancedb_rows", "stores.lancedb_index", "stores.lancedb_versions", "stores.qdrant_connection"},
    {"stores.pg_catalog", "stores.pg_session"},
    {"stores.pg_rows", "stores.pg_switch"},
    {"stores.lancedb", "stores.pgvector", "stores.qdrant", "stores.qdrant_edge"},
    {"streams"},
    {"arrays"},
    {"products", "devices"},
    {"solve", "datasets"},
    {"inputs", "ranking"},
    {"topk"},
    {"within"},
    {"neighbors"},
    {"targets", "vote", "hubness", "theory", "retrieval", "stores.rows"},
    {"evaluation"},
    {"stores.file_store"},
    {"stores.files", "stores.arrow", "stores.faiss"},
    {"stores.opening"},
    {"moments"},
    {"large.__init__", "large.memory", "large.partition", "large.plan", "large.sampling", "large.survey"},
    {"large.lesson"},
    {"large.checkpoints"},
    {"large.stream", "large.tasks"},
    {"large.sources"},
    {"large.top", "distributed.engine"},
    {"distributed.learn"},
    {"distributed.search", "distributed.files"},
    {"distributed.classify", "distributed.__init__"},
    {"movers.linear", "movers.points"},
    {"movers.mover"},
    {"movers.again"},
    {"movers.life"},
    {
        "movers.ridge",
        "movers.prototypes",
        "movers.bias",
        "movers.metrics",
        "movers.regressors",
        "movers.chain",
    },
    {"movers.__init__"},
    {"large.fit"},
    {"selection", "candidates", "plain"},
    {"trial", "state", "model_files"},
    {"index.__init__", "index.repair"},
    {"index.collection", "index.hooks", "index.stream"},
    {"index.pairs"},
    {"index.doctor", "index.evaluate", "index.held_out", "index.recall", "index.life"},
    {"index.predict"},
    {"race"},
    {"classifier", "transformer", "baselines.mahalanobis"},
    {"classifier_cv", "baselines.lmnn", "baselines.itml", "baselines.dml_eig"},
    {"baselines.nca", "index.learn"},
    {"baselines.__init__", "index.rehearsal", "index.large"},
    {"report.__init__", "report.shown", "report.places", "report.atlas", "report.choice"},
    {"report.figures", "report.page"},
    {"report.details"},
    {"report.points"},
    {"report.report"},
    {"report.compare"},
    {"report.of_index"},
    {"estimators", "card"},
    {"models"},
    {"model_dir"},
    {"__init__"},
    {"index.apply", "index.export"},
    {"index.preview"},
    {"paper.__init__", "paper.published"},
    {"paper.machine", "paper.experiment", "paper.results"},
    {"paper.contest", "paper.claims", "paper.blocks"},
    {"paper.reproduce"},
    {"paper.figures", "paper.reached"},
    {"paper.standings"},
    {"paper.tables", "paper.pages", "plot.canvas"},
    {"plot.curves", "plot.fields"},
    {"plot.__init__"},
    {"demo"},
    {"cli.options"},
    {"cli.fit_verb", "cli.report_verbs", "cli.switch_verbs", "cli.life_verbs", "cli.paper_verbs"},
    {"cli.index_verbs"},
    {"cli.__init__"},
    {"__main__"},
]


def name_of(file):
    """solve, or paper.tables in a folder."""
    return ".".join(file.relative_to(PACKAGE).with_suffix("").parts)


KNOWN = {name_of(file) for file in FILES}


def imported(file):
    """Names of modules of the package that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = file.relative_to(PACKAGE).parts[: -node.level]
            base = [*folder, *(node.module.split(".") if node.module else [])]
            for alias in node.names:  # a module of a folder, a name in a module, or a name in a folder
                tried = [".".join([*base, alias.name]), ".".join(base), ".".join([*base, "__init__"])]
                names.add(next(name for name in tried if name in KNOWN))
    return names


def imported_packages(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").split(".")[0]


def test_every_file_has_its_row():
    assert set().union(*ROWS) == KNOWN


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_imports_go_upward(file):
    row = next(i for i, names in enumerate(ROWS) if name_of(file) in names)
    assert imported(file) <= set().union(*ROWS[:row])


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_nobody_imports_torch_and_only_two_files_name_it(file):
    assert "torch" not in set(imported_packages(file))  # users without torch import hubless too
    if file.stem not in ("arrays", "products"):
        code = ast.unparse(ast.parse(file.read_text()))  # without comments
        names = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
        attributes = {node.attr for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Attribute)}
        assert not any("torch" in name for name in names | attributes)


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_dask_is_named_in_its_folder_alone(file):
    strings = {
        node.value
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    needed = {"dask.array", "dask.dataframe", "distributed"} & strings
    assert not {"dask", "distributed"} & set(imported_packages(file))  # users without Dask import all files
    assert file.parent.name == "distributed" or not needed


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_no_pickle_and_no_printing_outside_the_command_line(file):
    assert not {"pickle", "joblib", "dill", "cloudpickle"} & set(imported_packages(file))
    if file.parent.name != "cli":
        calls = (node.func for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call))
        assert "print" not in {call.id for call in calls if isinstance(call, ast.Name)}


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_files_and_functions_stay_short(file):
    assert len(file.read_text().splitlines()) <= 320
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef):
            start = node.body[1].lineno if ast.get_docstring(node) and len(node.body) > 1 else node.lineno
            assert (node.end_lineno or 0) - start <= 42, node.name
