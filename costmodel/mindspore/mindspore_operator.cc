#include "costmodel/mindspore/mindspore_operator.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string_view>

#include "base/error.h"
#include "layouts/mindspore_layout.h"
#include "operators/operator_type.h"

// MindSpore uses a device matrix whose digits are the factors' numbers of pieces, we use axes of a named mesh. The
// translation lists all pieces of the mesh in rank order, assigns each to the factor that it shards (or to none: it
// replicates) and joins neighbours that belong together.

namespace shardplan {
namespace {

/// A piece of an axis and the factor that it shards, if any.
struct Tile {
  AxisRef axis;
  std::optional<std::size_t> factor;
  std::size_t position = 0;  // among the factor's axes
};

/// All ranks, major to minor, in the pieces that the factors use; pieces between them replicate.
std::vector<Tile> tiles_of(const std::vector<std::vector<AxisRef>>& factors, const DeviceMesh& mesh) {
  std::vector<Tile> used;
  for (std::size_t factor = 0; factor < factors.size(); ++factor) {
    for (std::size_t i = 0; i < factors[factor].size(); ++i) used.push_back({factors[factor][i], factor, i});
  }
  std::sort(used.begin(), used.end(), [](const Tile& a, const Tile& b) { return a.axis < b.axis; });
  std::vector<Tile> tiles;
  auto next = used.begin();
  for (std::uint32_t axis = 0; axis < mesh.axes().size(); ++axis) {
    std::int64_t before = 1;
    const auto repeat_up_to = [&](std::int64_t end) {
      if (end > before) tiles.push_back({{axis, before, end / before}, std::nullopt, 0});
      before = end;
    };
    for (; next != used.end() && next->axis.axis == axis; ++next) {
      repeat_up_to(next->axis.before);
      tiles.push_back(*next);
      before *= next->axis.size;
    }
    repeat_up_to(mesh.axes()[axis].size);
  }
  return tiles;
}

/// Splits one factor of a dimension, of `size`, by digits of the matrix: one dimension each, the last with the rest.
void append_cut(MindSporeTensorLayout& layout, std::int64_t size, const std::vector<std::size_t>& digits) {
  auto& [device_matrix, tensor_map] = layout.layout;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const std::int64_t pieces = device_matrix[digits[i]];
    const bool is_last = i + 1 == digits.size();
    layout.shape.push_back(is_last ? size : pieces);
    tensor_map.push_back({static_cast<std::int64_t>(device_matrix.size() - 1 - digits[i])});
    size /= pieces;
  }
  if (!digits.empty()) return;
  layout.shape.push_back(size);
  tensor_map.push_back({});
}

/// The factors that shard a dimension.
std::vector<std::uint32_t> walked(const DimensionWalk& walk) {
  return walk.window ? std::vector<std::uint32_t>{walk.window->output} : walk.factors;
}

MindSporeTensor tensor_of(const TensorType& type, const TensorWalk& walk, const Strategy& strategy, bool is_parameter) {
  MindSporeTensor tensor{type.shape, {}, element_bytes(type.dtype), is_parameter};
  for (const DimensionWalk& dimension : walk) {
    std::int64_t cut = 1;
    for (const std::uint32_t factor : walked(dimension)) cut *= num_pieces(strategy.factors[factor]);
    tensor.cuts.push_back(cut);
  }
  return tensor;
}

bool may_cut(const Factor& factor) {
  return factor.kind == FactorKind::kPassThrough || factor.kind == FactorKind::kReduction;
}

constexpr std::pair<std::string_view, MindSporeFamily> kFamilies[] = {
    {"MatMul", MindSporeFamily::kMatMul},
    {"BatchMatMul", MindSporeFamily::kMatMul},
    {"Cast", MindSporeFamily::kActivation},
    {"ReLU", MindSporeFamily::kActivation},
    {"GeLU", MindSporeFamily::kActivation},
    {"SiLU", MindSporeFamily::kActivation},
    {"Sqrt", MindSporeFamily::kActivation},
    {"Rsqrt", MindSporeFamily::kActivation},
    {"Tanh", MindSporeFamily::kActivation},
    {"Sigmoid", MindSporeFamily::kActivation},
    {"Transpose", MindSporeFamily::kActivation},
    {"Abs", MindSporeFamily::kActivation},
    {"Neg", MindSporeFamily::kActivation},
    {"Exp", MindSporeFamily::kActivation},
    {"Log", MindSporeFamily::kActivation},
    {"Square", MindSporeFamily::kActivation},
    {"Softmax", MindSporeFamily::kSoftmax},
    {"LogSoftmax", MindSporeFamily::kSoftmax},
    {"Tile", MindSporeFamily::kSoftmax},
    {"Add", MindSporeFamily::kArithmetic},
    {"Sub", MindSporeFamily::kArithmetic},
    {"Mul", MindSporeFamily::kArithmetic},
    {"Div", MindSporeFamily::kArithmetic},
    {"RealDiv", MindSporeFamily::kArithmetic},
    {"Pow", MindSporeFamily::kArithmetic},
    {"Maximum", MindSporeFamily::kArithmetic},
    {"Minimum", MindSporeFamily::kArithmetic},
    {"BiasAdd", MindSporeFamily::kArithmetic},
    {"ReduceSum", MindSporeFamily::kReduce},
    {"ReduceMax", MindSporeFamily::kReduce},
    {"ReduceMin", MindSporeFamily::kReduce},
    {"ReduceMean", MindSporeFamily::kReduceMean},
    {"OneHot", MindSporeFamily::kUnlearned},
    {"SoftmaxCrossEntropyWithLogits", MindSporeFamily::kUnlearned},
    {"SparseSoftmaxCrossEntropyWithLogits", MindSporeFamily::kUnlearned},
    {"Dropout", MindSporeFamily::kDropout},
    {"Gather", MindSporeFamily::kGather},
    {"Identity", MindSporeFamily::kNothing},
    {"StopGradient", MindSporeFamily::kNothing},
};

/// Chooses the number of pieces of every factor, largest first for the first factor, until all devices are used.
class Candidates {
 public:
  Candidates(const Operation& operation, const DeviceMesh& mesh)
      : operation_(operation), mesh_(mesh), cuts_(operation.rule.factors.size(), 1) {
    const bool by_powers_of_two = std::has_single_bit(static_cast<std::uint64_t>(mesh.num_devices()));
    for (std::int64_t cut = mesh.num_devices(); cut > 1; --cut) {
      if (mesh.num_devices() % cut != 0) continue;
      if (!by_powers_of_two || std::has_single_bit(static_cast<std::uint64_t>(cut))) possible_.push_back(cut);
    }
  }

