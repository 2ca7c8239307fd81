// The rule of attention in one line: "b (g r) s d, b g t d, b g t e -> b (g r) s e, b (g r) s; t: normalised; d, e: whole".
// From it follow, as layouts of one operator, what is known by many names: heads cut (Megatron's tensor parallelism, or
// DeepSpeed-Ulysses with the all_to_all of q, k and v before it), queries cut with k and v gathered (Llama 3's context
// parallelism), keys cut (flash-decoding).
//
// Sources: Dao et al., FlashAttention, NeurIPS 2022 (running maxima, gradient from lse); Dao, FlashAttention-2, 2023 (half
// of the work if causal); Ainslie et al., GQA, EMNLP 2023 (groups).
#include "operators/families/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/random.h"
#include "operators/building/attention_head.h"
#include "operators/building/attributes.h"
#include "operators/building/gradient_support.h"
#include "operators/building/phase_list.h"
#include "operators/building/rule_builder.h"

namespace shardplan {
namespace {

/// Whether heads stand behind positions.
bool is_bsnd(const Operation& operation) {
  const std::string& layout = operation.text("input_layout");
  if (layout != "BNSD" && layout != "BSND") {
    operand_error(operation, fmt::format("input_layout is {}; expected BNSD or BSND", layout));
  }
  return layout == "BSND";
}

/// Batch, heads, positions and the last dimension in the order of the layout.
template <class List, class Item>
List in_layout(bool bsnd, Item batch, Item heads, Item positions, Item last) {
  if (bsnd) return {std::move(batch), std::move(positions), std::move(heads), std::move(last)};
  return {std::move(batch), std::move(heads), std::move(positions), std::move(last)};
}

struct Sizes {
  std::int64_t batch = 1;
  std::int64_t groups = 1;  // heads of k and v
  std::int64_t ratio = 1;   // heads of q for each
  std::int64_t queries = 1;
  std::int64_t keys = 1;
  std::int64_t depth = 1;
  std::int64_t width = 1;  // of v

  std::int64_t heads() const { return groups * ratio; }
};

/// The sizes of q, k and v, which are the operands from `first` on.
Sizes sizes_of(const Operation& operation, std::size_t first) {
  const Shape& q = operation.operands[first].shape;
  const Shape& k = operation.operands[first + 1].shape;
  const Shape& v = operation.operands[first + 2].shape;
  if (q.size() != 4 || k.size() != 4 || v.size() != 4) {
    operand_error(operation, fmt::format("needs q, k and v of 4 dimensions, found {}, {} and {}", to_string(q),
                                         to_string(k), to_string(v)));
  }
  const std::size_t heads = is_bsnd(operation) ? 2 : 1;
  const std::size_t positions = 3 - heads;
  const Shape expected_v = {k[0], k[1], k[2], v[3]};
  if (q[0] != k[0] || q[3] != k[3] || v != expected_v || q[heads] % k[heads] != 0) {
    operand_error(operation,
                  fmt::format("q {}, k {} and v {} do not fit ({}): batch and depth of q and k must be equal, "
                              "v as k but for its last dimension, heads of q a multiple of those of k",
                              to_string(q), to_string(k), to_string(v), operation.text("input_layout")));
  }
  return {q[0], k[heads], q[heads] / k[heads], q[positions], k[positions], q[3], v[3]};
}

/// Where the operands of a form of the operator stand. Positions are given both or not at all.
struct Form {
  std::size_t q = 0;
  std::optional<std::size_t> positions;
};
Form forward_form(const Operation& operation) {
  if (operation.operands.size() == 4) operand_error(operation, "takes q_positions and k_positions together");
  return {0, operation.operands.size() == 5 ? std::optional<std::size_t>(3) : std::nullopt};
}

void check_positions(const Operation& operation, const Form& form, const Sizes& sizes) {
  if (!form.positions) return;
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const TensorType& found = operation.operands[*form.positions + i];
    const std::int64_t count = i == 0 ? sizes.queries : sizes.keys;
    if (found.shape == Shape{count} && !is_floating(found.dtype)) continue;
    operand_error(operation, fmt::format("{} are {} {}; expected integers [{}]", i == 0 ? "q_positions" : "k_positions",
                                         to_string(found.dtype), to_string(found.shape), count));
  }
}

void check_attributes(const Operation& operation) {
  const double keep = operation.number("keep_prob");
  if (!(keep > 0 && keep <= 1)) {
    operand_error(operation, fmt::format("keep_prob is {}; expected above 0, at most 1", keep));
  }
  if (operation.integer("window") < 0) {
    operand_error(operation, fmt::format("window is {}; expected 0 (all) or more", operation.integer("window")));
  }
}

DataType wide(DataType type) { return type == DataType::kF64 ? type : DataType::kF32; }

DataType attention_type(const Operation& operation, std::size_t first) {
  const DataType type = operation.operands[first].dtype;
  for (std::size_t i = first; i < first + 3; ++i) {
    if (operation.operands[i].dtype == type && is_floating(type)) continue;
    operand_error(operation, fmt::format("q, k and v are {}, {} and {}; expected one floating type",
                                         to_string(operation.operands[first].dtype),
                                         to_string(operation.operands[first + 1].dtype),
                                         to_string(operation.operands[first + 2].dtype)));
  }
  return type;
}

/// Walks of the dimensions by what they count. One head per group needs no factor of its own.
struct Walks {
  DimensionWalk b, g, r, s, t, d, e;
  DimensionWalk heads;
  bool bsnd = false;

