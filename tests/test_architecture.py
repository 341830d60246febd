"""The shape of the package: rooms in one order, engines in their rooms, files that can be read.

The source is parsed once. What CONTRIBUTING says and a program can check, is checked here.
"""

import ast
import re
import runpy
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path
from statistics import median, quantiles

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "hubless"

# A room imports only from the rooms above it. A folder is a room, and so is a file of the root.
ROOMS = (
    "support",
    "arrays",
    "neighbors",
    "targets",
    "moments",
    "solve",
    "chance",
    "hubness",
    "hubness_change",
    "hubs_in_words",
    "retrieval",
    "theory",
    "evaluation",
    "movers",
    "corrections",
    "calibration",
    "selection",
    "moved_neighbors",
    "classifier",
    "classifier_cv",
    "move_query",
    "baselines",
    "saving",
    "stores",
    "outofcore",
    "repair",
    "testing",
    "report",
    "loop",
    "plot",
    "integrations",
    "paper",
    "__init__",
    "cli",
    "__main__",
)

LONGEST_FILE, LONGEST_FUNCTION = 320, 42  # lines; those of a function without its docstring
FORBIDDEN = {"pickle", "joblib", "dill", "cloudpickle", "marshal", "shelve"}  # they run what they read

# Packages that users may lack, and the only places that may name them; even there they are loaded when used.
OPTIONAL = {
    "torch": ("arrays",),
    "triton": ("arrays.kernels",),
    "dask": ("outofcore.dask",),
    "distributed": ("outofcore.dask",),
    "faiss": ("stores.faiss", "stores.faiss_kinds", "integrations"),
    "usearch": ("stores.usearch",),
    "hnswlib": ("stores.hnswlib",),
    "lancedb": ("stores.lancedb",),
    "psycopg": ("stores.postgres",),
    "chromadb": ("stores.chroma",),
    "httpx": ("stores.chroma",),
    "sqlite_vec": ("stores.sqlite_vec",),
    "pysqlite3": ("stores.sqlite_vec",),
    "duckdb": ("stores.duckdb",),
    "qdrant_client": ("stores.qdrant",),
    "qdrant_edge": ("stores.qdrant",),
    "h5py": ("stores.files",),
    "pyarrow": ("stores", "repair.move_stream", "report"),
    "pandas": (),
    "onnx": ("integrations",),
    "llama_index": ("integrations",),
    "langchain_core": ("integrations",),
    "huggingface_hub": ("saving.hub_download", "saving.hub_card"),
    "mteb": ("integrations",),
    "datasets": (),
    "matplotlib": ("plot", "paper.table_figures"),
    "umap": ("report",),
    "sentence_transformers": ("report",),
}
# What exists once: a name that may be imported in one place alone.
ONCE = {
    "tqdm": ("support.progress",),
    "fcntl": ("support.locks", "stores.qdrant"),  # Qdrant's own lock is only looked at
    "importlib": (
        "support.imports",  # optional packages, and the public names
        "arrays.devices",  # the engine of an array
        "saving.values",  # the class of a saved model
        "stores.opening",  # the store of a name
    ),
}


def module_of(file: Path) -> str:
    """Name a file as Python does: solve, or movers.ridge."""
    return ".".join(file.relative_to(PACKAGE).with_suffix("").parts)


def parsed() -> dict[str, ast.Module]:
    """Parse every file of the package."""
    return {module_of(file): ast.parse(file.read_text()) for file in sorted(PACKAGE.rglob("*.py"))}


def imports_of(name: str, tree: ast.Module, known: set[str]) -> set[str]:
    """Return the modules of the package that a module imports, at its top or inside functions."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [*name.split(".")[: -node.level], *(node.module.split(".") if node.module else [])]
            for alias in node.names:  # a module of a folder, a name in a module, or a name in a folder
                tried = [".".join([*base, alias.name]), ".".join(base), ".".join([*base, "__init__"])]
                found.add(next(module for module in tried if module in known))
    return found


def room_of(module: str) -> str:
    """Return the room of a module."""
    return module.split(".")[0]


@pytest.fixture(scope="module")
def trees():
    return parsed()


@pytest.fixture(scope="module")
def imports(trees):
    return {name: imports_of(name, tree, set(trees)) for name, tree in trees.items()}


def packages_of(tree):
    """Packages that a module imports, wherever it does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").split(".")[0]


