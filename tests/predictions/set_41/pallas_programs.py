"""JAX alone: decoders like Falcon3 1B (heads of 256, 131072 words) and Llama 3.2 3B (its head a matrix of its own), their layers scanned, the splash attention kernel, grouped; fully sharded over 4 chips."""

from scanned_decoder import decoder


def falcon(remat=False, **options):
    return decoder(kernel="splash", policy="nothing_saveable" if remat else None, **options)


def llama(remat=False, **options):
    return decoder(kernel="splash", policy="nothing_saveable" if remat else None, **options)
