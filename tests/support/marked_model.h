#pragma once

#include <string>

namespace shardplan {

/// Three layers of a norm, two linear maps and a dropout, trained on squared errors; `training` adds training options.
inline std::string layered_model(const std::string& training) {
  return R"(
shardplan: 1
model: layered
dims: {B: 8, H: 16, F: 32, L: 3}
inputs: {x: [B, H], y: [B, H]}
blocks:
  layer:
    inputs: {x: [B, H]}
    operators:
      norm: {block: nn.LayerNorm, in: x}
      up:   {block: nn.Dense, in: norm, out_channels: F}
      gelu: {op: GeLU, in: up}
      drop: {op: Dropout, in: gelu, keep_prob: 0.8}
      down: {block: nn.Dense, in: drop, out_channels: H}
      add:  {op: Add, in: [x, down]}
operators:
  layers: {block: layer, in: x, repeat: L}
  error:  {op: Sub, in: [layers, y]}
  square: {op: Square, in: error}
  loss:   {op: ReduceMean, in: square}
loss: loss
training: {optimizer: momentum, learning_rate: 0.1)" +
         training + "}\n";
}

}  // namespace shardplan
