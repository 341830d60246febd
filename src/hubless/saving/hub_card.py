"""The card of a model on the Hub: README.md with what the Hub reads of it, YAML in front."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..support.imports import need

TAGS = ("hubless", "hubness", "nearest-neighbors", "vector-search")
PATH = "path/to/this/folder"  # what the code of a saved card loads


def hub_card(model: Any, card: str, repo_id: str, license: str | None) -> str:
    """Return README.md with metadata, and with code that loads the model from the Hub."""
    return f"---\n{_metadata(model, repo_id, license)}\n---\n\n{card.replace(PATH, f'hf://{repo_id}')}"


def _metadata(model: Any, repo_id: str, license: str | None) -> str:
    hub = need("huggingface_hub", "hub")
    results = [hub.EvalResult(**result) for result in _results(model)]
    data = hub.ModelCardData(
        license=license,
        library_name="hubless",
        tags=[*TAGS, type(model).__name__],
        model_name=repo_id if results else None,
        eval_results=results or None,
    )
    return str(data.to_yaml()).strip()


def _results(model: Any) -> Iterator[dict[str, Any]]:
    """Yield the figures of a model as results of the Hub: after the move and, where known, before it."""
    figures = getattr(model, "facts", {}).get("figures")
    for figure in figures if isinstance(figures, list) else []:
        if not isinstance(figure, Mapping) or not isinstance(figure.get("measure"), str):
            continue
        measure, part = figure["measure"], figure.get("part", "all")
        metric = measure.split(",")[0].strip()
        is_accuracy = metric == "accuracy"
        for when, moved in (("after", "moved items"), ("before", "items as they are")):
            if isinstance(figure.get(when), float | int):
                yield {
                    "task_type": "classification" if is_accuracy else "information-retrieval",
                    "dataset_type": "held-out",
                    "dataset_name": f"held-out queries ({part})",
                    "metric_type": metric.lower().replace("@", "_at_").replace(" ", "_"),
                    "metric_name": f"{measure} ({moved})",
                    "metric_value": round(float(figure[when]), 4),
                }
    best = getattr(model, "best_score_", None)
    if isinstance(best, float) and best == best:
        yield {
            "task_type": "classification",
            "dataset_type": "held-out",
            "dataset_name": "cross-validation",
            "metric_type": "accuracy",
            "metric_name": "accuracy, held out, chosen by it",
            "metric_value": round(best, 4),
        }
