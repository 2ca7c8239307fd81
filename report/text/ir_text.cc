#include "report/text/ir_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"
#include "layouts/held_positions.h"
#include "layouts/uneven.h"
#include "program/last_run.h"
#include "report/text/strategy_text.h"

// Every function writes one part of a line from the program alone, in MindSpore's spelling. A part that differs by
// device is written for one device and, if pieces are equal or evenly spaced, as a formula of its rank, so that one
// file can represent all ranks.

namespace shardplan {
namespace {

/// "F32", "BF16", "Bool".
std::string short_name(DataType dtype) {
  if (dtype == DataType::kBool) return "Bool";
  std::string name(to_string(dtype));
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

/// "2r", "r", "2r+1"; for a factor of zero only the summand.
std::string linear_text(std::int64_t factor, std::string_view variable, std::int64_t summand) {
  std::string text = factor == 0 ? "" : factor == 1 ? std::string(variable) : fmt::format("{}{}", factor, variable);
  if (text.empty()) return fmt::format("{}", summand);
  if (summand != 0) text += fmt::format("+{}", summand);
  return text;
}

/// The variable of a formula: ("rank r", "r") if the axes number the ranks themselves.
struct Variable {
  std::string who;
  std::string name;
};
Variable variable_of(const DeviceMesh& mesh, const std::vector<AxisRef>& axes) {
  if (num_pieces(axes) == mesh.num_devices() && mesh.devices().empty()) {
    bool in_order = true;
    for (std::int64_t point = 0; point < mesh.num_devices() && in_order; ++point) {
      in_order = mesh.coordinate(point, axes) == point;
    }
    if (in_order) return {"rank r", "r"};
  }
  return {fmt::format("place p over {}", mesh.to_string(axes)), "p"};
}

std::int64_t device_at(const DeviceMesh& mesh, std::int64_t point) {
  return mesh.devices().empty() ? point : mesh.devices()[static_cast<std::size_t>(point)];
}

/// The point `steps` places further along `axes`, or -1 beyond the ends.
std::int64_t neighbour(const DeviceMesh& mesh, const std::vector<AxisRef>& axes, std::int64_t point, int steps) {
  if (steps == 0) return point;
  for (const std::vector<std::int64_t>& group : mesh.groups(axes)) {
    const auto found = std::find(group.begin(), group.end(), point);
    if (found == group.end()) continue;
    const std::int64_t place = found - group.begin() + steps;
    return place < 0 || place >= static_cast<std::int64_t>(group.size()) ? -1 : group[static_cast<std::size_t>(place)];
  }
  return -1;
}

/// How many positions of its neighbours the device at one point needs in one dimension.
struct HaloWidths {
  std::int64_t before = 0;
  std::int64_t after = 0;
};
HaloWidths halo_widths(const Instruction& instruction, const Halo& halo, const DeviceMesh& mesh, std::int64_t piece,
                       std::int64_t point) {
  const Operation& operation = *instruction.operation;
  const std::optional<Window>& window = operation.rule.operands[halo.operand][halo.dimension].window;
  if (!window || point < 0) return {};
  const Box box = boxes(operation, instruction.strategy, mesh, point)[window->output];
  const Interval reads = window_reads(*window, operation.rule.factors[window->offset].size, box,
                                      operation.operands[halo.operand].shape[halo.dimension]);
  const std::int64_t begin = piece * mesh.coordinate(point, halo.axes);
  return {std::max<std::int64_t>(0, begin - reads.begin), std::max<std::int64_t>(0, reads.end - begin - piece)};
}

}  // namespace

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3u;
  }
  return hash;
}

std::string tensor_text(DataType dtype, const Shape& shape) {
  return fmt::format("<Tensor[{}], {}>", mindspore_name(dtype), tuple_text(shape));
}

std::string reference_text(DataType dtype, const Shape& shape, std::string_view name) {
  return fmt::format("<Ref[Tensor({})], {}, ref_key=:{}>", short_name(dtype), tuple_text(shape), name);
}

std::string shapes_text(const std::vector<Shape>& shapes) {
  StrategyTuples tuples(shapes.begin(), shapes.end());
  return tuple_text(tuples);
}

std::string constant_text(const GraphTensor& constant, const Shape& local_shape) {
  std::string fill;
  switch (constant.fill.kind) {
    case Fill::Kind::kValue:
      fill = fmt::format("{}", constant.fill.value);
      break;
    case Fill::Kind::kIota:
      fill = "iota";
      break;
    case Fill::Kind::kCausal:
      fill = "causal";
      break;
  }
  if (local_shape.empty()) return fmt::format("{}({})", short_name(constant.type.dtype), fill);
  return fmt::format("Tensor[{}]({}, {})", mindspore_name(constant.type.dtype), fill, tuple_text(local_shape));
}

