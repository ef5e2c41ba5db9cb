"""Imported before gemma: puts back names that its kauldron has lost, which nothing here calls."""

import kauldron.checkpoints

for name in ("AbstractPartialLoader", "PartialLoader", "InitTransform"):
    if not hasattr(kauldron.checkpoints, name):
        setattr(kauldron.checkpoints, name, type(name, (), {}))
