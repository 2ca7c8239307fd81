// Dispatch and Combine are each other's transpose: y[e, g, c] = sum of gate * x[g, t] over the choices (t, k) of slot
// (e, c), and back. So each is the other's gradient, and the gradient of the gates is the product of both sides summed
// over h.
#include "operators/families/experts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "operators/building/attributes.h"
#include "operators/building/gradient_support.h"
#include "operators/building/rule_builder.h"

namespace shardplan {
namespace {

void check_integers(const Operation& operation, std::size_t operand) {
  const TensorType& type = operation.operands[operand];
  if (type.shape.size() == 3 && !is_floating(type.dtype)) return;
  operand_error(operation,
                fmt::format("{} are {} {}; expected integers [groups, tokens, k]",
                            operation.type->signature.operands[operand], to_string(type.dtype), to_string(type.shape)));
}

// ---- TopKRouter

std::vector<TensorType> infer_router(const Operation& operation) {
  const TensorType& logits = operation.operands[0];
  if (logits.shape.size() != 3) {
    operand_error(operation, fmt::format("logits are {}; expected [groups, tokens, experts]", to_string(logits.shape)));
  }
  const std::int64_t k = operation.integer("k");
  if (k < 1 || k > logits.shape[2]) {
    operand_error(operation, fmt::format("k is {}; expected 1 to the {} experts", k, logits.shape[2]));
  }
  const Shape chosen = {logits.shape[0], logits.shape[1], k};
  return {{chosen, logits.dtype}, {chosen, DataType::kI32}};
}

/// Each token by itself: the last dimensions are unsharded.
ShardingRule by_token_rule(const Operation& operation) {
  const Shape& shape = operation.operands[0].shape;
  RuleBuilder builder;
  const DimensionWalk g = builder.add("g", shape[0]), t = builder.add("t", shape[1]);
  for (std::size_t i = 0; i < operation.operands.size(); ++i) builder.operand({g, t, whole()});
  for (std::size_t i = 0; i < operation.results.size(); ++i) builder.result({g, t, whole()});
  return builder.build();
}

std::vector<double> softmax(const double* logits, std::int64_t size) {
  const double largest = *std::max_element(logits, logits + size);
  std::vector<double> values(static_cast<std::size_t>(size));
  double sum = 0;
  for (std::size_t e = 0; e < values.size(); ++e) sum += values[e] = std::exp(logits[e] - largest);
  for (double& value : values) value /= sum;
  return values;
}

void router_kernel(const KernelCall& call) {
  const std::int64_t experts = call.operands[0].shape[2];
  const std::int64_t k = call.results[0].shape[2];
  const std::int64_t tokens = num_elements(call.results[0].shape) / k;
  std::vector<std::int64_t> order(static_cast<std::size_t>(experts));
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::vector<double> shares = softmax(call.operands[0].data + t * experts, experts);
    const auto share = [&](std::int64_t e) { return shares[static_cast<std::size_t>(e)]; };
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) { return share(a) > share(b); });
    double sum = 0;
    for (std::int64_t i = 0; i < k; ++i) sum += share(order[static_cast<std::size_t>(i)]);
    if (!call.operation.flag("normalise")) sum = 1;
    for (std::int64_t i = 0; i < k; ++i) {
      const std::int64_t expert = order[static_cast<std::size_t>(i)];
      call.results[0].data[t * k + i] = share(expert) / sum;
      call.results[1].data[t * k + i] = static_cast<double>(expert);
    }
  }
}

std::vector<TensorType> infer_router_grad(const Operation& operation) { return {operation.operands[1]}; }

