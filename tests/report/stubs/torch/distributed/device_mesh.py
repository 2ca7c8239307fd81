class DeviceMesh:
    def __init__(self, shape, mesh_dim_names):
        self.shape = tuple(shape)
        self.ndim = len(self.shape)
        self.mesh_dim_names = mesh_dim_names

    def __getitem__(self, name):
        if name not in self.mesh_dim_names:
            raise KeyError(name)
        return DeviceMesh((self.shape[self.mesh_dim_names.index(name)],), (name,))


def init_device_mesh(device_type, mesh_shape, *, mesh_dim_names=None, backend_override=None):
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError("each mesh_dim_name must be unique")
        if len(mesh_shape) != len(mesh_dim_names):
            raise RuntimeError("mesh_shape and mesh_dim_names should have the same length")
    if not device_type.isalpha():
        raise RuntimeError(f"{device_type} is no device type")
    return DeviceMesh(mesh_shape, tuple(mesh_dim_names))
