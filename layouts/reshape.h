#pragma once

#include <optional>
#include <vector>

#include "layouts/tensor_layout.h"

namespace shardplan {

/// The factors into which both shapes can be grouped: refine([2, 4], [4, 2]) is [2, 2, 2], refine([512, 1024], [128,
/// 4096]) is [128, 4, 1024]. Nothing if the shapes have different sizes or no common factors ([2, 3] and [3, 2]).
std::optional<Shape> refine(const Shape& a, const Shape& b);

/// Two layouts on the two sides of a reshape, expressed as layouts of one tensor, between which a redistribution can
/// be planned: the shape has one dimension for each run of dimensions that the two shapes have in common, with parts
/// where they differ inside. For [512, 1024] -> [128, 4096] it has one dimension, (512:{x}, 1024:{y}) -> (128:{x},
/// 4096:{y}). A device's shard is the same sequence of numbers in both forms, so flattening is free.
struct ReshapeEnds {
  Shape shape;
  TensorLayout from;
  TensorLayout to;
};
/// Requires shapes of the same size, none of them 0, and layouts that fit.
ReshapeEnds flatten_ends(const TensorLayout& from, const Shape& from_shape, const TensorLayout& to,
                         const Shape& to_shape);

/// The same placement of the other shape, in canonical form. Nothing if the other shape has no such layout: [{x}] with
/// x=4 on [12] is none of [2, 6], but with x=2 it is [{x}, {}].
std::optional<TensorLayout> reshaped(const TensorLayout& layout, const Shape& shape, const Shape& other_shape);

}  // namespace shardplan
