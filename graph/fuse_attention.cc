// Of the ways to read written attention as [batch, heads, queries, keys], one is taken whose bias varies over all of
// the batch or none, and over all heads or none, since FlashAttention adds such a bias. Windows of an image, [image,
// window, heads, queries, keys], become part of the batch if all windows share a bias, and of the heads otherwise.
#include "graph/fuse_attention.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/written_attention.h"
#include "operators/catalogue.h"

namespace shardplan {
namespace {

/// Which dims of the scores are the batch, the heads of k, and the heads of q per head of k.
struct Roles {
  std::string batch, groups, ratio;

  std::string heads() const { return groups + ratio; }
};

class Fusion {
 public:
  explicit Fusion(const OperatorGraph& graph) : graph_(graph), builder_(graph) {}

  OperatorGraph run() {
    IdVector<OperatorId, char> is_removed(graph_.operators().size(), 0);
    std::vector<OperatorId> masked_biases;
    for (const OperatorId id : graph_.operators().ids()) {
      if (graph_.operation(id).type->name != "Softmax") continue;
      const std::optional<WrittenAttention> found = written_attention(graph_, id);
      const std::optional<Roles> roles = found ? roles_of(*found) : std::nullopt;
      if (!roles) continue;
      for (const OperatorId inner : found->inner) is_removed[inner] = 1;
      masked_biases.insert(masked_biases.end(), found->masked_biases.begin(), found->masked_biases.end());
      Replacement(builder_, graph_, *found, *roles, added_).run();
    }
    // Also removes the additions of masks to biases that only attention reads.
    for (const OperatorId id : masked_biases) {
      const ShortVector<Reader>& readers = graph_.tensor(graph_.operators()[id].results[0]).readers;
      is_removed[id] =
          std::all_of(readers.begin(), readers.end(), [&](const Reader& r) { return is_removed[r.op] != 0; });
    }
    while (is_removed.size() < builder_.num_operators()) is_removed.push_back(0);
    builder_.remove(is_removed);
    std::vector<OperatorId> behind_removal;  // by operator: its index after the removal
    std::size_t num_left = 0;
    for (const char removed : is_removed) {
      behind_removal.push_back(OperatorId(num_left));
      num_left += removed == 0 ? 1 : 0;
    }
    for (const auto& [op, last] : added_) {
      builder_.place_before(behind_removal[op.value()], behind_removal[last.value()]);
    }
    return builder_.build();
  }

 private:
  using Added = std::vector<std::pair<OperatorId, OperatorId>>;  // each with the operator before which it is placed

  /// The dims over which any of the biases varies.
  std::string dims_of_biases(const WrittenAttention& found) const {
    std::string dims;
    const std::size_t rank = found.scores.size();
    for (std::size_t d = 0; d < rank; ++d) {
      const bool varies = std::any_of(found.biases.begin(), found.biases.end(), [&](TensorId bias) {
        const Shape& shape = graph_.tensor(bias).type.shape;
        return d + shape.size() >= rank && shape[d + shape.size() - rank] != 1;
      });
      if (varies) dims += static_cast<char>('a' + d);
    }
    return dims;
  }

  std::optional<Roles> roles_of(const WrittenAttention& found) const {
    const std::string biased = dims_of_biases(found);
    // Whether the biases vary over all of these dims or none; dims of size 1 fit both.
    const auto is_all_or_none = [&](const std::string& dims) {
      std::size_t with = 0, without = 0;
      for (const char dim : dims) {
        if (found.scores[static_cast<std::size_t>(dim - 'a')] == 1) continue;
        ++(biased.find(dim) == std::string::npos ? without : with);
      }
      return with == 0 || without == 0;
    };
    const std::size_t shared = found.shared.size();
    std::vector<std::size_t> batches = {shared <= 1 ? shared : shared - 1};  // how many shared dims are batch dims
    for (std::size_t batch = shared + 1; batch-- > 0;) batches.push_back(batch);
    for (const std::size_t batch : batches) {
      const Roles roles{found.shared.substr(0, batch), found.shared.substr(batch), found.of_queries};
      if (is_all_or_none(roles.batch) && is_all_or_none(roles.heads())) return roles;
    }
    return std::nullopt;
  }

  class Replacement {
   public:
    Replacement(OperatorGraphBuilder& builder, const OperatorGraph& graph, const WrittenAttention& found,
                const Roles& roles, Added& added)
        : builder_(builder), graph_(graph), found_(found), roles_(roles), added_(added) {}

