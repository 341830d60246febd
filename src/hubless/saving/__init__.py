"""`save` and `load`: fitted models as folders of JSON, safetensors and a card, which run no code."""

from .folder import load, save

__all__ = ["load", "save"]
