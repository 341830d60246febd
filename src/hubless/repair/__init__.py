"""Repair an index: diagnose it, learn how to move its items, measure, build the moved index, and switch.

The functions here take stores and models by name or opened: `fit_index("index.faiss", labels="category")`.
Names are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from ..support.imports import lazy_names

if TYPE_CHECKING:  # what type checkers and editors see; `_HOMES` is what Python does
    from .apply import apply_index as apply_index
    from .apply import index_status as index_status
    from .apply import promote_index as promote_index
    from .apply import recover_index as recover_index
    from .apply import rollback_index as rollback_index
    from .doctor import diagnose as diagnose
    from .evaluate import evaluate_index as evaluate_index
    from .explanation import explain_model as explain_model
    from .item_steps import ItemSteps as ItemSteps
    from .learn_index import fit_index as fit_index
    from .log_evaluation import evaluate_log as evaluate_log
    from .planted import captured as captured
    from .planted import find_planted as find_planted
    from .predict import predict_index as predict_index
    from .preview import preview_index as preview_index
    from .repair import Repair as Repair
    from .update import merge_models as merge_models
    from .update import update_model as update_model

_HOMES = {
    "ItemSteps": "item_steps",
    "Repair": "repair",
    "apply_index": "apply",
    "captured": "planted",
    "diagnose": "doctor",
    "evaluate_index": "evaluate",
    "evaluate_log": "log_evaluation",
    "explain_model": "explanation",
    "find_planted": "planted",
    "fit_index": "learn_index",
    "index_status": "apply",
    "merge_models": "update",
    "predict_index": "predict",
    "preview_index": "preview",
    "promote_index": "apply",
    "recover_index": "apply",
    "rollback_index": "apply",
    "update_model": "update",
}
__all__ = list(_HOMES)
__getattr__ = lazy_names(__name__, _HOMES)