  Walks(RuleBuilder& builder, const Operation& operation, const Sizes& sizes)
      : b(builder.add("b", sizes.batch)),
        g(builder.add("g", sizes.groups)),
        r(sizes.ratio == 1 ? whole() : builder.add("r", sizes.ratio)),
        s(builder.add("s", sizes.queries)),
        t(builder.add("t", sizes.keys)),
        d(builder.add("d", sizes.depth, FactorKind::kNeedReplication)),
        e(builder.add("e", sizes.width, FactorKind::kNeedReplication)),
        heads(product(g, r)),
        bsnd(is_bsnd(operation)) {}

  TensorWalk q() const { return in_layout<TensorWalk>(bsnd, b, heads, s, d); }
  TensorWalk k() const { return in_layout<TensorWalk>(bsnd, b, g, t, d); }
  TensorWalk v() const { return in_layout<TensorWalk>(bsnd, b, g, t, e); }
  TensorWalk o() const { return in_layout<TensorWalk>(bsnd, b, heads, s, e); }
  TensorWalk lse() const { return {b, heads, s}; }
};

// ---- forward

std::vector<TensorType> infer_attention(const Operation& operation) {
  const Form form = forward_form(operation);
  check_attributes(operation);
  const DataType type = attention_type(operation, 0);
  const Sizes sizes = sizes_of(operation, 0);
  check_positions(operation, form, sizes);
  Shape o = operation.operands[0].shape;
  o[3] = sizes.width;
  return {{std::move(o), type}, {{sizes.batch, sizes.heads(), sizes.queries}, wide(type)}};
}

ShardingRule attention_rule(const Operation& operation) {
  RuleBuilder builder;
  const Walks walks(builder, operation, sizes_of(operation, 0));
  builder.set_kind(walks.t, FactorKind::kNormalised);
  builder.operand(walks.q());
  builder.operand(walks.k());
  builder.operand(walks.v());
  if (forward_form(operation).positions) {
    builder.operand({walks.s});
    builder.operand({walks.t});
  }
  builder.result(walks.o());
  builder.result(walks.lse());
  return builder.build();
}

/// The pairs of a query and a key that sees it, for the last `queries` of all and the first `keys`: what the busiest
/// device has, if positions count from 0.
double visible_pairs(const Operation& operation, const Sizes& all, std::int64_t queries, std::int64_t keys) {
  const std::int64_t window = operation.integer("window");
  const bool is_causal = operation.flag("causal");
  if (!is_causal && window == 0) return static_cast<double>(queries) * static_cast<double>(keys);
  double pairs = 0;
  for (std::int64_t i = all.queries - queries; i < all.queries; ++i) {
    // The busiest piece of keys for a window is the one in which it lies.
    std::int64_t visible = is_causal ? std::min(i + 1, all.keys) : all.keys;
    if (window > 0) visible = std::min(visible, is_causal ? window : 2 * window - 1);
    pairs += static_cast<double>(std::min(visible, keys));
  }
  return pairs;
}

/// `products` of q k^T's size.
double attention_flops(const Operation& operation, std::span<const std::int64_t> extents, std::size_t first,
                       double of_depth, double of_width) {
  const auto extent = [&](const char* name) {
    const std::optional<std::uint32_t> at = operation.rule.find(name);
    return at ? static_cast<double>(extents[*at]) : 1.0;
  };
  const auto local = [&](const char* name) { return extents[*operation.rule.find(name)]; };
  const double pairs = visible_pairs(operation, sizes_of(operation, first), local("s"), local("t"));
  return 2 * extent("b") * extent("g") * extent("r") * pairs * (of_depth * extent("d") + of_width * extent("e"));
}

double forward_flops(const Operation& operation, std::span<const std::int64_t> extents) {
  return attention_flops(operation, extents, 0, 1, 1);
}

// ---- kernels: every query head by itself

AttentionOptions options_of(const KernelCall& call, std::int64_t depth) {
  const Operation& operation = call.operation;
  const double scale = operation.number("scale");
  return {scale == 0 ? 1 / std::sqrt(static_cast<double>(depth)) : scale, operation.flag("causal"),
          operation.integer("window"), operation.number("keep_prob"), mix(call.seed)};
}

/// The rows of one head of a local tensor in the layout.
template <class View>
auto rows_of(const View& view, bool bsnd, std::int64_t batch, std::int64_t head) {
  const Shape& shape = view.shape;
  const std::int64_t heads = shape[bsnd ? 2 : 1];
  const std::int64_t positions = shape[bsnd ? 1 : 2];
  const std::int64_t first = bsnd ? batch * positions * heads + head : (batch * heads + head) * positions;
  return RowsOf{view.data + first * shape[3], bsnd ? heads * shape[3] : shape[3]};
}

Box box_or_one(const KernelCall& call, const char* factor) {
  return call.operation.rule.find(factor) ? call.box(factor) : Box{0, 1, 1};
}

/// The positions of a box, given or counted.
std::vector<double> positions_of(const KernelCall& call, std::optional<std::size_t> operand, std::int64_t begin,
                                 std::int64_t size, std::int64_t skipped) {
  std::vector<double> positions(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) {
    positions[static_cast<std::size_t>(i)] =
        operand ? call.operands[*operand].data[skipped + i] : static_cast<double>(begin + i);
  }
  return positions;
}

/// The local heads of a call; q, k and v are the operands from `first` on. With pieces of keys, `piece` is one of them.
class LocalHeads {
 public:
  LocalHeads(const KernelCall& call, const Sizes& sizes, const Form& form, const Box& keys, std::int64_t skipped_keys)
      : call_(call),
        sizes_(sizes),
        form_(form),
        bsnd_(is_bsnd(call.operation)),
        g_(call.box("g")),
        r_(box_or_one(call, "r")),
        s_(call.box("s")),
        keys_(keys),
        skipped_keys_(skipped_keys),
        q_positions_(positions_of(call, form.positions, s_.begin, s_.size(), 0)),
        k_positions_(positions_of(call, form.positions ? std::optional(*form.positions + 1) : std::nullopt, keys.begin,
                                  keys.size(), skipped_keys)) {}