/// (dgates, logits, experts): by the shares p of the chosen experts and of all. With a sum s of the chosen shares, a
/// gate is p / s, so that its own gradient of p is (dgate - sum of dgate * gate) / s; then softmax's, p (dp - sum of dp
/// * p).
void router_grad_kernel(const KernelCall& call) {
  const std::int64_t experts = call.operands[1].shape[2];
  const std::int64_t k = call.operands[0].shape[2];
  const std::int64_t tokens = num_elements(call.operands[0].shape) / k;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::vector<double> shares = softmax(call.operands[1].data + t * experts, experts);
    std::vector<double> slopes(shares.size(), 0.0);
    const auto chosen = [&](std::int64_t i) { return static_cast<std::size_t>(call.operands[2].data[t * k + i]); };
    double sum = 1, weighted = 0;
    if (call.operation.flag("normalise")) {
      sum = 0;
      for (std::int64_t i = 0; i < k; ++i) sum += shares[chosen(i)];
      for (std::int64_t i = 0; i < k; ++i) weighted += call.operands[0].data[t * k + i] * shares[chosen(i)] / sum;
    }
    for (std::int64_t i = 0; i < k; ++i) slopes[chosen(i)] += (call.operands[0].data[t * k + i] - weighted) / sum;
    double mean = 0;
    for (std::size_t e = 0; e < shares.size(); ++e) mean += slopes[e] * shares[e];
    for (std::size_t e = 0; e < shares.size(); ++e) {
      call.results[0].data[t * experts + static_cast<std::int64_t>(e)] = shares[e] * (slopes[e] - mean);
    }
  }
}

Gradients router_gradient(GradientBuilder& builder, const GradientRequest& request) {
  return gradient_of_first(request, [&](TensorId dgates) {
    return add_one(builder, "TopKRouterGrad", {dgates, request.operands[0], request.results[1]},
                   {{"normalise", request.operation.flag("normalise")}});
  });
}

// ---- ExpertSlots

std::vector<TensorType> infer_slots(const Operation& operation) {
  check_integers(operation, 0);
  if (operation.integer("num_experts") < 1 || operation.integer("capacity") < 1) {
    operand_error(operation, "num_experts and capacity must be at least 1");
  }
  return {operation.operands[0]};
}

/// A place in a queue depends on all tokens of the group.
ShardingRule slots_rule(const Operation& operation) {
  RuleBuilder builder;
  const DimensionWalk g = builder.add("g", operation.operands[0].shape[0]);
  builder.operand({g, whole(), whole()});
  builder.result({g, whole(), whole()});
  return builder.build();
}

void slots_kernel(const KernelCall& call) {
  const Shape& shape = call.operands[0].shape;
  const std::int64_t experts = call.operation.integer("num_experts");
  const std::int64_t capacity = call.operation.integer("capacity");
  for (std::int64_t g = 0; g < shape[0]; ++g) {
    std::vector<std::int64_t> filled(static_cast<std::size_t>(experts), 0);
    for (std::int64_t i = 0; i < shape[2]; ++i) {
      for (std::int64_t t = 0; t < shape[1]; ++t) {
        const std::int64_t at = (g * shape[1] + t) * shape[2] + i;
        const double expert = call.operands[0].data[at];
        call.results[0].data[at] = -1;
        if (!(expert >= 0 && expert < static_cast<double>(experts))) continue;
        std::int64_t& count = filled[static_cast<std::size_t>(expert)];
        if (count < capacity) call.results[0].data[at] = static_cast<double>(count++);
      }
    }
  }
}

// ---- Dispatch and Combine

/// The positions of the sides among the operands; a side that is not an operand is the result.
struct Sizes {
  std::int64_t g = 1, t = 1, k = 1, e = 1, c = 1, h = 1;
};

/// The sizes of a Dispatch with operands x, experts, slots[, gates].
Sizes dispatch_sizes(const Operation& operation) {
  check_integers(operation, 1);
  const Shape& chosen = operation.operands[1].shape;
  const Shape& x = operation.operands[0].shape;
  if (x.size() != 3) operand_error(operation, fmt::format("x is {}; expected [groups, tokens, h]", to_string(x)));
  check_shape(operation, 0, {chosen[0], chosen[1], x[2]});
  for (std::size_t i = 2; i < operation.operands.size(); ++i) check_shape(operation, i, chosen);
  check_integers(operation, 2);
  const std::int64_t experts = operation.integer("num_experts"), capacity = operation.integer("capacity");
  if (experts < 1 || capacity < 1) operand_error(operation, "num_experts and capacity must be at least 1");
  return {chosen[0], chosen[1], chosen[2], experts, capacity, x[2]};
}

