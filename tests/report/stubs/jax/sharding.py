class Mesh:
    def __init__(self, devices, axis_names, *, axis_types=None):
        self.devices = devices
        self.axis_names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if len(devices.shape) != len(self.axis_names):
            raise ValueError("Mesh requires one name for every dimension of devices")
        if len(set(self.axis_names)) != len(self.axis_names):
            raise ValueError(f"axis names are not unique: {self.axis_names}")
        self.shape = dict(zip(self.axis_names, devices.shape))


class PartitionSpec(tuple):
    def __new__(cls, *partitions, unreduced=frozenset(), reduced=frozenset()):
        return tuple.__new__(cls, partitions)


class NamedSharding:
    def __init__(self, mesh, spec, *, memory_kind=None):
        self.mesh = mesh
        self.spec = spec
        used = [name for entry in spec for name in self._names(entry)]
        for name in used:
            if name not in mesh.shape:
                raise ValueError(f"resource axis {name} of {spec} is not found in mesh {mesh.shape}")
        if len(set(used)) != len(used):
            raise ValueError(f"{spec} uses an axis more than once")

    @staticmethod
    def _names(entry):
        return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)

    def shard_shape(self, global_shape):
        shape = []
        for d, extent in enumerate(global_shape):
            pieces = 1
            for name in self._names(self.spec[d]) if d < len(self.spec) else ():
                pieces *= self.mesh.shape[name]
            if extent % pieces != 0:
                raise ValueError(f"dimension {d} of {global_shape} should be divisible by {pieces}")
            shape.append(extent // pieces)
        return tuple(shape)

    def devices_indices_map(self, global_shape):
        """By device, the begin and end that it holds of every dimension."""
        if len(self.spec) > len(global_shape):
            raise ValueError(f"{self.spec} is of higher rank than {global_shape}")
        held = {}
        for position, device in enumerate(self.mesh.devices.flat):
            coordinates = {}
            for name in reversed(self.mesh.axis_names):
                coordinates[name] = position % self.mesh.shape[name]
                position //= self.mesh.shape[name]
            ranges = []
            for d, extent in enumerate(global_shape):
                piece, pieces = 0, 1
                for name in self._names(self.spec[d]) if d < len(self.spec) else ():
                    piece = piece * self.mesh.shape[name] + coordinates[name]
                    pieces *= self.mesh.shape[name]
                size = -(-extent // pieces)
                ranges.append((min(piece * size, extent), min((piece + 1) * size, extent)))
            held[device] = tuple(ranges)
        return held
