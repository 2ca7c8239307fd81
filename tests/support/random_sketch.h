#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/random.h"
#include "tests/support/time_sketch.h"

namespace shardplan {

/// Random kernels, products, views, collectives on three levels of links, some in pieces, and buckets of two neighbours; the
/// first half may be a loop.
inline ParallelProgram random_sketch(Random& random) {
  static const auto product = std::make_shared<const Operation>(
      make_operation(*find_operator_type("MatMul"), {}, {{{4, 4}, DataType::kF32}, {{4, 4}, DataType::kF32}}));
  TimeSketch sketch;
  ParallelProgram& program = sketch.program;
  std::vector<ValueId> made{sketch.kernel(5, {})};
  const auto pieces = [&](CollectiveKind kind) {
    Instruction& last = program.instructions.back();
    last.step.edit().kind = kind;
    last.step.edit().axes = {AxisRef{0, 1, 4}};
    last.in_pieces = true;
  };
  const std::size_t count = 4 + random.below(40);
  while (program.instructions.size() < count) {
    const ValueId input = made[random.below(made.size())];
    const auto time = static_cast<Picoseconds>(random.below(40));
    const std::uint32_t links = 1 + static_cast<std::uint32_t>(random.below(7));
    switch (random.below(6)) {
      case 0:
        made.push_back(sketch.kernel(random.below(3) == 0 ? 0 : time, {input, made.back()}));
        break;
      case 1:
        made.push_back(sketch.collective(time, input, links));
        break;
      case 2:
        made.push_back(sketch.collective(time, input, links));
        pieces(CollectiveKind::kAllGather);
        break;
      case 3:
        made.push_back(sketch.kernel(time + 1, {input, made.back()}));
        program.instructions.back().operation = product;
        if (random.below(2) == 0) break;
        made.push_back(sketch.collective(time, made.back(), links));
        pieces(CollectiveKind::kReduceScatter);
        break;
      default:
        made.push_back(sketch.kernel(time, {input}));
    }
  }
  for (std::size_t i = 1; i < program.instructions.size(); ++i) {
    Instruction& a = program.instructions[i - 1];
    Instruction& b = program.instructions[i];
    if (a.links == 0 || b.links == 0 || a.in_pieces || b.in_pieces || a.fusion > 0 || b.inputs[0] == a.outputs[0])
      continue;
    program.buckets.push_back({CollectiveKind::kAllReduce, {}, std::max(a.time, b.time) + 1, 0, 2, a.outputs[0]});
    a.fusion = b.fusion = static_cast<std::uint32_t>(program.buckets.size());
  }
  if (random.below(2) == 0) return program;
  program.micro_batches = 2 + static_cast<std::int64_t>(random.below(4));
  program.reduces_in_last_run = random.below(2) == 0;
  std::size_t loop = program.instructions.size() / 2;
  const auto is_bound = [](const Instruction& one) { return one.fusion > 0 || one.in_pieces; };
  while (loop < program.instructions.size() && is_bound(program.instructions[loop])) ++loop;
  for (std::size_t i = 0; i < loop; ++i) program.instructions[i].runs = program.micro_batches;
  return program;
}

}  // namespace shardplan