std::string RankGroup::group_ranks() const {
  std::vector<std::int64_t> ascending = ranks;
  std::sort(ascending.begin(), ascending.end());
  return fmt::format("{}", fmt::join(ascending, "-"));
}

std::string loop_remarks(const ParallelProgram& program) {
  if (program.micro_batches == 1) return "";
  std::string text =
      fmt::format("# what comes before the first update runs {} times a step, each time on another micro-batch\n",
                  program.micro_batches);
  const std::size_t early = issued_in_last_run(program).size();
  if (early > 0) {
    text += fmt::format(
        "# of what comes behind that, the first {} issued in the last run, as soon as what it reads is there\n",
        early == 1 ? "collective is" : fmt::format("{} collectives and buckets are each", early));
  }
  return text;
}

std::string RankGroup::name() const { return fmt::format("{}-{}", ranks.size(), fnv1a(group_ranks())); }

RankGroup group_of(const DeviceMesh& mesh, const std::vector<AxisRef>& axes, std::int64_t point) {
  // The members differ from `point` along the axes only, so counting from its own place visits each once.
  const std::int64_t size = num_pieces(axes);
  RankGroup result;
  result.ranks.resize(static_cast<std::size_t>(size));
  std::vector<std::int64_t> strides;  // of ranks between neighbours along each ref
  for (const AxisRef& ref : axes) {
    std::int64_t stride = mesh.axes()[ref.axis].size / ref.end();
    for (std::size_t axis = ref.axis + 1; axis < mesh.axes().size(); ++axis) stride *= mesh.axes()[axis].size;
    strides.push_back(stride);
  }
  for (std::int64_t place = 0; place < size; ++place) {
    std::int64_t rest = place;
    std::int64_t member = point;
    for (std::size_t i = axes.size(); i-- > 0;) {
      member += (rest % axes[i].size - mesh.coordinate(point, axes[i])) * strides[i];
      rest /= axes[i].size;
    }
    result.ranks[static_cast<std::size_t>(place)] = device_at(mesh, member);
  }
  return result;
}

std::string holds_text(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape) {
  std::optional<std::size_t> cut;
  for (std::size_t i = 0; i < layout.dimensions.size(); ++i) {
    if (!layout.dimensions[i].is_sharded()) continue;
    if (cut || layout.dimensions[i].parts.size() != 1) return "";
    cut = i;
  }
  if (!cut) return "";
  const std::vector<AxisRef>& axes = layout.dimensions[*cut].parts[0].axes;
  const bool is_even = shape[*cut] % num_pieces(axes) == 0;
  const std::int64_t piece = largest_piece(shape[*cut], num_pieces(axes));
  const Variable variable = variable_of(mesh, axes);
  const std::string what = shape.size() == 1   ? "elements"
                           : *cut == 0         ? "rows"
                           : shape.size() == 2 ? "columns"
                                               : fmt::format("of dimension {}", *cut);
  const std::string first = linear_text(piece, variable.name, 0);
  if (piece == 1) return fmt::format("{} holds {} {}", variable.who, what, first);
  return fmt::format("{} holds {} {} to {}{}", variable.who, what, first, linear_text(piece, variable.name, piece - 1),
                     is_even ? "" : ", the last one fewer");
}

SliceText slice_text(const CollectiveStep& step, const DeviceMesh& mesh, const Shape& shape, std::int64_t point) {
  const Shape before = local_shape(step.before, shape);
  Shape begin(shape.size(), 0), end = before, strides(shape.size(), 1);
  bool is_regular = true;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const HeldPositions held(step.before.dimensions[d], mesh, shape[d], point);
    const HeldPositions kept(step.after.dimensions[d], mesh, shape[d], point);
    if (kept.size() == held.size()) continue;
    // The places of the kept elements among the held ones: evenly spaced, unless the dimension is sharded in parts.
    const auto place = [&](std::int64_t i) { return held.num_before(kept[i]); };
    begin[d] = place(0);
    end[d] = place(kept.size() - 1) + 1;
    if (kept.size() > 1) strides[d] = place(1) - place(0);
    for (const std::int64_t block : kept.block_sizes()) {
      if (block < kept.size()) is_regular = is_regular && place(block) - place(block - 1) == strides[d];
    }
  }
  SliceText text;
  text.call = fmt::format("{}, {}, {}", tuple_text(begin), tuple_text(end), tuple_text(strides));
  if (!is_regular) text.formula = "in pieces, as the layout says";
  const bool has_one_part = step.to_dim && step.before.dimensions[*step.to_dim].parts.size() <= 1 &&
                            step.after.dimensions[*step.to_dim].parts.size() <= 1;
  if (is_regular && has_one_part) {
    const Variable variable = variable_of(mesh, step.axes);
    const std::int64_t piece = local_shape(step.after, shape)[*step.to_dim];
    std::vector<std::string> from, to;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const bool is_sharded = d == *step.to_dim;
      from.push_back(is_sharded ? linear_text(piece, variable.name, 0) : "0");
      to.push_back(is_sharded ? linear_text(piece, variable.name, piece) : fmt::format("{}", before[d]));
    }
    text.formula = fmt::format("{} takes ({}) to ({})", variable.who, fmt::join(from, ", "), fmt::join(to, ", "));
  }
  return text;
}

