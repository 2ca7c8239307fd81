#include "operators/families/communication.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "base/integer.h"
#include "operators/building/attributes.h"
#include "operators/building/gradient_support.h"
#include "operators/building/rule_builder.h"

// Inference, derivatives and checks only: what an exchange needs to know about other devices is in simulator/local, and
// nothing here can be sharded. Shapes that differ by rank are attributes, since an operator sees only its own rank's
// tensors.

namespace shardplan {
namespace {

constexpr std::int64_t kMostRanks = 1 << 24;
constexpr std::int64_t kLongestSide = 1 << 30;  // of what is exchanged with a neighbour

/// Nothing can be sharded: a device's tensors here are already its own.
ShardingRule communication_rule(const Operation& operation) {
  RuleBuilder builder;
  for (const TensorType& operand : operation.operands) builder.operand(TensorWalk(operand.shape.size()));
  for (const TensorType& result : operation.results) builder.result(TensorWalk(result.shape.size()));
  return builder.build();
}

AttributeSpec group_attribute() {
  return list("group", empty_list(), "ranks that take part; a list of groups: the one with this rank; empty: all");
}
AttributeSpec rank_size_attribute() { return integer("rank_size", 1, "how many ranks the group has: follows from it"); }
AttributeSpec reduction_attribute() { return text("reduce", "sum", "sum, prod, max or min: MindSpore's op"); }

void check_rank_list(const Operation& operation, const std::string& attribute, std::int64_t least) {
  for (const std::int64_t rank : operation.list(attribute)) {
    if (rank < least || rank >= kMostRanks) {
      operand_error(operation, fmt::format("{}: {} is not a rank", attribute, rank));
    }
  }
}

/// The number of participants.
std::int64_t checked_group(const Operation& operation) {
  const std::int64_t size = operation.integer("rank_size");
  if (size < 1 || size > kMostRanks) operand_error(operation, fmt::format("rank_size is {}", size));
  check_rank_list(operation, "group", 0);
  const std::vector<std::int64_t>& group = operation.list("group");
  const std::set<std::int64_t> distinct(group.begin(), group.end());
  if (distinct.size() != group.size()) {
    operand_error(operation, fmt::format("group {} names a rank twice", to_string(group)));
  }
  if (!group.empty() && static_cast<std::int64_t>(group.size()) != size) {
    operand_error(operation,
                  fmt::format("group {} has {} ranks, rank_size is {}", to_string(group), group.size(), size));
  }
  return size;
}

void check_reduction(const Operation& operation) {
  constexpr std::array<std::string_view, 4> kKnown = {"sum", "prod", "max", "min"};
  const std::string& op = operation.text("reduce");
  if (std::find(kKnown.begin(), kKnown.end(), op) == kKnown.end()) {
    operand_error(operation, fmt::format("reduce is '{}'; expected sum, prod, max or min", op));
  }
}

void check_is_number(const Operation& operation) {
  for (const TensorType& operand : operation.operands) {
    if (operand.dtype == DataType::kBool) operand_error(operation, "a bool cannot be sent; Cast it to i32");
  }
}

std::vector<TensorType> infer_all_reduce(const Operation& operation) {
  checked_group(operation);
  check_reduction(operation);
  check_is_number(operation);
  return operation.operands;
}

const Shape& at_least_one_dimension(const Operation& operation) {
  const Shape& shape = operation.operands[0].shape;
  if (shape.empty()) operand_error(operation, "a scalar has no dimension 0");
  return shape;
}

std::vector<TensorType> infer_all_gather(const Operation& operation) {
  const std::int64_t size = checked_group(operation);
  check_is_number(operation);
  Shape shape = at_least_one_dimension(operation);
  shape[0] = checked_size(operation, checked_multiply(shape[0], size));
  return {{shape, operation.operands[0].dtype}};
}

std::vector<TensorType> infer_reduce_scatter(const Operation& operation) {
  const std::int64_t size = checked_group(operation);
  check_reduction(operation);
  check_is_number(operation);
  Shape shape = at_least_one_dimension(operation);
  if (shape[0] % size != 0) {
    operand_error(operation, fmt::format("dimension 0 of {} is not divisible by the {} ranks of the group",
                                         to_string(operation.operands[0].shape), size));
  }
  shape[0] /= size;
  return {{shape, operation.operands[0].dtype}};
}

std::vector<TensorType> infer_rooted(const Operation& operation) {
  checked_group(operation);
  check_is_number(operation);
  const std::vector<std::int64_t>& group = operation.list("group");
  const std::int64_t root = operation.integer("root_rank");
  const bool is_member = group.empty() ? root >= 0 && root < operation.integer("rank_size")
                                       : std::find(group.begin(), group.end(), root) != group.end();
  if (!is_member) operand_error(operation, fmt::format("root_rank {} is not in the group", root));
  return operation.operands;
}

std::vector<TensorType> infer_all_to_all(const Operation& operation) {
  const std::int64_t size = checked_group(operation);
  check_is_number(operation);
  Shape shape = operation.operands[0].shape;
  const std::int64_t count = operation.integer("split_count");
  if (count != size) {
    operand_error(operation, fmt::format("split_count is {}; expected the {} ranks of the group", count, size));
  }
  const std::size_t split = normal_axis(operation, operation.integer("split_dim"), shape.size());
  const std::size_t concat = normal_axis(operation, operation.integer("concat_dim"), shape.size());
  if (shape[split] % count != 0) {
    operand_error(operation,
                  fmt::format("split_dim {} of {} is not divisible by split_count {}", split, to_string(shape), count));
  }
  shape[split] /= count;
  shape[concat] = checked_size(operation, checked_multiply(shape[concat], count));
  return {{shape, operation.operands[0].dtype}};
}

// ---- exchanges with neighbours

/// Inverts `flat_shapes`.
std::vector<Shape> shapes_of(const Operation& operation, const std::string& attribute) {
  const std::vector<std::int64_t>& flat = operation.list(attribute);
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < flat.size();) {
    const std::int64_t rank = flat[i++];
    if (rank < 0 || rank > static_cast<std::int64_t>(flat.size() - i)) {
      operand_error(operation, fmt::format("{} is not a list of shapes", attribute));
    }
    shapes.emplace_back(flat.begin() + static_cast<std::ptrdiff_t>(i),
                        flat.begin() + static_cast<std::ptrdiff_t>(i) + static_cast<std::ptrdiff_t>(rank));
    i += static_cast<std::size_t>(rank);
  }
  return shapes;
}

std::vector<TensorType> infer_neighbour_exchange(const Operation& operation) {
  checked_group(operation);
  check_is_number(operation);
  check_rank_list(operation, "send_rank_ids", -1);
  check_rank_list(operation, "recv_rank_ids", -1);
  const std::vector<std::int64_t>& send = operation.list("send_rank_ids");
  const std::vector<std::int64_t>& receive = operation.list("recv_rank_ids");
  if (send.size() != operation.operands.size()) {
    operand_error(operation, fmt::format("send_rank_ids has {} ranks, there are {} inputs", send.size(),
                                         operation.operands.size()));
  }
  const std::vector<Shape> sent = shapes_of(operation, "send_shapes");
  for (std::size_t i = 0; i < operation.operands.size() && !sent.empty(); ++i) {
    if (sent.size() != operation.operands.size() || sent[i] != operation.operands[i].shape) {
      operand_error(operation,
                    fmt::format("send_shapes do not fit input {}, {}", i, to_string(operation.operands[i].shape)));
    }
  }
  const std::vector<Shape> received = shapes_of(operation, "recv_shapes");
  if (received.size() != receive.size() || receive.empty()) {
    operand_error(operation,
                  fmt::format("recv_rank_ids has {} ranks, recv_shapes {} shapes", receive.size(), received.size()));
  }
  const std::string& name = operation.text("recv_type");
  const std::optional<DataType> dtype = name.empty() ? operation.operands[0].dtype : parse_data_type(name);
  if (!dtype) operand_error(operation, fmt::format("recv_type is '{}'; expected f32, f16, ...", name));
  std::vector<TensorType> results;
  for (const Shape& shape : received) results.push_back({shape, *dtype});
  return results;
}

// Positions in the lists of NeighborExchangeV2: neighbours, and the lengths of what is exchanged with them.
constexpr std::size_t kTop = 0, kTopRight = 1, kRight = 2, kBottomRight = 3, kBottom = 4, kBottomLeft = 5, kLeft = 6,
                      kTopLeft = 7;
constexpr std::size_t kTopLength = 0, kBottomLength = 1, kLeftLength = 2, kRightLength = 3;

bool is_above(std::size_t k) { return k == kTopLeft || k == kTop || k == kTopRight; }
bool is_below(std::size_t k) { return k == kBottomLeft || k == kBottom || k == kBottomRight; }
bool is_left(std::size_t k) { return k == kTopLeft || k == kLeft || k == kBottomLeft; }
bool is_right(std::size_t k) { return k == kTopRight || k == kRight || k == kBottomRight; }

/// What is received from a side: nothing without a neighbour there.
std::int64_t received_length(const Operation& operation, std::size_t neighbour, std::size_t length) {
  return operation.list("recv_rank_ids")[neighbour] < 0 ? 0 : operation.list("recv_lens")[length];
}

/// Rows and columns that the exchange adds.
std::array<std::int64_t, 2> added_sides(const Operation& operation) {
  return {received_length(operation, kTop, kTopLength) + received_length(operation, kBottom, kBottomLength),
          received_length(operation, kLeft, kLeftLength) + received_length(operation, kRight, kRightLength)};
}

/// Checks what concerns no other device; `shape` is that of x.
void check_neighbours(const Operation& operation, const Shape& shape) {
  checked_group(operation);
  check_is_number(operation);
  if (operation.text("data_format") != "NCHW") operand_error(operation, "data_format: expected NCHW");
  for (const std::string prefix : {"send", "recv"}) {
    const std::vector<std::int64_t>& ranks = operation.list(prefix + "_rank_ids");
    const std::vector<std::int64_t>& lengths = operation.list(prefix + "_lens");
    if (ranks.size() != kNumNeighbours || lengths.size() != 4) {
      operand_error(operation, fmt::format("{}_rank_ids has {} entries and {}_lens {}; expected 8 (clockwise from the "
                                           "top, -1 for none) and 4 (top, bottom, left, right)",
                                           prefix, ranks.size(), prefix, lengths.size()));
    }
    check_rank_list(operation, prefix + "_rank_ids", -1);
    for (const std::int64_t length : lengths) {
      if (length < 0 || length > kLongestSide) {
        operand_error(operation,
                      fmt::format("{}_lens {} has a length that is negative or too large", prefix, to_string(lengths)));
      }
    }
    for (const std::size_t corner : {kTopRight, kBottomRight, kBottomLeft, kTopLeft}) {
      const std::size_t before = corner - 1;
      const std::size_t behind = (corner + 1) % kNumNeighbours;
      if (prefix == "recv" && ranks[corner] >= 0 && (ranks[before] < 0 || ranks[behind] < 0)) {
        operand_error(operation, fmt::format("recv_rank_ids {} receives a corner without the two sides beside it",
                                             to_string(ranks)));
      }
    }
  }
  const std::vector<std::int64_t>& sent = operation.list("send_lens");
  if (std::max(sent[kTopLength], sent[kBottomLength]) > shape[2] ||
      std::max(sent[kLeftLength], sent[kRightLength]) > shape[3]) {
    operand_error(operation,
                  fmt::format("send_lens {} are more than the input {} has", to_string(sent), to_string(shape)));
  }
}

std::vector<TensorType> infer_neighbour_exchange_v2(const Operation& operation) {
  Shape shape = operation.operands[0].shape;
  if (shape.size() != 4)
    operand_error(operation, fmt::format("the input is {}; expected [N, C, H, W]", to_string(shape)));
  check_neighbours(operation, shape);
  const auto [rows, columns] = added_sides(operation);
  shape[2] = checked_size(operation, checked_add(shape[2], rows));
  shape[3] = checked_size(operation, checked_add(shape[3], columns));
  return {{shape, operation.operands[0].dtype}};
}

std::vector<TensorType> infer_neighbour_exchange_v2_grad(const Operation& operation) {
  Shape shape = operation.operands[0].shape;
  if (shape.size() != 4)
    operand_error(operation, fmt::format("the input is {}; expected [N, C, H, W]", to_string(shape)));
  check_neighbours(operation, shape);
  const auto [rows, columns] = added_sides(operation);
  shape[2] -= rows;
  shape[3] -= columns;
  return {{shape, operation.operands[0].dtype}};
}

// ---- gradients

/// The attributes that say who takes part.
Attributes group_of(const Operation& operation) {
  return {{"group", operation.list("group")}, {"rank_size", operation.integer("rank_size")}};
}

/// 1 where two tensors are equal, 0 elsewhere.
TensorId where_equal(GradientBuilder& builder, TensorId a, TensorId b, DataType dtype) {
  return add_one(builder, "Cast", {add_one(builder, "Equal", {a, b})}, {{"dtype", std::string(to_string(dtype))}});
}

/// The product of all other ranks' x. Zeros are counted instead of multiplied, since the product of all, divided by an x
/// of 0, says nothing about the others.
TensorId product_of_others(GradientBuilder& builder, TensorId x, const Attributes& sum) {
  const DataType dtype = builder.type(x).dtype;
  Attributes product = sum;
  product["reduce"] = std::string("prod");
  const TensorId is_zero = where_equal(builder, x, builder.constant(0), dtype);
  const TensorId factor = add_one(builder, "Add", {x, is_zero});
  const TensorId factors = add_one(builder, "AllReduce", {factor}, product);
  const TensorId zeros = add_one(builder, "AllReduce", {is_zero}, sum);
  const TensorId has_none = where_equal(builder, zeros, is_zero, dtype);  // no zero but this rank's own
  return add_one(builder, "Mul", {add_one(builder, "RealDiv", {factors, factor}), has_none});
}

Gradients all_reduce_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Attributes sum = group_of(request.operation);
  sum["reduce"] = std::string("sum");
  const std::string& op = request.operation.text("reduce");
  const TensorId x = request.operands[0];
  const TensorId y = request.results[0];
  return gradient_of_first(request, [&](TensorId dy) {
    if (op == "sum") return add_one(builder, "AllReduce", {dy}, sum);
    if (op == "prod") {
      return add_one(builder, "Mul", {add_one(builder, "AllReduce", {dy}, sum), product_of_others(builder, x, sum)});
    }
    const TensorId is_it = where_equal(builder, x, y, builder.type(dy).dtype);
    return add_one(builder, "Mul", {add_one(builder, "AllReduce", {dy}, sum), is_it});
  });
}