  std::vector<Strategy> run() {
    assign(0, mesh_.num_devices());
    if (mesh_.num_devices() > 1) {
      std::fill(cuts_.begin(), cuts_.end(), 1);
      keep();
    }
    return std::move(strategies_);
  }

 private:
  void assign(std::size_t factor, std::int64_t devices) {
    if (factor == cuts_.size()) {
      if (devices == 1) keep();
      return;
    }
    const Factor& info = operation_.rule.factors[factor];
    for (const std::int64_t cut : possible_) {
      if (!may_cut(info) || devices % cut != 0 || info.size % cut != 0) continue;
      cuts_[factor] = cut;
      assign(factor + 1, devices / cut);
    }
    cuts_[factor] = 1;
    assign(factor + 1, devices);
  }

  void keep() {
    std::vector<std::int64_t> matrix;
    for (const std::int64_t cut : cuts_) {
      if (cut > 1) matrix.push_back(cut);
    }
    const auto pieces = split_ranks(mesh_, matrix);
    if (!pieces) return;
    Strategy strategy;
    std::size_t next = 0;
    for (const std::int64_t cut : cuts_) {
      strategy.factors.push_back(cut > 1 ? (*pieces)[next++] : std::vector<AxisRef>());
    }
    const bool is_legal = !is_uneven(operation_, strategy) && check_strategy(operation_, strategy, mesh_).empty();
    if (is_legal) strategies_.push_back(std::move(strategy));
  }

  const Operation& operation_;
  const DeviceMesh& mesh_;
  std::vector<std::int64_t> possible_;  // numbers of pieces of one factor, largest first
  std::vector<std::int64_t> cuts_;      // by factor
  std::vector<Strategy> strategies_;
};

}  // namespace

