#include "operators/building/attention_operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

// What the variants of attention have in common: attributes, operands by their roles, and the pairs of a query and a key that
// see each other. Pairs are counted in closed form, since the search asks for the work of every strategy.

namespace shardplan {
namespace {

/// The sum of min(i, most) over i from `first` to `last`.
double sum_of_smaller(std::int64_t first, std::int64_t last, std::int64_t most) {
  const auto up_to = [&](std::int64_t n) {
    const auto growing = static_cast<double>(std::min(n, most)),
               rest = static_cast<double>(std::max(n - most, std::int64_t{0}));
    return growing * (growing + 1) / 2 + rest * static_cast<double>(most);
  };
  return first > last ? 0 : up_to(last) - up_to(first - 1);
}

/// The number of pairs of a query and one of `keys` keys less than `window` positions away; the queries are at the positions
/// from `begin`, the keys at those from 0. Of the keys, min(i, keys) are at positions below i.
double pairs_in_window(std::int64_t begin, std::int64_t queries, std::int64_t keys, std::int64_t window) {
  const auto below = [&](std::int64_t first, std::int64_t last) {
    return sum_of_smaller(std::max<std::int64_t>(first, 1), last, keys);
  };
  const std::int64_t last = begin + queries - 1;
  return below(begin + window, last + window) - below(begin - window + 1, last - window + 1);
}

/// The number of pairs of a query and a key that it sees, for `queries` and `keys` of all (of causal ones the last queries
/// and the first keys): what the busiest device has. The first query is at position `first`, as the keys count from 0.
double busiest_pairs(const Operation& operation, const AttentionSizes& all, std::int64_t first, std::int64_t queries,
                     std::int64_t keys) {
  const std::int64_t window = operation.integer("window");
  const std::int64_t most = std::min(keys, all.keys);
  if (operation.flag("causal")) {
    const std::int64_t last = first + all.queries;
    return sum_of_smaller(last - queries + 1, last, window > 0 ? std::min(most, window) : most);
  }
  const double all_pairs = static_cast<double>(queries) * static_cast<double>(most);
  if (window == 0) return all_pairs;
  // The queries in the middle of the keys see the most of them; the busiest piece of keys is the one that contains their
  // window.
  const std::int64_t middle = std::clamp((all.keys - queries) / 2, first, first + all.queries - queries);
  return std::min(all_pairs, pairs_in_window(middle, queries, all.keys, std::min(window, all.queries + all.keys)));
}

/// Positions are given for two reasons: so that all devices have equally many pairs (zigzag or striped context
/// parallelism), so each has its share of all; and because the queries do not begin at the first key, as in the next part
/// of a prompt, where they are taken to be the last positions.
double visible_pairs(const Operation& operation, const AttentionSizes& all, bool has_positions, std::int64_t queries,
                     std::int64_t keys) {
  if (!has_positions) return busiest_pairs(operation, all, 0, queries, keys);
  const double share = static_cast<double>(queries) / static_cast<double>(all.queries) * static_cast<double>(keys) /
                       static_cast<double>(all.keys);
  const std::int64_t first = std::max<std::int64_t>(0, all.keys - all.queries);
  return share * busiest_pairs(operation, all, first, all.queries, all.keys);
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

}  // namespace

std::vector<AttributeSpec> attention_attributes() {
  return {
      text("input_layout", "BNSD", "BNSD: [batch, heads, positions, depth], or BSND"),
      number("scale", 0, "of the scores; 0: 1 / sqrt(depth)"),
      flag("causal", false, "a query sees no later key"),
      integer("window", 0, "a query sees keys less than so many positions away; 0: all"),
      number("keep_prob", 1, "dropout: probability that a weight is kept"),
      integer("valid_keys", 0, "keys behind so many first ones are padding, which no query sees; 0: all are keys"),
      list("drawn_shape", empty_list(),
           "dropout draws by positions in [heads of k, heads of q for each, queries, keys] of this shape: that without "
           "padding; empty: its own")};
}
bool is_bsnd(const Operation& operation) {
  const std::string& layout = operation.text("input_layout");
  if (layout != "BNSD" && layout != "BSND") {
    operand_error(operation, fmt::format("input_layout is {}; expected BNSD or BSND", layout));
  }
  return layout == "BSND";
}

AttentionSizes attention_sizes(const Operation& operation, std::size_t first) {
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

AttentionForm attention_form(const Operation& operation, std::size_t q, std::size_t optional) {
  AttentionForm form;
  form.q = q;
  const std::size_t count = operation.operands.size();
  const auto rank = [&](std::size_t i) { return operation.operands[i].shape.size(); };
  if (optional < count && rank(optional) != 1) form.bias = optional++;
  if (optional < count) form.positions = optional;
  if (optional < count && count != optional + 2) {
    operand_error(operation,
                  "takes q_positions and k_positions together, behind a bias of 4 dimensions if there is one");
  }
  return form;
}

void check_attention_bias(const Operation& operation, const AttentionForm& form, const AttentionSizes& sizes) {
  if (!form.bias) return;
  const TensorType& bias = operation.operands[*form.bias];
  const Shape all = {sizes.batch, sizes.heads(), sizes.queries, sizes.keys};
  bool fits = bias.shape.size() == all.size() && is_floating(bias.dtype);
  for (std::size_t d = 0; fits && d < all.size(); ++d) fits = bias.shape[d] == 1 || bias.shape[d] == all[d];
  if (fits) return;
  operand_error(operation, fmt::format("bias is {} {}; expected floating {}, or 1 where it is the same for all",
                                       to_string(bias.dtype), to_string(bias.shape), to_string(all)));
}

void check_attention_positions(const Operation& operation, const AttentionForm& form, const AttentionSizes& sizes) {
  if (!form.positions) return;
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const TensorType& found = operation.operands[*form.positions + i];
    const std::int64_t count = i == 0 ? sizes.queries : sizes.keys;
    if (found.shape == Shape{count} && !is_floating(found.dtype)) continue;
    operand_error(operation, fmt::format("{} are {} {}; expected integers [{}]", i == 0 ? "q_positions" : "k_positions",
                                         to_string(found.dtype), to_string(found.shape), count));
  }
}

void check_attention_attributes(const Operation& operation) {
  const double keep = operation.number("keep_prob");
  if (!(keep > 0 && keep <= 1)) {
    operand_error(operation, fmt::format("keep_prob is {}; expected above 0, at most 1", keep));
  }
  if (operation.integer("window") < 0) {
    operand_error(operation, fmt::format("window is {}; expected 0 (all) or more", operation.integer("window")));
  }
  const std::vector<std::int64_t>& drawn = operation.list("drawn_shape");
  const bool is_shape =
      drawn.empty() || (drawn.size() == 4 && std::all_of(drawn.begin(), drawn.end(), [](auto n) { return n >= 1; }));
  if (!is_shape) {
    operand_error(operation, fmt::format("drawn_shape is {}; expected four sizes of 1 or more", to_string(drawn)));
  }
  if (operation.integer("valid_keys") < 0) {
    operand_error(operation,
                  fmt::format("valid_keys is {}; expected 0 (all) or more", operation.integer("valid_keys")));
  }
}

DataType statistics_type(DataType type) { return type == DataType::kF64 ? type : DataType::kF32; }

DataType attention_type(const Operation& operation, std::size_t first) {
  const DataType q = operation.operands[first].dtype, k = operation.operands[first + 1].dtype;
  const DataType v = operation.operands[first + 2].dtype;
  if (!is_floating(q) || k != v || (k != q && k != DataType::kF8E4M3)) {
    operand_error(operation,
                  fmt::format("q, k and v are {}, {} and {}; expected one floating type, or k and v of f8e4m3",
                              to_string(q), to_string(k), to_string(v)));
  }
  return q;
}

double attention_flops(const Operation& operation, std::span<const std::int64_t> extents, const AttentionForm& form,
                       double of_depth, double of_width) {
  const auto extent = [&](const char* name) {
    const std::optional<std::uint32_t> at = operation.rule.find(name);
    return at ? static_cast<double>(extents[*at]) : 1.0;
  };
  const auto local = [&](const char* name) { return extents[*operation.rule.find(name)]; };
  const double pairs =
      visible_pairs(operation, attention_sizes(operation, form.q), form.positions.has_value(), local("s"), local("t"));
  return 2 * extent("b") * extent("g") * extent("r") * pairs * (of_depth * extent("d") + of_width * extent("e"));
}

double attention_read_share(const Operation& operation, std::span<const std::int64_t> extents, std::size_t first,
                            std::size_t operand) {
  const std::int64_t window = operation.integer("window");
  if (window == 0 || (operand != first + 1 && operand != first + 2)) return 1;
  const auto local = [&](const char* name) {
    const std::optional<std::uint32_t> factor = operation.rule.find(name);
    return factor ? extents[*factor] : 1;
  };
  const std::int64_t keys = local("t") * local("u");
  const std::int64_t around = operation.flag("causal") ? window - 1 : 2 * (window - 1);
  return static_cast<double>(std::min(keys, local("s") + around)) / static_cast<double>(keys);
}

AttentionOptions attention_options(const KernelCall& call, std::int64_t depth) {
  const Operation& operation = call.operation;
  const double scale = operation.number("scale");
  return {scale == 0 ? 1 / std::sqrt(static_cast<double>(depth)) : scale,
          operation.flag("causal"),
          operation.integer("window"),
          operation.integer("valid_keys"),
          operation.number("keep_prob"),
          mix(call.seed)};
}

AttentionSizes drawn_sizes(const Operation& operation, const AttentionSizes& sizes) {
  const std::vector<std::int64_t>& drawn = operation.list("drawn_shape");
  AttentionSizes result = sizes;
  if (drawn.empty()) return result;
  result.groups = drawn[0];
  result.ratio = drawn[1];
  result.queries = drawn[2];
  result.keys = drawn[3];
  return result;
}

LocalAttentionHeads::LocalAttentionHeads(const KernelCall& call, const AttentionSizes& sizes, const AttentionForm& form,
                                         const Box& keys, std::int64_t skipped_keys)
    : call_(call),
      sizes_(sizes),
      drawn_(drawn_sizes(call.operation, sizes)),
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

}  // namespace shardplan