    void run() {
      bsnd_ = num_transposes(true) < num_transposes(false);
      std::vector<AttentionTensor> q, k;
      for (const WrittenAttention::Product& product : found_.products) {
        q.push_back(product.q);
        k.push_back(product.k);
      }
      std::vector<TensorId> operands = {side_by_side(".q", q, roles_.heads(), found_.queries()),
                                        side_by_side(".k", k, roles_.groups, found_.keys()),
                                        side_by_side(".v", {found_.v}, roles_.groups, found_.keys())};
      if (!found_.biases.empty()) operands.push_back(bias());
      Operation fused = operation("FlashAttention",
                                  {{"input_layout", std::string(bsnd_ ? "BSND" : "BNSD")},
                                   {"scale", found_.scale},
                                   {"causal", found_.is_causal},
                                   {"keep_prob", found_.keep_prob}},
                                  operands);
      const std::string made = in_order(roles_.heads(), found_.queries());
      const Shape parts = shape_of(made, fused.results[0].shape.back());
      const bool is_shaped = parts == fused.results[0].shape;
      const bool is_turned = made == found_.context;
      if (is_shaped && is_turned) return finish(std::move(fused), operands);
      TensorId context = add(".fused", std::move(fused), operands);
      if (is_turned) return finish(operation("Reshape", {{"shape", parts}}, {context}), {context});
      if (!is_shaped) context = add(".parts", operation("Reshape", {{"shape", parts}}, {context}), {context});
      finish(operation("Transpose", {{"perm", permutation(made, found_.context)}}, {context}), {context});
    }

   private:
    std::int64_t size(char dim) const { return found_.scores[static_cast<std::size_t>(dim - 'a')]; }
    std::int64_t size(const std::string& dims) const {
      std::int64_t product = 1;
      for (const char dim : dims) product *= size(dim);
      return product;
    }
    Shape shape_of(const std::string& dims, std::int64_t channels) const {
      Shape shape;
      for (const char dim : dims) shape.push_back(dim == '*' ? channels : size(dim));
      return shape;
    }
    Shape shape_of(TensorId id) const { return builder_.tensor(id).type.shape; }

    /// The dims of an operand as FlashAttention reads it.
    std::string in_order(const std::string& heads, char positions) const { return in_order(heads, positions, bsnd_); }
    std::string in_order(const std::string& heads, char positions, bool bsnd) const {
      return roles_.batch + (bsnd ? positions + heads : heads + positions) + '*';
    }

    std::size_t num_transposes(bool bsnd) const {
      const std::string of_q = in_order(roles_.heads(), found_.queries(), bsnd);
      const std::string of_k = in_order(roles_.groups, found_.keys(), bsnd);
      std::size_t count = (present(of_k, found_.v.dims) == found_.v.dims ? 0 : 1) + (of_q == found_.context ? 0 : 1);
      for (const auto& [q, k] : found_.products) {
        count += (present(of_q, q.dims) == q.dims ? 0 : 1) + (present(of_k, k.dims) == k.dims ? 0 : 1);
      }
      return count;
    }

    /// `wanted` without the dims that are not in `dims`.
    static std::string present(std::string wanted, const std::string& dims) {
      std::erase_if(wanted, [&](char dim) { return dims.find(dim) == std::string::npos; });
      return wanted;
    }
    static std::vector<std::int64_t> permutation(const std::string& from, const std::string& to) {
      std::vector<std::int64_t> places;
      for (const char dim : to) places.push_back(static_cast<std::int64_t>(from.find(dim)));
      return places;
    }

    Operation operation(const char* type, const Attributes& attributes, const std::vector<TensorId>& operands) const {
      std::vector<TensorType> types;
      for (const TensorId operand : operands) types.push_back(builder_.tensor(operand).type);
      return make_operation(*find_operator_type(type), attributes, std::move(types));
    }

    /// Adds an operator of the attention before its last one and returns its first result.
    TensorId add(const std::string& suffix, Operation operation, const std::vector<TensorId>& operands) {
      GraphOperator op = graph_.operators()[found_.last];
      op.name = std::string(op.name) + suffix;
      op.operands = operands;
      op.results = {};
      std::vector<std::string> results{op.name};
      if (operation.results.size() > 1) results.push_back(results[0] + ".lse");
      const OperatorId id = builder_.add_operator(std::move(op), std::move(operation), std::move(results));
      added_.emplace_back(id, found_.last);
      return builder_.op(id).results[0];
    }
    TensorId shaped(const std::string& suffix, TensorId tensor, const Shape& shape) {
      return shape_of(tensor) == shape ? tensor
                                       : add(suffix, operation("Reshape", {{"shape", shape}}, {tensor}), {tensor});
    }
    TensorId turned(const std::string& suffix, TensorId tensor, const std::string& from, const std::string& to) {
      if (from == to) return tensor;
      return add(suffix, operation("Transpose", {{"perm", permutation(from, to)}}, {tensor}), {tensor});
    }

