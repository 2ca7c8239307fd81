from . import parallel


class Placement:
    def __init__(self, dim=None):
        self.dim = dim


class Replicate(Placement):
    def __init__(self):
        super().__init__()


class Shard(Placement):
    def __init__(self, dim):
        super().__init__(dim)


class Tensor:
    def __init__(self, shape):
        self.shape = tuple(shape)
        self.requires_grad = True


class DTensor(Tensor):
    def __init__(self, shape, mesh, placements):
        super().__init__(shape)
        if len(placements) != mesh.ndim:
            raise ValueError(f"{len(placements)} placements for a mesh of {mesh.ndim} dimensions")
        for placement in placements:
            if not isinstance(placement, Placement):
                raise RuntimeError(f"{placement} is no placement")
            if placement.dim is not None and not 0 <= placement.dim < len(self.shape):
                raise IndexError(f"Shard({placement.dim}) of a tensor of {len(self.shape)} dimensions")
        self.device_mesh = mesh
        self.placements = tuple(placements)

    def redistribute(self, device_mesh=None, placements=None, *, async_op=False):
        return DTensor(self.shape, device_mesh or self.device_mesh, placements)

    def held(self, rank):
        """The begin and end that a rank holds of every dimension: the mesh's dimensions cut one after the other."""
        coordinates = []
        for extent in reversed(self.device_mesh.shape):
            coordinates.insert(0, rank % extent)
            rank //= extent
        ranges = [(0, extent) for extent in self.shape]
        for pieces, coordinate, placement in zip(self.device_mesh.shape, coordinates, self.placements):
            if placement.dim is None:
                continue
            begin, end = ranges[placement.dim]
            size = -(-(end - begin) // pieces)
            ranges[placement.dim] = (min(begin + coordinate * size, end), min(begin + (coordinate + 1) * size, end))
        return tuple(ranges)


def distribute_tensor(tensor, device_mesh=None, placements=None, *, src_data_rank=0):
    if isinstance(tensor, DTensor):
        raise ValueError("is distributed already")
    return DTensor(tensor.shape, device_mesh, placements)
