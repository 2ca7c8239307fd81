import os

from . import lax, sharding, tree_util


def devices(backend=None):
    return list(range(int(os.environ["SHARDPLAN_TEST_DEVICES"])))


def device_put(x, device=None, *, src=None, donate=False, may_alias=None):
    """Checks that every array of a tree can be stored as its sharding says."""
    if isinstance(x, dict):
        return {key: device_put(x[key], device[key]) for key in x}
    if isinstance(x, (list, tuple)):
        return [device_put(item, at) for item, at in zip(x, device)]
    device.shard_shape(x.shape)
    return x