    /// One four-dimensional operand, whose channels are those of the parts concatenated.
    TensorId side_by_side(const std::string& name, const std::vector<AttentionTensor>& parts, const std::string& heads,
                          char positions) {
      const std::string order = in_order(heads, positions);
      std::vector<TensorId> wide;
      for (const AttentionTensor& part : parts) {
        const std::string suffix = parts.size() == 1 ? name : name + std::to_string(wide.size() + 1);
        const std::string own = present(order, part.dims);
        TensorId tensor = turned(suffix + "_turned", part.tensor, part.dims, own);
        const std::int64_t channels = shape_of(tensor).back();
        if (own != order) {
          Shape with_ones;
          for (const char dim : order) {
            with_ones.push_back(own.find(dim) == std::string::npos ? 1 : dim == '*' ? channels : size(dim));
          }
          tensor = shaped(suffix + "_shaped", tensor, with_ones);
          const Shape all = shape_of(order, channels);
          if (all != with_ones)
            tensor = add(suffix + "_spread", operation("BroadcastTo", {{"shape", all}}, {tensor}), {tensor});
        }
        wide.push_back(tensor);
      }
      TensorId whole = wide[0];
      if (wide.size() > 1) {
        whole = add(name + "_joined",
                    operation("Concat", {{"axis", static_cast<std::int64_t>(order.size()) - 1}}, wide), wide);
      }
      const std::int64_t channels = shape_of(whole).back();
      const std::int64_t batch = size(roles_.batch), all_heads = size(heads), all_positions = size(positions);
      const Shape shape =
          bsnd_ ? Shape{batch, all_positions, all_heads, channels} : Shape{batch, all_heads, all_positions, channels};
      return shaped(name, whole, shape);
    }

    /// [batch or 1, heads or 1, queries or 1, keys or 1].
    TensorId bias() {
      TensorId sum = found_.biases[0];
      for (std::size_t i = 1; i < found_.biases.size(); ++i) {
        const std::vector<TensorId> terms = {sum, found_.biases[i]};
        sum = add(".bias_sum" + (i == 1 ? std::string() : std::to_string(i)), operation("Add", {}, terms), terms);
      }
      Shape shape = shape_of(sum);
      shape.insert(shape.begin(), found_.scores.size() - shape.size(), 1);
      std::string written;
      for (std::size_t d = 0; d < shape.size(); ++d) written += static_cast<char>('a' + d);
      const std::string order = roles_.batch + roles_.heads() + found_.queries() + found_.keys();
      if (order != written) sum = turned(".bias_turned", shaped(".bias_shaped", sum, shape), written, order);
      const auto varying = [&](const std::string& dims) {
        std::int64_t product = 1;
        for (const char dim : dims) product *= shape[static_cast<std::size_t>(dim - 'a')];
        return product;
      };
      return shaped(
          ".bias", sum,
          {varying(roles_.batch), varying(roles_.heads()), varying({found_.queries()}), varying({found_.keys()})});
    }

    /// Turns the attention's last operator into this one; its first result stays, so that its readers need no change.
    void finish(Operation operation, const std::vector<TensorId>& operands) {
      const GraphOperator& last = graph_.operators()[found_.last];
      std::optional<TensorId> lse;
      if (operation.results.size() > 1) {
        GraphTensor tensor;
        tensor.name = std::string(last.name) + ".lse";
        tensor.type = operation.results[1];
        tensor.producer = found_.last;
        tensor.result = 1;
        tensor.place = last.place;
        lse = builder_.add_tensor(std::move(tensor));
      }
      const OperationId id = builder_.intern(std::move(operation));
      GraphOperator& op = builder_.op(found_.last);
      op.operation = id;
      op.operands = operands;
      if (lse) op.results.push_back(*lse);
    }

    OperatorGraphBuilder& builder_;
    const OperatorGraph& graph_;
    const WrittenAttention& found_;
    const Roles& roles_;
    Added& added_;
    bool bsnd_ = false;
  };

  const OperatorGraph& graph_;
  OperatorGraphBuilder builder_;
  Added added_;
};

}  // namespace

OperatorGraph fuse_attention(const OperatorGraph& graph) { return Fusion(graph).run(); }

}  // namespace shardplan