/// The sizes of a Combine, whose first operand is y, or of a GateGrad (y, x, experts, slots); operand `first` holds the
/// experts.
Sizes combine_sizes(const Operation& operation, std::size_t first) {
  check_integers(operation, first);
  check_integers(operation, first + 1);
  const Shape& chosen = operation.operands[first].shape;
  const Shape& y = operation.operands[0].shape;
  if (y.size() != 4) {
    operand_error(operation, fmt::format("y is {}; expected [experts, groups, capacity, h]", to_string(y)));
  }
  check_shape(operation, 0, {y[0], chosen[0], y[2], y[3]});
  for (std::size_t i = first + 1; i < operation.operands.size(); ++i) check_shape(operation, i, chosen);
  return {chosen[0], chosen[1], chosen[2], y[0], y[2], y[3]};
}

struct ExpertWalks {
  DimensionWalk g, t, e, c, h;

  ExpertWalks(RuleBuilder& builder, const Sizes& sizes)
      : g(builder.add("g", sizes.g)),
        t(builder.add("t", sizes.t)),
        e(builder.add("e", sizes.e)),
        c(builder.add("c", sizes.c)),
        h(builder.add("h", sizes.h)) {}

  TensorWalk tokens() const { return {g, t, h}; }
  TensorWalk slots() const { return {e, g, c, h}; }
  TensorWalk choices() const { return {g, t, whole()}; }
};

/// Calls body(choice, token, slot) with local offsets: of the choice in [g, t, k], of rows of h in [g, t] and [e, g,
/// c]. Slots of other devices are passed over.
template <class Body>
void for_each_choice(const KernelCall& call, const OperandView& experts, const OperandView& slots, Body body) {
  const Box e = call.box("e"), c = call.box("c");
  const std::int64_t groups = experts.shape[0], tokens = experts.shape[1], k = experts.shape[2];
  const auto in_box = [](double value, const Box& box) {
    return value >= static_cast<double>(box.begin) && value < static_cast<double>(box.end);
  };
  for (std::int64_t g = 0; g < groups; ++g) {
    for (std::int64_t i = 0; i < tokens * k; ++i) {
      const std::int64_t choice = g * tokens * k + i;
      const double expert = experts.data[choice], slot = slots.data[choice];
      if (!in_box(expert, e) || !in_box(slot, c)) continue;
      const std::int64_t queue = (static_cast<std::int64_t>(expert) - e.begin) * groups + g;
      body(choice, g * tokens + i / k, queue * c.size() + static_cast<std::int64_t>(slot) - c.begin);
    }
  }
}

std::vector<TensorType> infer_dispatch(const Operation& operation) {
  const Sizes sizes = dispatch_sizes(operation);
  return {{{sizes.e, sizes.g, sizes.c, sizes.h}, operation.operands[0].dtype}};
}

/// A slot holds at most one token, so pieces of the tokens leave summands.
ShardingRule dispatch_rule(const Operation& operation) {
  RuleBuilder builder;
  const ExpertWalks walks(builder, dispatch_sizes(operation));
  builder.set_kind(walks.t, FactorKind::kReduction);
  builder.operand(walks.tokens());
  for (std::size_t i = 1; i < operation.operands.size(); ++i) builder.operand(walks.choices());
  builder.result(walks.slots());
  return builder.build();
}

void dispatch_kernel(const KernelCall& call) {
  const std::int64_t width = call.results[0].shape[3];
  for_each_choice(call, call.operands[1], call.operands[2],
                  [&](std::int64_t choice, std::int64_t token, std::int64_t slot) {
                    const double gate = call.operands.size() > 3 ? call.operands[3].data[choice] : 1;
                    for (std::int64_t h = 0; h < width; ++h) {
                      call.results[0].data[slot * width + h] += gate * call.operands[0].data[token * width + h];
                    }
                  });
}