Gradients all_gather_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Attributes sum = group_of(request.operation);
  sum["reduce"] = std::string("sum");
  return gradient_of_first(request, [&](TensorId dy) { return add_one(builder, "ReduceScatter", {dy}, sum); });
}

Gradients reduce_scatter_gradient(GradientBuilder& builder, const GradientRequest& request) {
  if (request.operation.text("reduce") != "sum") operand_error(request.operation, "only reduce: sum has a gradient");
  return gradient_of_first(
      request, [&](TensorId dy) { return add_one(builder, "AllGather", {dy}, group_of(request.operation)); });
}

Gradients broadcast_gradient(GradientBuilder& builder, const GradientRequest& request) {
  return gradient_of_first(
      request, [&](TensorId dy) { return add_one(builder, "BroadcastGrad", {dy}, request.operation.attributes); });
}

Gradients all_to_all_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Attributes reverse = request.operation.attributes;
  std::swap(reverse.at("split_dim"), reverse.at("concat_dim"));
  return gradient_of_first(request, [&](TensorId dy) { return add_one(builder, "AlltoAll", {dy}, reverse); });
}

/// What was received is sent back to its origin.
Gradients neighbour_exchange_gradient(GradientBuilder& builder, const GradientRequest& request) {
  const Operation& operation = request.operation;
  const bool any = std::any_of(request.result_gradients.begin(), request.result_gradients.end(),
                               [](const auto& gradient) { return gradient.has_value(); });
  if (!any) return no_gradients(request);
  Attributes back = group_of(operation);
  std::vector<Shape> shapes;
  for (const TensorType& operand : operation.operands) shapes.push_back(operand.shape);
  back["send_rank_ids"] = operation.list("recv_rank_ids");
  back["recv_rank_ids"] = operation.list("send_rank_ids");
  back["recv_shapes"] = flat_shapes(shapes);
  back["recv_type"] = std::string(to_string(operation.operands[0].dtype));
  std::vector<TensorId> dys;
  for (std::size_t i = 0; i < operation.results.size(); ++i) {
    dys.push_back(gradient_or_zeros(builder, request, i));
  }
  return needed_gradients(request, builder.add("NeighborExchange", back, dys));
}

