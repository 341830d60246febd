"""`save` and `load`: fitted models as folders of JSON, safetensors and a card, which run no code.

`push_to_hub` uploads such a folder to the Hugging Face Hub; `load` reads it from there.
"""

from .folder import load, save
from .hub import push_to_hub

__all__ = ["load", "push_to_hub", "save"]
