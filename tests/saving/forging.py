"""Changes to a saved model as a forger would make them, with a checksum that fits."""

import hashlib
import json

import safetensors.numpy


def edit_config(folder, change):
    """Change config.json."""
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))


def replace_file(folder, content):
    """Write another model.safetensors, and its checksum."""
    (folder / "model.safetensors").write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    edit_config(folder, lambda config: config["sha256"].update({"model.safetensors": digest}))


def edit_arrays(folder, change):
    """Change the arrays of model.safetensors, and its checksum."""
    arrays = safetensors.numpy.load_file(folder / "model.safetensors")
    change(arrays)
    replace_file(folder, safetensors.numpy.save(arrays))