Gradients neighbour_exchange_v2_gradient(GradientBuilder& builder, const GradientRequest& request) {
  return gradient_of_first(request, [&](TensorId dy) {
    return add_one(builder, "NeighborExchangeV2Grad", {dy}, request.operation.attributes);
  });
}

std::vector<AttributeSpec> neighbours_v2() {
  return {list("send_rank_ids", std::nullopt, "8 ranks that are sent to, clockwise from the top; -1: none"),
          list("send_lens", std::nullopt, "rows sent to the top and the bottom, columns to the left and the right"),
          list("recv_rank_ids", std::nullopt, "8 ranks that are received from"),
          list("recv_lens", std::nullopt, "rows and columns received, as send_lens"),
          text("data_format", "NCHW", "of x: NCHW"),
          group_attribute(),
          rank_size_attribute()};
}

/// What all lines of the table have in common.
OperatorType communication(std::string name, Signature signature, std::vector<AttributeSpec> attributes,
                           std::vector<TensorType> (*infer)(const Operation&), Gradient gradient,
                           bool is_internal = false) {
  OperatorType type;
  type.name = std::move(name);
  type.signature = std::move(signature);
  type.attributes = std::move(attributes);
  type.infer = infer;
  type.rule_text = "per device: what each holds is its own, nothing is cut";
  type.rule = communication_rule;
  type.gradient = gradient;
  type.flops_per_point = 0;
  type.is_internal = is_internal;
  return type;
}