  /// Calls body(head, batch, head's number in q, head's number in k), all local.
  template <class Body>
  void for_each(Body body) const {
    const Box batch = call_.box("b");
    for (std::int64_t b = 0; b < batch.size(); ++b) {
      for (std::int64_t g = 0; g < g_.size(); ++g) {
        for (std::int64_t r = 0; r < r_.size(); ++r) {
          const std::int64_t local = g * r_.size() + r;
          const std::int64_t global = (g_.begin + g) * sizes_.ratio + r_.begin + r;
          AttentionHead head;
          head.q = rows_of(call_.operands[form_.q], bsnd_, b, local);
          head.k = rows_of(call_.operands[form_.q + 1], bsnd_, b, g);
          head.v = rows_of(call_.operands[form_.q + 2], bsnd_, b, g);
          head.k.data = head.k.row(skipped_keys_);
          head.v.data = head.v.row(skipped_keys_);
          head.queries = s_.size();
          head.keys = keys_.size();
          head.depth = sizes_.depth;
          head.width = sizes_.width;
          head.q_positions = q_positions_;
          head.k_positions = k_positions_;
          const std::int64_t row = ((batch.begin + b) * sizes_.heads() + global) * sizes_.queries + s_.begin;
          head.first_draw = static_cast<std::uint64_t>(row * sizes_.keys + keys_.begin);
          head.draws_per_query = static_cast<std::uint64_t>(sizes_.keys);
          body(head, b, local, g);
        }
      }
    }
  }

