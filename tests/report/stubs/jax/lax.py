from .sharding import NamedSharding


def with_sharding_constraint(x, shardings):
    if not isinstance(shardings, NamedSharding):
        raise TypeError("a NamedSharding, or a PartitionSpec under a mesh")
    if len(shardings.spec) > len(x.shape):
        raise ValueError(f"{shardings.spec} is of higher rank than {x.shape}")
    return x