/// The shape of NeighborExchangeV2's tensor without the rows and columns that are received.
Shape unpadded_shape(const Operation& operation) {
  const bool is_gradient = operation.type->name == "NeighborExchangeV2Grad";
  return is_gradient ? operation.results[0].shape : operation.operands[0].shape;
}

}  // namespace

std::vector<OperatorType> communication_operators() {
  const AttributeSpec group = group_attribute();
  const AttributeSpec size = rank_size_attribute();
  const AttributeSpec reduction = reduction_attribute();
  const std::vector<AttributeSpec> rooted = {integer("root_rank", std::nullopt, "whose x all get"), group, size};
  return {
      communication("AllReduce", "x -> y", {reduction, group, size}, infer_all_reduce, all_reduce_gradient),
      communication("FusedAllReduce", "x... -> y...",
                    {reduction, group, size, integer("fusion", 0, "the id by which they were joined")},
                    infer_all_reduce, nullptr, true),
      communication("AllGather", "x -> y", {group, size}, infer_all_gather, all_gather_gradient),
      communication("ReduceScatter", "x -> y", {reduction, group, size}, infer_reduce_scatter, reduce_scatter_gradient),
      communication("Broadcast", "x -> y", rooted, infer_rooted, broadcast_gradient),
      communication("BroadcastGrad", "dy -> dx", rooted, infer_rooted, nullptr, true),
      communication(
          "AlltoAll", "x -> y",
          {integer("split_count", std::nullopt, "pieces that x is cut in: the ranks of the group"),
           integer("split_dim", std::nullopt, "dimension that is cut"),
           integer("concat_dim", std::nullopt, "dimension along which what arrives is put together"), group, size},
          infer_all_to_all, all_to_all_gradient),
      communication("NeighborExchange", "x... -> y...",
                    {list("send_rank_ids", std::nullopt, "the rank that each input is sent to; -1: none"),
                     list("recv_rank_ids", std::nullopt, "the rank that each result comes from; -1: none, it is zero"),
                     list("recv_shapes", std::nullopt, "a list of shapes, one per result"),
                     list("send_shapes", empty_list(), "a list of shapes, one per input; as they are if not given"),
                     text("recv_type", "", "of the results; as the first input if not given"), group, size},
                    infer_neighbour_exchange, neighbour_exchange_gradient),
      communication("NeighborExchangeV2", "x -> y", neighbours_v2(), infer_neighbour_exchange_v2,
                    neighbour_exchange_v2_gradient),
      communication("NeighborExchangeV2Grad", "dy -> dx", neighbours_v2(), infer_neighbour_exchange_v2_grad, nullptr,
                    true),
  };
}

