from . import device_mesh, tensor
