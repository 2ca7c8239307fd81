#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "operators/building/attention_head.h"
#include "operators/building/attributes.h"
#include "operators/building/rule_builder.h"
#include "operators/kernel.h"
#include "operators/operator_type.h"

namespace shardplan {

// What the forms of attention share (families/attention.h): the attributes, the sizes and factors of q, k and v, the
// work, and the heads that one device computes. Errors are InputErrors that name the operator.

std::vector<AttributeSpec> attention_attributes();

/// Whether heads come after positions.
bool is_bsnd(const Operation& operation);

/// Batch, heads, positions and the last dimension in the order of the layout.
template <class List, class Item>
List in_attention_layout(bool bsnd, Item batch, Item heads, Item positions, Item last) {
  if (bsnd) return {std::move(batch), std::move(positions), std::move(heads), std::move(last)};
  return {std::move(batch), std::move(heads), std::move(positions), std::move(last)};
}

struct AttentionSizes {
  std::int64_t batch = 1;
  std::int64_t groups = 1;  // heads of k and v
  std::int64_t ratio = 1;   // heads of q for each
  std::int64_t queries = 1;
  std::int64_t keys = 1;
  std::int64_t depth = 1;
  std::int64_t width = 1;  // v's last dimension

  std::int64_t heads() const { return groups * ratio; }
};

/// The sizes of q, k and v, which are the operands from `first` on.
AttentionSizes attention_sizes(const Operation& operation, std::size_t first);

/// Where the operands of a form of the operator stand. Those that may be left out are known by their rank: a bias has four
/// dimensions, positions have one. Positions are given both or not at all.
struct AttentionForm {
  std::size_t q = 0;
  std::optional<std::size_t> bias;
  std::optional<std::size_t> positions;
};
/// Of an operator with q at `q` whose optional operands stand from `optional` on.
AttentionForm attention_form(const Operation& operation, std::size_t q = 0, std::size_t optional = 3);
/// The bias is floating and of the shape [batch or 1, heads of q or 1, queries or 1, keys or 1].
void check_attention_bias(const Operation& operation, const AttentionForm& form, const AttentionSizes& sizes);
/// Positions are integers, one for each query and each key.
void check_attention_positions(const Operation& operation, const AttentionForm& form, const AttentionSizes& sizes);
void check_attention_attributes(const Operation& operation);
/// Maxima, sums and lse are of no narrower type than f32.
DataType statistics_type(DataType type);
/// The floating type of q, and of k and v, but these may be of f8e4m3 (a cache that kernels widen as they read it).
DataType attention_type(const Operation& operation, std::size_t first);

/// Walks of the dimensions by what they count. One head per group needs no factor of its own.
struct AttentionWalks {
  DimensionWalk b, g, r, s, t, d, e;
  DimensionWalk heads;
  bool bsnd = false;

  AttentionWalks(RuleBuilder& builder, const Operation& operation, const AttentionSizes& sizes)
      : b(builder.add("b", sizes.batch)),
        g(builder.add("g", sizes.groups)),
        r(sizes.ratio == 1 ? whole() : builder.add("r", sizes.ratio)),
        s(builder.add("s", sizes.queries)),
        t(builder.add("t", sizes.keys)),
        d(builder.add("d", sizes.depth, FactorKind::kNeedReplication)),
        e(builder.add("e", sizes.width, FactorKind::kNeedReplication)),
        heads(product(g, r)),
        bsnd(is_bsnd(operation)) {}