std::vector<TensorType> infer_combine(const Operation& operation) {
  const Sizes sizes = combine_sizes(operation, 1);
  return {{{sizes.g, sizes.t, sizes.h}, operation.operands[0].dtype}};
}

ShardingRule combine_rule(const Operation& operation) {
  RuleBuilder builder;
  const ExpertWalks walks(builder, combine_sizes(operation, 1));
  builder.set_kind(walks.e, FactorKind::kReduction);
  builder.set_kind(walks.c, FactorKind::kReduction);
  builder.operand(walks.slots());
  for (std::size_t i = 1; i < operation.operands.size(); ++i) builder.operand(walks.choices());
  builder.result(walks.tokens());
  return builder.build();
}

void combine_kernel(const KernelCall& call) {
  const std::int64_t width = call.results[0].shape[2];
  for_each_choice(call, call.operands[1], call.operands[2],
                  [&](std::int64_t choice, std::int64_t token, std::int64_t slot) {
                    const double gate = call.operands.size() > 3 ? call.operands[3].data[choice] : 1;
                    for (std::int64_t h = 0; h < width; ++h) {
                      call.results[0].data[token * width + h] += gate * call.operands[0].data[slot * width + h];
                    }
                  });
}

// ---- GateGrad(y, x, experts, slots): the product of both sides

std::vector<TensorType> infer_gate_grad(const Operation& operation) {
  const Sizes sizes = combine_sizes(operation, 2);
  return {{{sizes.g, sizes.t, sizes.k}, operation.operands[1].dtype}};
}

ShardingRule gate_grad_rule(const Operation& operation) {
  RuleBuilder builder;
  const ExpertWalks walks(builder, combine_sizes(operation, 2));
  for (const DimensionWalk& summed : {walks.e, walks.c, walks.h}) builder.set_kind(summed, FactorKind::kReduction);
  builder.operand(walks.slots());
  builder.operand(walks.tokens());
  builder.operand(walks.choices());
  builder.operand(walks.choices());
  builder.result(walks.choices());
  return builder.build();
}

void gate_grad_kernel(const KernelCall& call) {
  const std::int64_t width = call.operands[1].shape[2];
  for_each_choice(call, call.operands[2], call.operands[3],
                  [&](std::int64_t choice, std::int64_t token, std::int64_t slot) {
                    double& sum = call.results[0].data[choice];
                    for (std::int64_t h = 0; h < width; ++h) {
                      sum += call.operands[0].data[slot * width + h] * call.operands[1].data[token * width + h];
                    }
                  });
}

/// Operands (experts, slots[, gates]) behind `first`.
std::vector<TensorId> with_choices(const GradientRequest& request, TensorId first) {
  std::vector<TensorId> operands = {first};
  operands.insert(operands.end(), request.operands.begin() + 1, request.operands.end());
  return operands;
}

Gradients dispatch_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  const TensorId dy = *request.result_gradients[0];
  if (request.needed[0]) gradients[0] = add_one(builder, "Combine", with_choices(request, dy));
  if (request.operands.size() > 3 && request.needed[3]) {
    gradients[3] = add_one(builder, "GateGrad", {dy, request.operands[0], request.operands[1], request.operands[2]});
  }
  return gradients;
}

Gradients combine_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  const TensorId dx = *request.result_gradients[0];
  const Shape& y = request.operation.operands[0].shape;
  if (request.needed[0]) {
    gradients[0] = add_one(builder, "Dispatch", with_choices(request, dx), {{"num_experts", y[0]}, {"capacity", y[2]}});
  }
  if (request.operands.size() > 3 && request.needed[3]) {
    gradients[3] = add_one(builder, "GateGrad", {request.operands[0], dx, request.operands[1], request.operands[2]});
  }
  return gradients;
}