DeviceDigits device_digits(const std::vector<std::vector<AxisRef>>& factors, const DeviceMesh& mesh) {
  DeviceDigits digits;
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> places(factors.size());  // position among axes, digit
  const Tile* before = nullptr;
  const std::vector<Tile> tiles = tiles_of(factors, mesh);
  for (const Tile& tile : tiles) {
    const bool goes_on =
        before != nullptr && before->factor == tile.factor && (!tile.factor || before->position + 1 == tile.position);
    if (goes_on) {
      digits.sizes.back() *= tile.axis.size;
    } else {
      if (tile.factor) places[*tile.factor].emplace_back(tile.position, digits.sizes.size());
      digits.sizes.push_back(tile.axis.size);
    }
    before = &tile;
  }
  digits.of_factor.resize(factors.size());
  for (std::size_t factor = 0; factor < factors.size(); ++factor) {
    std::sort(places[factor].begin(), places[factor].end());
    for (const auto& [position, at] : places[factor]) digits.of_factor[factor].push_back(at);
  }
  return digits;
}

MindSporeTensorLayout mindspore_layout(const TensorWalk& walk, const Shape& shape, const std::vector<Factor>& factors,
                                       const DeviceDigits& digits) {
  MindSporeTensorLayout layout{{digits.sizes, {}}, {}};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::vector<std::uint32_t> here = walked(walk[d]);
    if (here.empty()) append_cut(layout, shape[d], {});
    for (const std::uint32_t factor : here) {
      append_cut(layout, here.size() == 1 ? shape[d] : factors[factor].size, digits.of_factor[factor]);
    }
  }
  return layout;
}

MindSporeTensorLayout mindspore_layout(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape) {
  std::vector<std::vector<AxisRef>> parts;
  for (const DimensionLayout& dimension : layout.dimensions) {
    for (const DimensionPart& part : dimension.parts) parts.push_back(part.axes);
  }
  const DeviceDigits digits = device_digits(parts, mesh);
  MindSporeTensorLayout result{{digits.sizes, {}}, {}};
  std::size_t next = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    for (const DimensionPart& part : layout.dimensions[d].parts) {
      append_cut(result, part.size == 0 ? shape[d] : part.size, digits.of_factor[next++]);
    }
  }
  return result;
}

MindSporeFamily mindspore_family(const Operation& operation) {
  for (const auto& [name, family] : kFamilies) {
    if (operation.type->name == name) return family;
  }
  return MindSporeFamily::kBatchParallel;
}

MindSporeOperator mindspore_operator(const Operation& operation, const Strategy& strategy,
                                     std::span<const char> is_parameter) {
  const ShardingRule& rule = operation.rule;
  MindSporeOperator result;
  result.family = mindspore_family(operation);
  for (std::size_t i = 0; i < operation.operands.size(); ++i) {
    result.operands.push_back(tensor_of(operation.operands[i], rule.operands[i], strategy, is_parameter[i] != 0));
  }
  if (!operation.results.empty()) {
    result.result = tensor_of(operation.results[0], rule.results[0], strategy, false);
  }
  for (std::size_t factor = 0; factor < rule.factors.size(); ++factor) {
    const bool is_cut = num_pieces(strategy.factors[factor]) > 1;
    if (!is_cut || rule.factors[factor].kind != FactorKind::kReduction) continue;
    result.reduces_cut_dimension = true;
    result.cuts_gather_axis = result.family == MindSporeFamily::kGather;
  }
  return result;
}

std::string check_mindspore_strategy(const Operation& operation, const Strategy& strategy) {
  if (!strategy.partial.empty()) return "a partial sum goes through it";
  for (std::size_t factor = 0; factor < strategy.factors.size(); ++factor) {
    const Factor& info = operation.rule.factors[factor];
    if (num_pieces(strategy.factors[factor]) > 1 && !may_cut(info)) {
      return fmt::format("it is cut along {}, which MindSpore keeps whole", info.name);
    }
  }
  return {};
}

std::vector<Strategy> mindspore_candidates(const Operation& operation, const DeviceMesh& mesh) {
  return Candidates(operation, mesh).run();
}

}  // namespace shardplan