  TensorWalk q() const { return in_attention_layout<TensorWalk>(bsnd, b, heads, s, d); }
  TensorWalk k() const { return in_attention_layout<TensorWalk>(bsnd, b, g, t, d); }
  TensorWalk v() const { return in_attention_layout<TensorWalk>(bsnd, b, g, t, e); }
  TensorWalk o() const { return in_attention_layout<TensorWalk>(bsnd, b, heads, s, e); }
  TensorWalk lse() const { return {b, heads, s}; }
  /// Of a bias or its gradient of this shape: nothing where it is broadcast.
  TensorWalk bias(const Shape& shape) const {
    return {shape[0] == 1 ? whole() : b, shape[1] == 1 ? whole() : heads, shape[2] == 1 ? whole() : s,
            shape[3] == 1 ? whole() : t};
  }
};

/// The work of the visible pairs of a query and a key: `of_depth` products over the depth, `of_width` over the width. Of a
/// causal operator whose queries are cut, that of the device with the last ones; if positions are given, the average,
/// since sequences are reordered to give all devices the same work, of queries at the last positions of the keys.
double attention_flops(const Operation& operation, std::span<const std::int64_t> extents, const AttentionForm& form,
                       double of_depth, double of_width);

/// `OperatorType::read_share`, where q is operand `first`: of keys and values, those that the window of a query of the
/// part reaches.
double attention_read_share(const Operation& operation, std::span<const std::int64_t> extents, std::size_t first,
                            std::size_t operand);

AttentionOptions attention_options(const KernelCall& call, std::int64_t depth);

/// The rows of one head of a local tensor in the layout.
template <class View>
auto attention_rows(const View& view, bool bsnd, std::int64_t batch, std::int64_t head) {
  const Shape& shape = view.shape;
  const std::int64_t heads = shape[bsnd ? 2 : 1];
  const std::int64_t positions = shape[bsnd ? 1 : 2];
  const std::int64_t first = bsnd ? batch * positions * heads + head : (batch * heads + head) * positions;
  return RowsOf{view.data + first * shape[3], bsnd ? heads * shape[3] : shape[3]};
}

/// The rows of the bias, or of its gradient, that one head of one batch element has.
template <class View>
auto attention_bias(const View& view, std::int64_t batch, std::int64_t head) {
  const Shape& shape = view.shape;
  const std::int64_t first =
      ((shape[0] == 1 ? 0 : batch) * shape[1] + (shape[1] == 1 ? 0 : head)) * shape[2] * shape[3];
  return BiasOf{view.data + first, shape[2] == 1 ? 0 : shape[3], shape[3] == 1 ? std::int64_t{0} : std::int64_t{1}};
}

/// The sizes by whose positions dropout draws: those without padding.
AttentionSizes drawn_sizes(const Operation& operation, const AttentionSizes& sizes);

/// The heads that one call computes, with the keys of the box `keys`, which come after `skipped_keys` others in the
/// operands. All given must outlive the object.
class LocalAttentionHeads {
 public:
  LocalAttentionHeads(const KernelCall& call, const AttentionSizes& sizes, const AttentionForm& form, const Box& keys,
                      std::int64_t skipped_keys);

  /// Calls body(head, batch, head's number in q, head's number in k), all local.
  template <class Body>
  void for_each(Body body) const {
    const Box batch = call_.box("b");
    for (std::int64_t b = 0; b < batch.size(); ++b) {
      for (std::int64_t g = 0; g < g_.size(); ++g) {
        for (std::int64_t r = 0; r < r_.size(); ++r) {
          const std::int64_t local = g * r_.size() + r;
          const std::int64_t global = (g_.begin + g) * drawn_.ratio + r_.begin + r;
          AttentionHead head;
          head.q = attention_rows(call_.operands[form_.q], bsnd_, b, local);
          head.k = attention_rows(call_.operands[form_.q + 1], bsnd_, b, g);
          head.v = attention_rows(call_.operands[form_.q + 2], bsnd_, b, g);
          head.k.data = head.k.row(skipped_keys_);
          head.v.data = head.v.row(skipped_keys_);
          if (form_.bias) {
            head.bias = attention_bias(call_.operands[*form_.bias], b, local);
            head.bias.data += skipped_keys_ * head.bias.key_stride;
          }
          head.queries = s_.size();
          head.keys = keys_.size();
          head.depth = sizes_.depth;
          head.width = sizes_.width;
          head.q_positions = q_positions_;
          head.k_positions = k_positions_;
          head.first_key = keys_.begin;
          const std::int64_t row = ((batch.begin + b) * drawn_.heads() + global) * drawn_.queries + s_.begin;
          head.first_draw = static_cast<std::uint64_t>(row * drawn_.keys + keys_.begin);
          head.draws_per_query = static_cast<std::uint64_t>(drawn_.keys);
          body(head, b, local, g);
        }
      }
    }
  }

  std::int64_t num_heads() const { return g_.size() * r_.size(); }

 private:
  const KernelCall& call_;
  const AttentionSizes& sizes_;
  const AttentionSizes drawn_;
  const AttentionForm& form_;
  const bool bsnd_;
  const Box g_, r_, s_, keys_;
  const std::int64_t skipped_keys_;
  const std::vector<double> q_positions_, k_positions_;
};

}  // namespace shardplan