/// A product and a sum for each number of each choice that is handled here; choices spread evenly over experts and
/// slots.
double choice_flops(const Operation& operation, std::span<const std::int64_t> extents) {
  double points = 2;
  for (const char* name : {"g", "t", "h"}) points *= static_cast<double>(extents[*operation.rule.find(name)]);
  for (const char* name : {"e", "c"}) {
    const std::uint32_t factor = *operation.rule.find(name);
    points *= static_cast<double>(extents[factor]) / static_cast<double>(operation.rule.factors[factor].size);
  }
  const std::size_t choices = operation.type->signature.operands[1] == "experts" ? 1 : 2;
  return points * static_cast<double>(operation.operands[choices].shape[2]);
}

std::int64_t expert_extent(const Operation& operation, std::size_t operand) {
  const std::string& name = operation.type->signature.operands[operand];
  const bool has_attributes = operation.attributes.contains("num_experts");
  if (name == "experts") return has_attributes ? operation.integer("num_experts") : operation.operands[0].shape[0];
  if (name == "slots") return has_attributes ? operation.integer("capacity") : operation.operands[0].shape[2];
  return 0;
}

std::vector<AttributeSpec> slot_attributes() {
  return {integer("num_experts", std::nullopt, "how many there are"),
          integer("capacity", std::nullopt, "slots of each expert for each group")};
}

}  // namespace

std::vector<OperatorType> expert_operators() {
  return {
      {.name = "TopKRouter",
       .signature = "logits -> gates, experts",
       .attributes = {integer("k", std::nullopt, "experts of each token"),
                      flag("normalise", true, "gates of a token add up to 1")},
       .infer = infer_router,
       .rule_text = "g t e -> g t k, g t k; e, k: whole",
       .rule = by_token_rule,
       .kernel = router_kernel,
       .gradient = router_gradient,
       .flops_per_point = 8},
      {.name = "TopKRouterGrad",
       .signature = "dgates, logits, experts -> dlogits",
       .attributes = {flag("normalise", true, "as the forward operator's")},
       .infer = infer_router_grad,
       .rule_text = "g t k, g t e, g t k -> g t e; e, k: whole",
       .rule = by_token_rule,
       .linear = {{"dgates"}},
       .kernel = router_grad_kernel,
       .flops_per_point = 8,
       .is_internal = true},
      {.name = "ExpertSlots",
       .signature = "experts -> slots",
       .attributes = slot_attributes(),
       .infer = infer_slots,
       .rule_text = "g t k -> g t k; t, k: whole",
       .rule = slots_rule,
       .kernel = slots_kernel,
       .index_extent = expert_extent},
      {.name = "Dispatch",
       .signature = "x, experts, slots, gates? -> y",
       .attributes = slot_attributes(),
       .infer = infer_dispatch,
       .rule_text = "g t h, g t k, g t k -> e g c h; t: sum; k: whole",
       .rule = dispatch_rule,
       .linear = {{"x"}, {"gates"}},
       .kernel = dispatch_kernel,
       .gradient = dispatch_gradient,
       .flops = choice_flops,
       .flops_text = "2 g t k h",
       .index_extent = expert_extent,
       .notes = "strategy  ((g, t, h), (g, t, 1), (g, t, 1)); experts and slots are cut by the result's layout"},
      {.name = "Combine",
       .signature = "y, experts, slots, gates? -> x",
       .infer = infer_combine,
       .rule_text = "e g c h, g t k, g t k -> g t h; e, c: sum; k: whole",
       .rule = combine_rule,
       .linear = {{"y"}, {"gates"}},
       .kernel = combine_kernel,
       .gradient = combine_gradient,
       .flops = choice_flops,
       .flops_text = "2 g t k h",
       .index_extent = expert_extent},
      {.name = "GateGrad",
       .signature = "y, x, experts, slots -> dgates",
       .infer = infer_gate_grad,
       .rule_text = "e g c h, g t h, g t k, g t k -> g t k; e, c, h: sum; k: whole",
       .rule = gate_grad_rule,
       .linear = {{"y"}, {"x"}},
       .kernel = gate_grad_kernel,
       .flops = choice_flops,
       .is_internal = true},
  };
}

}  // namespace shardplan
