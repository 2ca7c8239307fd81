#include "operators/families/attention_phases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "operators/building/attention_operands.h"
#include "operators/building/phase_list.h"

namespace shardplan {
namespace {

/// The shapes of what is kept by piece of the keys, batch, head and query: [t, b, g, r, s].
Shape part_shape(const AttentionSizes& sizes, std::int64_t pieces) {
  return {pieces, sizes.batch, sizes.groups, sizes.ratio, sizes.queries};
}

std::vector<TensorType> infer_part(const Operation& operation) {
  const AttentionSizes sizes = attention_sizes(operation, 0);
  const std::int64_t pieces = operation.integer("pieces");
  if (pieces < 1 || sizes.keys % pieces != 0) {
    operand_error(operation, fmt::format("cannot cut {} keys in {} pieces", sizes.keys, pieces));
  }
  const DataType type = statistics_type(operation.operands[0].dtype);
  const Shape part = part_shape(sizes, pieces);
  Shape values = part;
  values.push_back(sizes.width);
  return {{part, type}, {part, type}, {std::move(values), type}};
}

/// A factor that the whole operator has as one is a dimension by itself, or none if it is 1.
TensorWalk part_walk(const AttentionWalks& walks, bool has_piece, bool has_width) {
  TensorWalk walk = {walks.b, walks.g, walks.r, walks.s};
  if (has_piece) walk.insert(walk.begin(), walks.t);
  if (has_width) walk.push_back(walks.e);
  return walk;
}

ShardingRule part_rule(const Operation& operation) {
  const AttentionSizes sizes = attention_sizes(operation, 0);
  AttentionSizes of_pieces = sizes;
  of_pieces.keys = operation.integer("pieces");
  RuleBuilder builder;
  AttentionWalks walks(builder, operation, of_pieces);
  const DimensionWalk piece = walks.t;
  const DimensionWalk keys =
      product(piece, builder.add("u", sizes.keys / of_pieces.keys, FactorKind::kNeedReplication));
  builder.operand(walks.q());
  walks.t = keys;
  builder.operand(walks.k());
  builder.operand(walks.v());
  const AttentionForm form = attention_form(operation);
  if (form.bias) builder.operand(walks.bias(operation.operands[*form.bias].shape));
  if (form.positions) {
    builder.operand({walks.s});
    builder.operand({keys});
  }
  walks.t = piece;
  builder.result(part_walk(walks, true, false));
  builder.result(part_walk(walks, true, false));
  builder.result(part_walk(walks, true, true));
  return builder.build();
}

void part_kernel(const KernelCall& call) {
  const AttentionSizes sizes = attention_sizes(call.operation, 0);
  const AttentionForm form = attention_form(call.operation);
  const AttentionOptions options = attention_options(call, sizes.depth);
  const Box pieces = call.box("t");
  const std::int64_t size = sizes.keys / pieces.extent;
  const std::int64_t rows_of_piece = num_elements(call.results[0].shape) / pieces.size();
  for (std::int64_t p = 0; p < pieces.size(); ++p) {
    const std::int64_t begin = (pieces.begin + p) * size;
    const LocalAttentionHeads heads(call, sizes, form, {begin, begin + size, sizes.keys}, p * size);
    heads.for_each([&](const AttentionHead& head, std::int64_t b, std::int64_t h, std::int64_t) {
      const std::int64_t first = p * rows_of_piece + (b * heads.num_heads() + h) * head.queries;
      attend(head, options, {call.results[2].data + first * head.width, head.width}, call.results[0].data + first,
             call.results[1].data + first);
    });
  }
}

double part_flops(const Operation& operation, std::span<const std::int64_t> extents) {
  const std::int64_t size = attention_sizes(operation, 0).keys / operation.integer("pieces");
  std::vector<std::int64_t> of_keys(extents.begin(), extents.end());
  of_keys[*operation.rule.find("t")] *= size;
  return attention_flops(operation, of_keys, attention_form(operation), 1, 1);
}

double part_read_share(const Operation& operation, std::span<const std::int64_t> extents, std::size_t operand) {
  return attention_read_share(operation, extents, 0, operand);
}

std::vector<TensorType> infer_without_pieces(const Operation& operation) {
  std::vector<TensorType> results;
  for (std::size_t i = 0; i < operation.type->signature.results.size(); ++i) {
    // AttentionMax has the maxima alone; AttentionSum returns the sums and the values.
    TensorType type = operation.operands[operation.operands.size() == 1 ? 0 : i + 1];
    type.shape.erase(type.shape.begin());
    results.push_back(std::move(type));
  }
  return results;
}

/// Calls body(piece's row, row) for each row of [pieces, rows].
template <class Body>
void for_each_part(const KernelCall& call, Body body) {
  const std::int64_t pieces = call.operands[0].shape[0];
  const std::int64_t rows = num_elements(call.operands[0].shape) / pieces;
  for (std::int64_t p = 0; p < pieces; ++p) {
    for (std::int64_t row = 0; row < rows; ++row) body(p * rows + row, row);
  }
}

void attention_max_kernel(const KernelCall& call) {
  std::fill_n(call.results[0].data, num_elements(call.results[0].shape), kNoScore);
  for_each_part(call, [&](std::int64_t part, std::int64_t row) {
    call.results[0].data[row] = std::max(call.results[0].data[row], call.operands[0].data[part]);
  });
}

/// (max, sum, acc, top): each piece's sums at the scale of the largest maximum, added up.
void attention_sum_kernel(const KernelCall& call) {
  const std::int64_t width = call.operands[2].shape.back();
  for_each_part(call, [&](std::int64_t part, std::int64_t row) {
    const double shrink = std::exp(call.operands[0].data[part] - call.operands[3].data[row]);
    call.results[0].data[row] += shrink * call.operands[1].data[part];
    for (std::int64_t c = 0; c < width; ++c) {
      call.results[1].data[row * width + c] += shrink * call.operands[2].data[part * width + c];
    }
  });
}

std::vector<TensorType> infer_apply(const Operation& operation) {
  const Shape& values = operation.operands[2].shape;
  const Shape lse = {values[0], values[1] * values[2], values[3]};
  const std::optional<DataType> type = parse_data_type(operation.text("dtype"));
  return {{in_attention_layout<Shape>(is_bsnd(operation), lse[0], lse[1], lse[2], values[4]),
           type.value_or(DataType::kF32)},
          {lse, operation.operands[0].dtype}};
}

ShardingRule apply_rule(const Operation& operation) {
  const Shape& values = operation.operands[2].shape;
  RuleBuilder builder;
  const DimensionWalk b = builder.add("b", values[0]), g = builder.add("g", values[1]);
  const DimensionWalk r = values[2] == 1 ? whole() : builder.add("r", values[2]);
  const DimensionWalk s = builder.add("s", values[3]);
  const DimensionWalk e = builder.add("e", values[4], FactorKind::kNeedReplication);
  builder.operand({b, g, r, s});
  builder.operand({b, g, r, s});
  builder.operand({b, g, r, s, e});
  builder.result(in_attention_layout<TensorWalk>(is_bsnd(operation), b, product(g, r), s, e));
  builder.result({b, product(g, r), s});
  return builder.build();
}

/// (top, total, values) -> values / total and top + log(total).
void apply_kernel(const KernelCall& call) {
  const bool bsnd = is_bsnd(call.operation);
  const Shape& shape = call.operands[2].shape;
  const std::int64_t heads = shape[1] * shape[2];
  const std::int64_t queries = shape[3];
  const std::int64_t width = shape[4];
  for (std::int64_t row = 0; row < shape[0] * heads * queries; ++row) {
    const double total = call.operands[1].data[row];
    if (total == 0) continue;
    call.results[1].data[row] = call.operands[0].data[row] + std::log(total);
    const ResultRows o = attention_rows(call.results[0], bsnd, row / queries / heads, row / queries % heads);
    for (std::int64_t c = 0; c < width; ++c) {
      o.row(row % queries)[c] = call.operands[2].data[row * width + c] / total;
    }
  }
}
OperatorType attention_part() {
  std::vector<AttributeSpec> attributes = attention_attributes();
  attributes.push_back(integer("pieces", std::nullopt, "of the keys"));
  return {.name = "AttentionPart",
          .signature = "q, k, v, bias?, q_positions?, k_positions? -> max, sum, acc",
          .attributes = std::move(attributes),
          .infer = infer_part,
          .rule_text = "b (g r) s d, b g (t u) d, b g (t u) e -> t b g r s, t b g r s, t b g r s e; u, d, e: whole",
          .rule = part_rule,
          .kernel = part_kernel,
          .work = WorkKind::kContraction,
          .flops = part_flops,
          .role = OperatorRole::kAttention,
          .read_share = part_read_share,
          .is_internal = true,
          .draws_as_forward = true};
}
}  // namespace

Phases attention_phases(const Operation& operation, std::span<const std::int64_t> pieces) {
  Attributes part = operation.attributes;
  part["pieces"] = pieces[*operation.rule.find("t")];
  const std::vector<std::string>& names = operation.type->signature.operands;  // by position, whatever the operand is
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(operation.operands.size());
  const std::string part_of = fmt::format("max, sum, acc = AttentionPart({})", fmt::join(names.begin(), end, ", "));
  const Attributes layout = {{"input_layout", operation.text("input_layout")},
                             {"dtype", std::string(to_string(operation.operands[0].dtype))}};
  return make_phases(operation, {{part_of, part},
                                 {"top = AttentionMax(max)"},
                                 {"total, values = AttentionSum(max, sum, acc, top)"},
                                 {"o, lse = AttentionApply(top, total, values)", layout}});
}

std::vector<OperatorType> attention_phase_operators() {
  return {
      attention_part(),
      {.name = "AttentionMax",
       .signature = "max -> top",
       .infer = infer_without_pieces,
       .rule_text = "t b g r s -> b g r s; t: max",
       .kernel = attention_max_kernel,
       .is_internal = true},
      {.name = "AttentionSum",
       .signature = "max, sum, acc, top -> total, values",
       .infer = infer_without_pieces,
       .rule_text = "t b g r s, t b g r s, t b g r s e, b g r s -> b g r s, b g r s e; t: sum; e: whole",
       .kernel = attention_sum_kernel,
       .flops_per_point = 2,
       .is_internal = true},
      {.name = "AttentionApply",
       .signature = "top, total, values -> o, lse",
       .attributes = {text("input_layout", "BNSD", "of o"), text("dtype", std::nullopt, "of o")},
       .infer = infer_apply,
       .rule_text = "b g r s, b g r s, b g r s e -> b (g r) s e, b (g r) s; e: whole",
       .rule = apply_rule,
       .kernel = apply_kernel,
       .is_internal = true},
  };
}

}  // namespace shardplan
