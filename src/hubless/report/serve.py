"""The page of an index, served: everything is checked and tried before the first long step."""

from typing import Any, NamedTuple

from ..repair.index_items import Source, as_store
from .ask import answer_texts
from .embed import embedder
from .index_report import report_index
from .report import Report
from .server import PageServer


class ServedReport(NamedTuple):
    """A report, and the server of its page, which `serve_forever` starts."""

    report: Report
    server: PageServer


def page_server(source: Source, *, embed: str | None = None, port: int = 0, **options: Any) -> ServedReport:
    """Return the report of an index with a server of its page, which answers texts if `embed` is given.

    Parameters
    ----------
    source : name of a store, or Store
    embed : str, optional
        A command that gets a text from stdin and prints a vector, or st:MODEL, as in `embedder`.
    port : int
        0 takes a free one.
    **options : as for `report_index`
    """
    queries = options.get("queries")
    width = as_store(source if queries is None else queries).facts().dimension
    encode = None if embed is None else embedder(embed, width)
    server = PageServer(port)
    try:
        report = report_index(source, **options)
    except BaseException:
        server.server_close()
        raise
    if encode is None:
        server.show(report.html())
    else:
        server.show(report.html(asks=True), answer_texts(report, encode))
    return ServedReport(report, server)
