"""Arrays of objects, as far as jax.sharding.Mesh needs them."""


class ndarray:
    def __init__(self, items, shape=None):
        self.flat = list(items)
        self.shape = (len(self.flat),) if shape is None else tuple(shape)

    def reshape(self, *shape):
        if len(shape) == 1 and isinstance(shape[0], tuple):
            shape = shape[0]
        size = 1
        for extent in shape:
            size *= extent
        if size != len(self.flat):
            raise ValueError(f"cannot reshape array of size {len(self.flat)} into shape {shape}")
        return ndarray(self.flat, shape)

    def __getitem__(self, indices):
        return ndarray([self.flat[i] for i in indices])


def array(object, dtype=None, *, copy=True):
    return ndarray(object)
