"""JAX alone: the scanned decoder with JAX's flash attention, the optimizer's state divided between the devices."""

from pieces import shardings
from recipe import largest_dimension, placed
from scanned_decoder import decoder


def zero(shard=False, **options):
    """The scanned decoder with the optimizer's state divided between the devices, the weights whole on each."""
    made = decoder(**options)
    if shard:
        devices = made.args[2].sharding.mesh
        params, state, tokens = made.args
        state = placed(state, largest_dimension(devices, "fsdp"))
        made.args = (params, state, tokens)
        made.out_shardings = (made.out_shardings[0], shardings(state), None)
    return made


