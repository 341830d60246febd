"""Settings of the documentation site, which `make docs` builds with Sphinx into docs/_site."""

import re
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import reference_pages  # noqa: E402  (beside this file)
import rooms  # noqa: E402

from hubless import __version__  # noqa: E402

reference_pages.write(HERE / "reference")  # before Sphinx looks which pages there are
(HERE / "reference" / "rooms.svg").write_text(rooms.picture(rooms.parsed()), encoding="utf-8")

project, author, copyright = "hubless", "The hubless developers", "The hubless developers"
version = release = __version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_site", "_build", "templates", "gallery/uses", "**/sg_execution_times.rst"]
nitpicky = False  # types in docstrings are words, such as "array of shape (n, d)"

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4  # links to headings, as on GitHub
suppress_warnings = ["config.cache"]  # the gallery's order is a function, which Sphinx cannot store

autosummary_generate = True
autodoc_default_options = {"members": True, "inherited-members": False, "undoc-members": False}
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/\d\d_",
    "ignore_pattern": r"a^" if find_spec("torch") else r"on_a_gpu\.py",  # which needs torch
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "backreferences_dir": "gallery/uses",  # which examples use a name, for its page in the reference
    "doc_module": ("hubless",),
    "show_memory": False,
    "min_reported_time": 60,
}

html_theme = "pydata_sphinx_theme"
html_title = "hubless"
html_favicon = "icon.svg"
templates_path = ["templates"]
html_static_path: list[str] = []
html_show_sourcelink = False
html_sidebars = {page: [] for page in ("index", "start", "choose", "concepts", "movers")}
html_theme_options = {
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
warnings.filterwarnings("ignore", message=".*non-interactive", module="matplotlib")

PAGES_OF = {  # files outside of docs, and the pages that show them
    "../SECURITY.md": "security.md",
    "../CONTRIBUTING.md": "contributing.md",
    "../CHANGELOG.md": "changelog.md",
    "../web/README.md": "page-source.md",
}


def lead_to_pages(content):
    """Let links to files outside of docs lead to the pages that show them."""
    for file, page in PAGES_OF.items():
        for link in (file, file.removeprefix("../")):
            content[0] = content[0].replace(f"]({link}", f"]({page}")


def draw_rooms(content):
    """Show the drawing of the rooms, which GitHub makes from arrows in words."""
    drawing = "```{raw} html\n:file: reference/rooms.svg\n```"
    content[0] = re.sub(r"```mermaid\n.*?```", drawing, content[0], flags=re.DOTALL)


def without_scikit_learn(app, what, name, obj, skip, options):
    """Leave out what scikit-learn adds to every estimator, such as set_fit_request."""
    return skip or (name.startswith("set_") and name.endswith("_request"))


def without_links(app, what, name, obj, options, lines):
    """Keep mean_ and |x| as they are: reStructuredText reads them as links and substitutions."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[i] = re.sub(r"(?<=\w)_(?!\w)|\|", r"\\\g<0>", line)


def setup(app):
    """Let Sphinx read docstrings and links as they are meant."""
    app.connect("autodoc-skip-member", without_scikit_learn)
    app.connect("autodoc-process-docstring", without_links, priority=900)  # after numpydoc
    app.connect("source-read", lambda app, name, content: lead_to_pages(content))
    app.connect("source-read", lambda app, name, content: draw_rooms(content))
    app.connect("include-read", lambda app, path, parent, content: lead_to_pages(content))
