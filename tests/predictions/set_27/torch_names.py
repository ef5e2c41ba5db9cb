"""Imported before torchax: it names operations that this torch no longer has; they are never called here."""

import torch
from torch._ops import OpOverloadPacket, _OpNamespace


class Gone:
    def __init__(self, name):
        self.name = name

    def __getattr__(self, key):
        if key.startswith("__"):
            raise AttributeError(key)
        return Gone(f"{self.name}.{key}")

    def overloads(self):
        return []


kept = {}
for kind in (OpOverloadPacket, _OpNamespace):
    plain = kept[kind] = kind.__getattr__

    def get(self, key, plain=plain):
        try:
            return plain(self, key)
        except AttributeError:
            if key.startswith("__"):
                raise
            return Gone(key)

    kind.__getattr__ = get

import torchax  # noqa: E402

torchax.default_env()

for kind, plain in kept.items():
    kind.__getattr__ = plain