bool is_communication(const OperatorType& type) { return type.rule == communication_rule; }

std::vector<std::int64_t> group_ranks(const Operation& operation) {
  std::vector<std::int64_t> ranks = operation.list("group");
  if (!ranks.empty()) return ranks;
  ranks.resize(static_cast<std::size_t>(operation.integer("rank_size")));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::vector<std::int64_t> flat_shapes(const std::vector<Shape>& shapes) {
  std::vector<std::int64_t> flat;
  for (const Shape& shape : shapes) {
    flat.push_back(static_cast<std::int64_t>(shape.size()));
    flat.insert(flat.end(), shape.begin(), shape.end());
  }
  return flat;
}

Patch sent_patch(const Operation& operation, std::size_t k) {
  const Shape shape = unpadded_shape(operation);
  const std::vector<std::int64_t>& lengths = operation.list("send_lens");
  Patch patch{0, 0, shape[2], shape[3]};
  if (is_above(k)) patch.rows = lengths[kTopLength];
  if (is_below(k)) patch.rows = lengths[kBottomLength];
  if (is_left(k)) patch.columns = lengths[kLeftLength];
  if (is_right(k)) patch.columns = lengths[kRightLength];
  if (is_below(k)) patch.row = shape[2] - patch.rows;
  if (is_right(k)) patch.column = shape[3] - patch.columns;
  return patch;
}

Patch kept_patch(const Operation& operation) {
  const Shape shape = unpadded_shape(operation);
  return {received_length(operation, kTop, kTopLength), received_length(operation, kLeft, kLeftLength), shape[2],
          shape[3]};
}

Patch received_patch(const Operation& operation, std::size_t k) {
  Patch patch = kept_patch(operation);
  const auto [rows, columns] = added_sides(operation);
  if (is_below(k)) patch.row += patch.rows;
  if (is_right(k)) patch.column += patch.columns;
  if (is_above(k)) patch.row = 0;
  if (is_left(k)) patch.column = 0;
  const Patch kept = kept_patch(operation);
  if (is_above(k)) patch.rows = kept.row;
  if (is_below(k)) patch.rows = rows - kept.row;
  if (is_left(k)) patch.columns = kept.column;
  if (is_right(k)) patch.columns = columns - kept.column;
  return patch;
}

}  // namespace shardplan
