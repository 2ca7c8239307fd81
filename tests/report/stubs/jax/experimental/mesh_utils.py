"""Devices in the order of their numbers; shapes are checked as jax.experimental.mesh_utils does."""

import jax
import numpy


def create_device_mesh(mesh_shape, devices=None, *, contiguous_submeshes=False, allow_split_physical_axes=False):
    devices = jax.devices() if devices is None else devices
    return numpy.array(devices).reshape(tuple(mesh_shape))


def create_hybrid_device_mesh(mesh_shape, dcn_mesh_shape, devices=None, *, process_is_granule=False,
                              should_sort_granules_by_key=True, allow_split_physical_axes=False):
    if len(mesh_shape) != len(dcn_mesh_shape):
        raise ValueError("mesh_shape and dcn_mesh_shape must have the same number of dimensions")
    slices = 1
    for extent in dcn_mesh_shape:
        slices *= extent
    if slices == 1:
        raise ValueError("the number of slices must be that of dcn_mesh_shape")
    return create_device_mesh([inside * across for inside, across in zip(mesh_shape, dcn_mesh_shape)], devices)