  std::int64_t num_heads() const { return g_.size() * r_.size(); }

 private:
  const KernelCall& call_;
  const Sizes& sizes_;
  const Form& form_;
  const bool bsnd_;
  const Box g_, r_, s_, keys_;
  const std::int64_t skipped_keys_;
  const std::vector<double> q_positions_, k_positions_;
};

void attention_kernel(const KernelCall& call) {
  const Sizes sizes = sizes_of(call.operation, 0);
  const Form form = forward_form(call.operation);
  const LocalHeads heads(call, sizes, form, call.box("t"), 0);
  const AttentionOptions options = options_of(call, sizes.depth);
  heads.for_each([&](const AttentionHead& head, std::int64_t b, std::int64_t h, std::int64_t) {
    const ResultRows o = rows_of(call.results[0], is_bsnd(call.operation), b, h);
    std::vector<double> max(static_cast<std::size_t>(head.queries)), sum(static_cast<std::size_t>(head.queries));
    attend(head, options, o, max.data(), sum.data());
    double* lse = call.results[1].data + (b * heads.num_heads() + h) * head.queries;
    for (std::int64_t i = 0; i < head.queries; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (sum[at] == 0) continue;
      lse[i] = max[at] + std::log(sum[at]);
      for (std::int64_t c = 0; c < head.width; ++c) o.row(i)[c] /= sum[at];
    }
  });
}

// ---- phases: of pieces of keys

/// The shapes of what is kept by piece of the keys, batch, head and query: [t, b, g, r, s].
Shape part_shape(const Sizes& sizes, std::int64_t pieces) {
  return {pieces, sizes.batch, sizes.groups, sizes.ratio, sizes.queries};
}

Phases attention_phases(const Operation& operation, std::span<const std::int64_t> pieces) {
  Attributes part = operation.attributes;
  part["pieces"] = pieces[*operation.rule.find("t")];
  const std::string_view inputs = "max, sum, acc = AttentionPart(q, k, v)";
  const std::string_view with_positions = "max, sum, acc = AttentionPart(q, k, v, q_positions, k_positions)";
  const Attributes layout = {{"input_layout", operation.text("input_layout")},
                             {"dtype", std::string(to_string(operation.operands[0].dtype))}};
  return make_phases(operation, {{forward_form(operation).positions ? with_positions : inputs, part},
                                 {"top = AttentionMax(max)"},
                                 {"total, values = AttentionSum(max, sum, acc, top)"},
                                 {"o, lse = AttentionApply(top, total, values)", layout}});
}

std::vector<TensorType> infer_part(const Operation& operation) {
  const Sizes sizes = sizes_of(operation, 0);
  const std::int64_t pieces = operation.integer("pieces");
  if (pieces < 1 || sizes.keys % pieces != 0) {
    operand_error(operation, fmt::format("cannot cut {} keys in {} pieces", sizes.keys, pieces));
  }
  const DataType type = wide(operation.operands[0].dtype);
  const Shape part = part_shape(sizes, pieces);
  Shape values = part;
  values.push_back(sizes.width);
  return {{part, type}, {part, type}, {std::move(values), type}};
}

/// A factor that the whole operator has as one is a dimension by itself, or none if it is 1.
TensorWalk part_walk(const Walks& walks, bool has_piece, bool has_width) {
  TensorWalk walk = {walks.b, walks.g, walks.r, walks.s};
  if (has_piece) walk.insert(walk.begin(), walks.t);
  if (has_width) walk.push_back(walks.e);
  return walk;
}

ShardingRule part_rule(const Operation& operation) {
  const Sizes sizes = sizes_of(operation, 0);
  Sizes of_pieces = sizes;
  of_pieces.keys = operation.integer("pieces");
  RuleBuilder builder;
  Walks walks(builder, operation, of_pieces);
  const DimensionWalk piece = walks.t;
  const DimensionWalk keys =
      product(piece, builder.add("u", sizes.keys / of_pieces.keys, FactorKind::kNeedReplication));
  builder.operand(walks.q());
  walks.t = keys;
  builder.operand(walks.k());
  builder.operand(walks.v());
  if (forward_form(operation).positions) {
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
  const Sizes sizes = sizes_of(call.operation, 0);
  const Form form = forward_form(call.operation);
  const AttentionOptions options = options_of(call, sizes.depth);
  const Box pieces = call.box("t");
  const std::int64_t size = sizes.keys / pieces.extent;
  const std::int64_t rows_of_piece = num_elements(call.results[0].shape) / pieces.size();
  for (std::int64_t p = 0; p < pieces.size(); ++p) {
    const std::int64_t begin = (pieces.begin + p) * size;
    const LocalHeads heads(call, sizes, form, {begin, begin + size, sizes.keys}, p * size);
    heads.for_each([&](const AttentionHead& head, std::int64_t b, std::int64_t h, std::int64_t) {
      const std::int64_t first = p * rows_of_piece + (b * heads.num_heads() + h) * head.queries;
      attend(head, options, {call.results[2].data + first * head.width, head.width}, call.results[0].data + first,
             call.results[1].data + first);
    });
  }
}

double part_flops(const Operation& operation, std::span<const std::int64_t> extents) {
  const std::int64_t size = sizes_of(operation, 0).keys / operation.integer("pieces");
  std::vector<std::int64_t> of_keys(extents.begin(), extents.end());
  of_keys[*operation.rule.find("t")] *= size;
  return attention_flops(operation, of_keys, 0, 1, 1);
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
  return {{in_layout<Shape>(is_bsnd(operation), lse[0], lse[1], lse[2], values[4]), type.value_or(DataType::kF32)},
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
  builder.result(in_layout<TensorWalk>(is_bsnd(operation), b, product(g, r), s, e));
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
    const ResultRows o = rows_of(call.results[0], bsnd, row / queries / heads, row / queries % heads);
    for (std::int64_t c = 0; c < width; ++c) {
      o.row(row % queries)[c] = call.operands[2].data[row * width + c] / total;
    }
  }
}

// ---- gradient: (dy, q, k, v, o, lse[, dlse][, q_positions, k_positions])

bool has_dlse(const Operation& operation) { return operation.operands.size() % 2 == 1; }

Form gradient_form(const Operation& operation) {
  const std::size_t first = has_dlse(operation) ? 7 : 6;
  return {1, operation.operands.size() > first ? std::optional(first) : std::nullopt};
}

std::vector<TensorType> infer_attention_grad(const Operation& operation) {
  (void)attention_type(operation, 1);
  const Sizes sizes = sizes_of(operation, 1);
  check_positions(operation, gradient_form(operation), sizes);
  return {operation.operands[1], operation.operands[2], operation.operands[3]};
}

ShardingRule attention_grad_rule(const Operation& operation) {
  RuleBuilder builder;
  const Walks walks(builder, operation, sizes_of(operation, 1));
  for (const DimensionWalk& summed : {walks.r, walks.s, walks.t}) builder.set_kind(summed, FactorKind::kReduction);
  builder.operand(walks.o());
  builder.operand(walks.q());
  builder.operand(walks.k());
  builder.operand(walks.v());
  builder.operand(walks.o());
  builder.operand(walks.lse());
  if (has_dlse(operation)) builder.operand(walks.lse());
  if (gradient_form(operation).positions) {
    builder.operand({walks.s});
    builder.operand({walks.t});
  }
  builder.result(walks.q());
  builder.result(walks.k());
  builder.result(walks.v());
  return builder.build();
}

/// Five products for the forward pass's two: scores again, dv, dp, dq and dk.
double grad_flops(const Operation& operation, std::span<const std::int64_t> extents) {
  return attention_flops(operation, extents, 1, 3, 2);
}

void attention_grad_kernel(const KernelCall& call) {
  const bool bsnd = is_bsnd(call.operation);
  const Sizes sizes = sizes_of(call.operation, 1);
  const Form form = gradient_form(call.operation);
  const LocalHeads heads(call, sizes, form, call.box("t"), 0);
  const AttentionOptions options = options_of(call, sizes.depth);
  heads.for_each([&](const AttentionHead& head, std::int64_t b, std::int64_t h, std::int64_t g) {
    const Rows dy = rows_of(call.operands[0], bsnd, b, h);
    const Rows o = rows_of(call.operands[4], bsnd, b, h);
    const std::int64_t first = (b * heads.num_heads() + h) * head.queries;
    std::vector<double> delta(static_cast<std::size_t>(head.queries));
    for (std::int64_t i = 0; i < head.queries; ++i) {
      double& sum = delta[static_cast<std::size_t>(i)];
      for (std::int64_t c = 0; c < head.width; ++c) sum += dy.row(i)[c] * o.row(i)[c];
      if (has_dlse(call.operation)) sum -= call.operands[6].data[first + i];
    }
    attend_backward(head, options, dy, call.operands[5].data + first, delta.data(),
                    rows_of(call.results[0], bsnd, b, h), rows_of(call.results[1], bsnd, b, g),
                    rows_of(call.results[2], bsnd, b, g));
  });
}

Gradients attention_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  const std::optional<TensorId>& dlse = request.result_gradients[1];
  const bool is_needed = request.needed[0] || request.needed[1] || request.needed[2];
  if (!is_needed || (!request.result_gradients[0] && !dlse)) return gradients;
  std::vector<TensorId> operands = {gradient_or_zeros(builder, request, 0),
                                    request.operands[0],
                                    request.operands[1],
                                    request.operands[2],
                                    request.results[0],
                                    request.results[1]};
  if (dlse) operands.push_back(*dlse);
  operands.insert(operands.end(), request.operands.begin() + 3, request.operands.end());
  return needed_gradients(request, builder.add("FlashAttentionGrad", request.operation.attributes, operands));
}

std::optional<std::size_t> head_dimension(const Operation& operation) { return is_bsnd(operation) ? 2 : 1; }

std::vector<AttributeSpec> attention_attributes() {
  return {text("input_layout", "BNSD", "BNSD: [batch, heads, positions, depth], or BSND"),
          number("scale", 0, "of the scores; 0: 1 / sqrt(depth)"),
          flag("causal", false, "a query sees no key behind it"),
          integer("window", 0, "a query sees keys less than so many positions away; 0: all"),
          number("keep_prob", 1, "dropout: probability that a weight is kept")};
}

OperatorType attention_part() {
  std::vector<AttributeSpec> attributes = attention_attributes();
  attributes.push_back(integer("pieces", std::nullopt, "of the keys"));
  return {.name = "AttentionPart",
          .signature = "q, k, v, q_positions?, k_positions? -> max, sum, acc",
          .attributes = std::move(attributes),
          .infer = infer_part,
          .rule_text = "b (g r) s d, b g (t u) d, b g (t u) e -> t b g r s, t b g r s, t b g r s e; u, d, e: whole",
          .rule = part_rule,
          .kernel = part_kernel,
          .work = WorkKind::kContraction,
          .flops = part_flops,
          .role = OperatorRole::kAttention,
          .is_internal = true,
          .draws_as_forward = true};
}

}  // namespace