HaloExchange halo_exchange(const Instruction& instruction, const DeviceMesh& mesh, const Shape& local,
                           std::int64_t point) {
  // NeighborExchangeV2 has a vertical and a horizontal dimension, as in NCHW. A single halo is the vertical one unless
  // it is in the last of several dimensions.
  const Halo* vertical = nullptr;
  const Halo* horizontal = nullptr;
  for (const Halo& halo : instruction.halo) {
    const bool is_last = halo.dimension + 1 == local.size() && local.size() > 1;
    (is_last && horizontal == nullptr ? horizontal : vertical) = &halo;
  }
  const auto move = [&](std::int64_t from, int down, int right) {
    if (from >= 0 && down != 0) from = vertical == nullptr ? -1 : neighbour(mesh, vertical->axes, from, down);
    if (from >= 0 && right != 0) from = horizontal == nullptr ? -1 : neighbour(mesh, horizontal->axes, from, right);
    return from;
  };
  const auto widths = [&](const Halo* halo, std::int64_t of) {
    return halo == nullptr ? HaloWidths() : halo_widths(instruction, *halo, mesh, local[halo->dimension], of);
  };
  const HaloWidths rows = widths(vertical, point);
  const HaloWidths columns = widths(horizontal, point);
  const std::array<std::int64_t, 4> receives{rows.before, rows.after, columns.before, columns.after};
  const std::array<std::int64_t, 4> sends{
      widths(vertical, move(point, -1, 0)).after, widths(vertical, move(point, 1, 0)).before,
      widths(horizontal, move(point, 0, -1)).after, widths(horizontal, move(point, 0, 1)).before};
  // Top, top right, right, bottom right, bottom, bottom left, left, top left.
  constexpr std::array<std::array<int, 2>, 8> kAround{
      {{-1, 0}, {-1, 1}, {0, 1}, {1, 1}, {1, 0}, {1, -1}, {0, -1}, {-1, -1}}};
  const auto ranks = [&](const std::array<std::int64_t, 4>& lengths) {
    std::vector<std::int64_t> result;
    for (const auto& [down, right] : kAround) {
      const bool is_used =
          (down == 0 || lengths[down < 0 ? 0 : 1] > 0) && (right == 0 || lengths[right < 0 ? 2 : 3] > 0);
      const std::int64_t other = is_used ? move(point, down, right) : -1;
      result.push_back(other < 0 ? -1 : device_at(mesh, other));
    }
    return tuple_text(result);
  };
  const auto lengths = [](const std::array<std::int64_t, 4>& values) {
    return tuple_text(std::vector<std::int64_t>(values.begin(), values.end()));
  };
  HaloExchange exchange;
  exchange.attributes = fmt::format("send_rank_ids: {}, send_lens: {}, recv_rank_ids: {}, recv_lens: {}, format: NCHW",
                                    ranks(sends), lengths(sends), ranks(receives), lengths(receives));
  exchange.shape = local;
  if (vertical != nullptr) exchange.shape[vertical->dimension] += rows.before + rows.after;
  if (horizontal != nullptr) exchange.shape[horizontal->dimension] += columns.before + columns.after;
  return exchange;
}

std::string quoted_layouts(const std::vector<const TensorLayout*>& layouts, const DeviceMesh& mesh) {
  std::vector<std::string> texts;
  for (const TensorLayout* layout : layouts) texts.push_back(to_string(*layout, mesh));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string matrices_text(const std::vector<const TensorLayout*>& layouts, const DeviceMesh& mesh) {
  std::vector<std::string> texts;
  for (const TensorLayout* layout : layouts) texts.push_back(device_matrix_text(*layout, mesh));
  return fmt::format("({})", fmt::join(texts, ", "));
}

std::string padding_text(const CollectiveStep& step, const Shape& shape) {
  std::string text;
  const auto add = [&](const std::optional<std::size_t>& d, const TensorLayout& layout, std::string_view what) {
    if (!d || step.kind == CollectiveKind::kCollectivePermute) return;
    const std::int64_t pieces = layout.dimensions[*d].num_pieces();
    if (shape[*d] % pieces == 0) return;
    text += fmt::format("{} of dimension {}: {}, ", what, *d, pieces * largest_piece(shape[*d], pieces) - shape[*d]);
  };
  add(step.from_dim, step.before, "trimmed");
  add(step.to_dim, step.after, "padding");
  return text;
}

}  // namespace shardplan
