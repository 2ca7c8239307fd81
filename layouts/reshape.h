#pragma once

#include <optional>
#include <vector>

#include "layouts/tensor_layout.h"

namespace shardplan {

/// The factors into which both shapes can be grouped: refine([2, 4], [4, 2]) is [2, 2, 2], refine([512, 1024], [128,
/// 4096]) is [128, 4, 1024]. Nothing if the shapes have different sizes or no common factors ([2, 3] and [3, 2]).
std::optional<Shape> refine(const Shape& a, const Shape& b);

/// The two layouts of a reshape, expressed as layouts of one tensor so that a redistribution between them can be
/// planned. The shape has one dimension for each group of dimensions that both shapes can be split into, with parts
/// where the groups differ inside. For [512, 1024] -> [128, 4096] it has one dimension, (512:{x}, 1024:{y}) ->
/// (128:{x}, 4096:{y}). A device's shard is the same sequence of numbers in both forms, so flattening is free.
struct ReshapeEnds {
  Shape shape;
  TensorLayout from;
  TensorLayout to;
};
/// Requires shapes of the same size that is not 0, and valid layouts.
ReshapeEnds flatten_ends(const TensorLayout& from, const Shape& from_shape, const TensorLayout& to,
                         const Shape& to_shape);

/// The same placement as a layout of `other_shape`, in canonical form. Nothing if no layout expresses it: [{x}] with
/// x=4 on [12] has no layout on [2, 6], but with x=2 it is [{x}, {}].
std::optional<TensorLayout> reshaped(const TensorLayout& layout, const Shape& shape, const Shape& other_shape);

}  // namespace shardplan