def needed_by(tree):
    """Packages that a module loads by `need`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "need":
            yield node.args[0].value.split(".")[0]


def is_in(name, places):
    return any(name == place or name.startswith(f"{place}.") for place in places)


def test_every_module_is_in_a_room(trees):
    assert {room_of(name) for name in trees} == set(ROOMS)


def test_a_room_imports_only_from_rooms_above_it(imports):
    order = {room: place for place, room in enumerate(ROOMS)}
    wrong = [
        f"{name} imports {other}"
        for name, others in imports.items()
        for other in others
        if room_of(other) != room_of(name) and order[room_of(other)] > order[room_of(name)]
    ]
    assert wrong == []


def test_files_do_not_import_each_other_in_a_circle(imports):
    # the names of a folder are those of its files, which may import each other but not their folder
    list(TopologicalSorter(imports).static_order())


def test_the_page_of_the_design_shows_the_rooms_as_they_are(trees):
    page_part = runpy.run_path(str(ROOT / "docs" / "rooms.py"))["page_part"]
    assert page_part(trees) in (ROOT / "docs" / "design.md").read_text(), "run python docs/rooms.py"


def test_walks_name_files_and_functions_that_exist(trees):
    page = (ROOT / "docs" / "design.md").read_text()
    steps = re.findall(r"`([\w/]+)\.py`, `([\w.]+)`", page)
    assert len(steps) >= 25
    for file, function in steps:
        tree: ast.AST = trees[file.replace("/", ".")]
        for part in function.split("."):
            inside = {node.name: node for node in tree.body if hasattr(node, "name")}
            assert part in inside, f"{file}.py has no {function}"
            tree = inside[part]
    lengths = [len(re.findall(r"^\d+\. ", walk, re.MULTILINE)) for walk in page.split("\n### ")[1:]]
    assert len(lengths) == 4
    assert max(lengths) <= 10


@pytest.mark.slow
def test_walks_count_the_files_that_are_visited(data_dir):
    page = ROOT / "docs" / "design.md"
    walks = runpy.run_path(str(ROOT / "docs" / "walks.py"))
    assert walks["numbered"](page.read_text(), walks["walks"]()) == page.read_text(), (
        "run python docs/walks.py --write"
    )


def test_optional_packages_are_loaded_in_their_rooms_and_when_used(trees):
    for name, tree in trees.items():
        imported = Counter(packages_of(tree))
        lines = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        at_top = {package for line in lines for package in packages_of(line)}
        for package, places in OPTIONAL.items():
            # Triton compiles functions of a file; `arrays.devices.kernels` imports it where Triton is there
            is_compiled = name == "arrays.kernels" and package in ("torch", "triton")
            assert is_compiled or package not in at_top, f"{name} imports {package}, which a user may lack"
            if not is_in(name, places):
                assert package not in imported, f"{name} imports {package}"
                assert package not in set(needed_by(tree)), f"{name} needs {package}"


def test_only_arrays_name_torch(trees):
    for name, tree in trees.items():
        if room_of(name) != "arrays":
            names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
            assert not any("torch" in each for each in names), name


def test_what_exists_once_is_imported_once(trees):
    for name, tree in trees.items():
        for package, places in ONCE.items():
            at = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
            at |= {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
            assert package not in at or is_in(name, places), f"{name} imports {package}"


def test_nothing_unpickles(trees):
    for name, tree in trees.items():
        packages = set(packages_of(tree))
        if name == "stores.qdrant.qdrant_folder":  # it refuses pickles: by a reader that makes inert objects
            parts = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
            used = {
                node.attr for node in parts if isinstance(node.value, ast.Name) and node.value.id == "pickle"
            }
            assert used == {"Unpickler", "UnpicklingError"}
            packages -= {"pickle"}
        assert not FORBIDDEN & packages, name
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert node.value.value is False, name


def test_untrusted_json_is_read_in_one_place(trees):
    for name, tree in trees.items():
        loads = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "loads"]
        assert not loads or name == "support.untrusted_json", name


def test_only_the_command_line_prints(trees):
    for name, tree in trees.items():
        calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
        prints = any(isinstance(call, ast.Name) and call.id == "print" for call in calls)
        assert not prints or room_of(name) == "cli", name


def test_no_name_stands_for_two_things(trees):
    files = Counter(name.split(".")[-1] for name in trees)
    assert [name for name, times in files.items() if times > 1 and name != "__init__"] == []
    classes = Counter(
        node.name for tree in trees.values() for node in tree.body if isinstance(node, ast.ClassDef)
    )
    assert [name for name, times in classes.items() if times > 1] == []
    assert "utils" not in files


def test_files_and_functions_stay_short(trees):
    lengths = []
    for name, tree in trees.items():
        file = PACKAGE / f"{name.replace('.', '/')}.py"
        assert len(file.read_text().splitlines()) <= LONGEST_FILE, name
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                lengths.append(node.end_lineno - node.lineno + 1)
                has_words = ast.get_docstring(node) and len(node.body) > 1
                start = node.body[1].lineno if has_words else node.lineno
                assert node.end_lineno - start <= LONGEST_FUNCTION, f"{name}.{node.name}"
    assert median(lengths) <= 8
    assert quantiles(lengths, n=10)[-1] <= 20


def public_functions(tree):
    """Functions and methods that others call, by name."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, node
            for inside in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(inside, ast.FunctionDef) and not inside.name.startswith("_"):
                    yield f"{node.name}.{inside.name}", inside


def test_every_public_function_has_a_docstring(trees):
    # a method that a base class documents needs no words of its own
    documented = {
        inside.name
        for tree in trees.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        for inside in node.body
        if isinstance(inside, ast.FunctionDef) and ast.get_docstring(inside)
    }
    silent = [
        f"{module}.{name}"
        for module, tree in trees.items()
        for name, node in public_functions(tree)
        if not ast.get_docstring(node) and not ("." in name and name.split(".")[1] in documented)
    ]
    assert silent == []


def test_every_module_says_what_it_is(trees):
    assert [name for name, tree in trees.items() if not ast.get_docstring(tree)] == []


def test_tests_mirror_the_rooms():
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()}
    tested = {room for room in ROOMS if (PACKAGE / room).is_dir()} - {"support", "arrays"}
    assert tested <= folders  # those two are tested in core/