std::vector<OperatorType> attention_operators() {
  return {
      {.name = "FlashAttention",
       .signature = "q, k, v, q_positions?, k_positions? -> o, lse",
       .attributes = attention_attributes(),
       .infer = infer_attention,
       .rule_text = "b (g r) s d, b g t d, b g t e -> b (g r) s e, b (g r) s; t: normalised; d, e: whole",
       .rule = attention_rule,
       .kernel = attention_kernel,
       .phases = attention_phases,
       .gradient = attention_gradient,
       .work = WorkKind::kContraction,
       .flops = forward_flops,
       .flops_text = "2 b g r s t (d + e), of the pairs that see each other",
       .role = OperatorRole::kAttention,
       .head_dimension = head_dimension,
       .notes = "strategy  ((b, n, s, 1), (b, n, t, 1), (b, n, t, 1)); n cuts the heads of k, then those of a group;\n"
                "          s cuts queries and leaves keys whole; t > 1 adds all_reduces of maxima, sums and values\n"
                "memory    lse and no scores are kept for the gradient"},
      {.name = "FlashAttentionGrad",
       .signature = "dy, q, k, v, o, lse, dlse?, q_positions?, k_positions? -> dq, dk, dv",
       .attributes = attention_attributes(),
       .infer = infer_attention_grad,
       .rule_text =
           "b (g r) s e, b (g r) s d, b g t d, b g t e, b (g r) s e, b (g r) s -> b (g r) s d, b g t d, b g t e; "
           "r, s, t: sum; d, e: whole",
       .rule = attention_grad_rule,
       .kernel = attention_grad_kernel,
       .work = WorkKind::kContraction,
       .flops = grad_flops,
       .role = OperatorRole::kAttention,
       .is_internal = true,
       .draws_as_forward = true},
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
