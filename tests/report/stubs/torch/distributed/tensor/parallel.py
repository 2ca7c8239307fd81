from abc import ABC, abstractmethod


class ParallelStyle(ABC):
    src_data_rank = 0

    @abstractmethod
    def _apply(self, module, device_mesh):
        ...


def parallelize_module(module, device_mesh=None, parallelize_plan=None, *, src_data_rank=0):
    if device_mesh.ndim > 1:
        raise ValueError(f"Tensor Parallel only accepts a 1D DeviceMesh, but found {device_mesh.ndim}D!")
    for path, style in parallelize_plan.items():
        if not isinstance(style, ParallelStyle):
            raise TypeError(f"{style} is no ParallelStyle")
        found = [module]
        for atom in path.split("."):
            found = [child for of in found for name, child in of.named_children() if atom in ("*", name)]
        if not found:
            raise KeyError(f"no module is called {path}")
        for child in found:
            style._apply(child, device_mesh)
    return module
