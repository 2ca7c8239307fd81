#include "tests/operators/oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "operators/catalogue.h"
#include "operators/phases.h"

namespace shardplan {
namespace {

using Indices = std::vector<std::vector<std::int64_t>>;  // by dimension

std::int64_t elements(const Shape& shape) {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

/// Calls body(flat position in the local tensor, flat position in the whole tensor).
void for_each_index(const Indices& indices, const Shape& shape,
                    const std::function<void(std::size_t, std::size_t)>& body) {
  std::size_t count = 1;
  for (const auto& list : indices) count *= list.size();
  for (std::size_t local = 0; local < count; ++local) {
    std::size_t rest = local;
    std::size_t global = 0;
    std::size_t stride = 1;
    for (std::size_t d = indices.size(); d-- > 0;) {
      global += static_cast<std::size_t>(indices[d][rest % indices[d].size()]) * stride;
      rest /= indices[d].size();
      stride *= static_cast<std::size_t>(shape[d]);
    }
    body(local, global);
  }
}

Shape extents_of(const Indices& indices) {
  Shape shape;
  for (const auto& list : indices) shape.push_back(static_cast<std::int64_t>(list.size()));
  return shape;
}

/// The positions of a tensor that a device with these boxes has, derived from the definition of walks alone.
Indices positions(const ShardingRule& rule, const TensorWalk& walk, const Shape& shape, const std::vector<Box>& boxes) {
  Indices indices;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::vector<std::int64_t> list;
    if (walk[d].window) {
      const Window& w = *walk[d].window;
      std::set<std::int64_t> read;
      for (std::int64_t i = boxes[w.output].begin; i < boxes[w.output].end; ++i) {
        for (std::int64_t r = 0; r < rule.factors[w.offset].size; ++r) {
          const std::int64_t at = w.stride * i + w.dilation * r - w.pad_before;
          if (at >= 0 && at < shape[d]) read.insert(at);
        }
      }
      // A halo is contiguous.
      if (!read.empty()) {
        for (std::int64_t at = *read.begin(); at <= *read.rbegin(); ++at) list.push_back(at);
      }
    } else if (walk[d].factors.empty()) {
      for (std::int64_t at = 0; at < shape[d]; ++at) list.push_back(at);
    } else {
      list = {0};
      for (const std::uint32_t f : walk[d].factors) {
        std::vector<std::int64_t> longer;
        for (const std::int64_t major : list) {
          for (std::int64_t at = boxes[f].begin; at < boxes[f].end; ++at)
            longer.push_back(major * rule.factors[f].size + at);
        }
        list = std::move(longer);
      }
    }
    indices.push_back(std::move(list));
  }
  return indices;
}

bool has_factor(const TensorWalk& walk, std::uint32_t factor) {
  for (const DimensionWalk& d : walk) {
    if (std::ranges::find(d.factors, factor) != d.factors.end()) return true;
  }
  return false;
}

/// Splits a tensor into unequal parts that reduce to it.
std::vector<Values> take_apart(const Values& whole, std::size_t count, AxisUse::Kind kind, Random& random) {
  std::vector<Values> parts(count, whole);
  for (std::size_t i = 0; i < whole.data.size(); ++i) {
    if (kind == AxisUse::Kind::kLinear) {
      double rest = whole.data[i];
      for (std::size_t p = 0; p + 1 < count; ++p) rest -= parts[p].data[i] = 4 * random.unit() - 2;
      parts[count - 1].data[i] = rest;
    } else {
      const std::size_t keeper = random.below(count);
      const double sign = kind == AxisUse::Kind::kMonotoneMax ? -1 : 1;
      for (std::size_t p = 0; p < count; ++p) {
        // Away from the extreme, but within the domain of Log and Sqrt.
        if (p != keeper) parts[p].data[i] += sign * random.unit() * 0.4 * std::abs(whole.data[i]);
      }
    }
  }
  return parts;
}

/// Whether a box of the factor is an interval in every dimension that walks it, and phases do not count its pieces.
bool is_interval(const ShardingRule& rule, std::uint32_t factor) {
  bool result = !rule.factors[factor].has_equal_pieces;
  for (const auto* tensors : {&rule.operands, &rule.results}) {
    for (const TensorWalk& walk : *tensors) {
      for (const DimensionWalk& d : walk) {
        if (d.window && d.window->output == factor) result = false;
        if (std::ranges::find(d.factors, factor) == d.factors.end()) continue;
        std::int64_t others = 1;
        for (const std::uint32_t other : d.factors) others *= other == factor ? 1 : rule.factors[other].size;
        result &= others == 1;
      }
    }
  }
  return result;
}

/// Whether the last piece is not empty if the others have the smallest sufficient size.
bool leaves_none_empty(std::int64_t size, std::int64_t pieces) {
  return (size + pieces - 1) / pieces * (pieces - 1) < size;
}

struct DeviceGrid {
  std::vector<std::int64_t> sizes;

  std::int64_t count() const { return elements(sizes); }
  std::vector<std::int64_t> coordinates(std::int64_t device) const {
    std::vector<std::int64_t> result(sizes.size());
    for (std::size_t a = sizes.size(); a-- > 0;) {
      result[a] = device % sizes[a];
      device /= sizes[a];
    }
    return result;
  }
};

/// One kernel on all devices; operands and results are whole tensors.
ShardedRun run_kernel(const Operation& operation, const std::vector<Values>& operands, const Assignment& assignment,
                      Random& random) {
  const ShardingRule& rule = operation.rule;
  const DeviceGrid grid{assignment.sizes};
  // The axes over which operands are partial, read as one.
  std::vector<std::size_t> partial_axes;
  AxisUse::Kind partial_kind = AxisUse::Kind::kNothing;
  std::size_t group = 0;
  for (std::size_t a = 0; a < grid.sizes.size(); ++a) {
    const AxisUse& use = assignment.uses[a];
    if (use.kind == AxisUse::Kind::kNothing || use.kind == AxisUse::Kind::kFactor) continue;
    partial_axes.push_back(a);
    partial_kind = use.kind;
    group = use.group;
  }
  const auto position_along = [&](const std::vector<std::int64_t>& at, const std::vector<std::size_t>& axes) {
    std::size_t position = 0;
    for (const std::size_t a : axes)
      position = position * static_cast<std::size_t>(grid.sizes[a]) + static_cast<std::size_t>(at[a]);
    return position;
  };
  std::size_t num_parts = 1;
  for (const std::size_t a : partial_axes) num_parts *= static_cast<std::size_t>(grid.sizes[a]);
  std::vector<std::vector<Values>> parts;  // by operand
  for (std::uint32_t i = 0; i < operands.size(); ++i) {
    bool is_partial = false;
    if (!partial_axes.empty()) {
      const auto& groups = partial_kind == AxisUse::Kind::kLinear ? rule.linear : rule.monotone;
      is_partial = std::ranges::find(groups[group], i) != groups[group].end();
    }
    parts.push_back(is_partial ? take_apart(operands[i], num_parts, partial_kind, random)
                               : std::vector<Values>(num_parts, operands[i]));
  }
  // How to assemble each result: the axes over which it is partial, and the reduction.
  struct Assembly {
    std::vector<std::size_t> axes;
    Reduction reduction = Reduction::kSum;
    std::map<std::size_t, Values> tensors;  // by position along `axes`
    std::map<std::size_t, std::vector<char>> filled;
  };
  std::vector<Assembly> assemblies(operation.results.size());
  for (std::size_t r = 0; r < assemblies.size(); ++r) {
    for (std::size_t a = 0; a < grid.sizes.size(); ++a) {
      const AxisUse& use = assignment.uses[a];
      if (use.kind == AxisUse::Kind::kFactor) {
        const auto f = rule.find(use.factor);
        if (!f || rule.factors[*f].kind != FactorKind::kReduction || has_factor(rule.results[r], *f)) continue;
        assemblies[r].reduction = rule.factors[*f].reduction;
        assemblies[r].axes.push_back(a);
      } else if (use.kind != AxisUse::Kind::kNothing) {
        assemblies[r].axes.push_back(a);
        if (use.kind == AxisUse::Kind::kMonotoneMax) assemblies[r].reduction = Reduction::kMax;
        if (use.kind == AxisUse::Kind::kMonotoneMin) assemblies[r].reduction = Reduction::kMin;
      }
    }
  }
  ShardedRun run;
  for (std::int64_t device = 0; device < grid.count(); ++device) {
    const std::vector<std::int64_t> at = grid.coordinates(device);
    std::vector<Box> boxes;
    for (const Factor& factor : rule.factors) {
      std::int64_t position = 0;
      std::int64_t pieces = 1;
      for (std::size_t a = 0; a < grid.sizes.size(); ++a) {
        if (assignment.uses[a].kind != AxisUse::Kind::kFactor || assignment.uses[a].factor != factor.name) continue;
        position = position * grid.sizes[a] + at[a];
        pieces *= grid.sizes[a];
      }
      const std::int64_t size = (factor.size + pieces - 1) / pieces;
      boxes.push_back({position * size, std::min(factor.size, (position + 1) * size), factor.size});
    }
    std::vector<std::vector<double>> buffers;
    std::vector<OperandView> views;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Values& source = parts[i][position_along(at, partial_axes)];
      const Indices indices = positions(rule, rule.operands[i], source.shape, boxes);
      std::vector<double> local(static_cast<std::size_t>(elements(extents_of(indices))));
      for_each_index(indices, source.shape, [&](std::size_t to, std::size_t from) { local[to] = source.data[from]; });
      Shape begin;
      for (std::size_t d = 0; d < indices.size(); ++d) {
        const bool is_plain = rule.operands[i][d].window || rule.operands[i][d].factors.size() <= 1;
        begin.push_back(is_plain && !indices[d].empty() ? indices[d].front() : 0);
      }
      buffers.push_back(std::move(local));
      views.push_back({buffers.back().data(), extents_of(indices), begin});
    }
    std::vector<std::vector<double>> outputs;
    std::vector<ResultView> results;
    std::vector<Indices> indices_of;
    for (std::size_t r = 0; r < operation.results.size(); ++r) {
      indices_of.push_back(positions(rule, rule.results[r], operation.results[r].shape, boxes));
      outputs.emplace_back(static_cast<std::size_t>(elements(extents_of(indices_of.back()))), 0.0);
      results.push_back({outputs.back().data(), extents_of(indices_of.back())});
    }
    run_operation({operation, boxes, views, results, 7});
    for (std::size_t r = 0; r < results.size(); ++r) {
      Assembly& assembly = assemblies[r];
      const std::size_t key = position_along(at, assembly.axes);
      const Shape& shape = operation.results[r].shape;
      Values& whole =
          assembly.tensors
              .try_emplace(key, Values{shape, std::vector<double>(static_cast<std::size_t>(elements(shape)), 0.0)})
              .first->second;
      std::vector<char>& filled =
          assembly.filled.try_emplace(key, std::vector<char>(whole.data.size(), 0)).first->second;
      for_each_index(indices_of[r], shape, [&](std::size_t from, std::size_t to) {
        const double value = outputs[r][from];
        if (filled[to] && std::abs(whole.data[to] - value) > 1e-9 * (1 + std::abs(value)))
          run.fault = "copies of a result differ";
        whole.data[to] = value;
        filled[to] = 1;
      });
    }
  }
  for (Assembly& assembly : assemblies) {
    Values total = assembly.tensors.begin()->second;
    for (auto at = assembly.tensors.begin(); at != assembly.tensors.end(); ++at) {
      const std::vector<char>& filled = assembly.filled[at->first];
      if (std::ranges::find(filled, 0) != filled.end()) run.fault = "a part of a result is on no device";
      if (at == assembly.tensors.begin()) continue;
      for (std::size_t i = 0; i < total.data.size(); ++i) {
        const double value = at->second.data[i];
        if (assembly.reduction == Reduction::kSum) total.data[i] += value;
        if (assembly.reduction == Reduction::kMax) total.data[i] = std::max(total.data[i], value);
        if (assembly.reduction == Reduction::kMin) total.data[i] = std::min(total.data[i], value);
      }
    }
    run.results.push_back(std::move(total));
  }
  return run;
}

}  // namespace

Values make_values(const Shape& shape, const std::function<double()>& draw) {
  Values values{shape, std::vector<double>(static_cast<std::size_t>(elements(shape)))};
  for (double& value : values.data) value = draw();
  return values;
}

std::vector<Values> run_whole(const Operation& operation, const std::vector<Values>& operands, std::uint64_t seed) {
  std::vector<Box> boxes;
  for (const Factor& factor : operation.rule.factors) boxes.push_back({0, factor.size, factor.size});
  std::vector<OperandView> views;
  for (const Values& operand : operands)
    views.push_back({operand.data.data(), operand.shape, Shape(operand.shape.size(), 0)});
  std::vector<Values> results;
  for (const TensorType& type : operation.results) results.push_back(make_values(type.shape, [] { return 0.0; }));
  std::vector<ResultView> result_views;
  for (Values& result : results) result_views.push_back({result.data.data(), result.shape});
  run_operation({operation, boxes, views, result_views, seed});
  return results;
}

std::string Assignment::text() const {
  std::string result;
  for (std::size_t a = 0; a < sizes.size(); ++a) {
    const AxisUse& use = uses[a];
    result += (a > 0 ? ", " : "") + std::to_string(sizes[a]) + ":";
    switch (use.kind) {
      case AxisUse::Kind::kNothing:
        result += "-";
        break;
      case AxisUse::Kind::kFactor:
        result += use.factor;
        break;
      case AxisUse::Kind::kLinear:
        result += "sum of group " + std::to_string(use.group);
        break;
      case AxisUse::Kind::kMonotoneMax:
        result += "max of group " + std::to_string(use.group);
        break;
      case AxisUse::Kind::kMonotoneMin:
        result += "min of group " + std::to_string(use.group);
        break;
    }
  }
  return result;
}

ShardedRun run_sharded(const Operation& operation, const std::vector<Values>& operands, const Assignment& assignment,
                       Random& random) {
  bool in_phases = false;
  for (const AxisUse& use : assignment.uses) {
    if (use.kind != AxisUse::Kind::kFactor) continue;
    in_phases |= operation.rule.factors[*operation.rule.find(use.factor)].kind == FactorKind::kNormalised;
  }
  if (!in_phases) return run_kernel(operation, operands, assignment, random);
  std::vector<std::int64_t> pieces(operation.rule.factors.size(), 1);
  for (std::size_t a = 0; a < assignment.uses.size(); ++a) {
    const AxisUse& use = assignment.uses[a];
    if (use.kind == AxisUse::Kind::kFactor) pieces[*operation.rule.find(use.factor)] *= assignment.sizes[a];
  }
  const Phases phases = operation.type->phases(operation, pieces);
  std::vector<TensorType> types = operation.operands;
  std::vector<Values> values = operands;
  ShardedRun run;
  for (const Phase& phase : phases.phases) {
    std::vector<TensorType> input_types;
    std::vector<Values> inputs;
    for (const std::size_t input : phase.inputs) {
      input_types.push_back(types[input]);
      inputs.push_back(values[input]);
    }
    const Operation step = make_operation(*find_operator_type(phase.type), phase.attributes, input_types);
    // A factor that a phase lacks is repeated work there.
    Assignment own = assignment;
    for (AxisUse& use : own.uses) {
      if (use.kind == AxisUse::Kind::kFactor && !step.rule.find(use.factor)) use = {};
    }
    const ShardedRun step_run = run_kernel(step, inputs, own, random);
    if (!step_run.fault.empty()) run.fault = phase.type + ": " + step_run.fault;
    types.insert(types.end(), step.results.begin(), step.results.end());
    values.insert(values.end(), step_run.results.begin(), step_run.results.end());
  }
  for (const std::size_t result : phases.results) run.results.push_back(values[result]);
  return run;
}

double relative_difference(const Values& expected, const Values& found) {
  if (expected.shape != found.shape) return std::numeric_limits<double>::infinity();
  double largest = 0;
  double difference = 0;
  for (std::size_t i = 0; i < expected.data.size(); ++i) {
    largest = std::max(largest, std::abs(expected.data[i]));
    const double here = std::abs(expected.data[i] - found.data[i]);
    if (!(here <= std::numeric_limits<double>::max())) return std::numeric_limits<double>::infinity();
    difference = std::max(difference, here);
  }
  return largest == 0 ? difference : difference / largest;
}

std::vector<Assignment> legal_assignments(const Operation& operation, const std::vector<std::int64_t>& sizes,
                                          std::size_t limit, Random& random, Cuts cuts) {
  const ShardingRule& rule = operation.rule;
  std::vector<AxisUse> choices = {{}};
  for (const Factor& factor : rule.factors) {
    if (factor.kind != FactorKind::kNeedReplication && factor.size > 1)
      choices.push_back({AxisUse::Kind::kFactor, factor.name, 0});
  }
  for (std::size_t g = 0; g < rule.linear.size(); ++g) choices.push_back({AxisUse::Kind::kLinear, "", g});
  for (std::size_t g = 0; g < rule.monotone.size(); ++g) {
    choices.push_back({AxisUse::Kind::kMonotoneMax, "", g});
    choices.push_back({AxisUse::Kind::kMonotoneMin, "", g});
  }
  std::vector<Assignment> legal;
  std::vector<std::size_t> digits(sizes.size(), 0);
  while (true) {
    Assignment assignment{sizes, {}};
    for (const std::size_t digit : digits) assignment.uses.push_back(choices[digit]);
    bool is_legal = true;
    bool has_uneven = false;
    std::map<std::string, std::int64_t> pieces;
    std::set<Reduction> reductions;
    std::set<std::pair<int, std::size_t>> groups;
    for (std::size_t a = 0; a < sizes.size(); ++a) {
      const AxisUse& use = assignment.uses[a];
      if (use.kind == AxisUse::Kind::kFactor) {
        const Factor& factor = rule.factors[*rule.find(use.factor)];
        pieces.try_emplace(use.factor, 1).first->second *= sizes[a];
        if (factor.kind == FactorKind::kReduction) reductions.insert(factor.reduction);
      } else if (use.kind != AxisUse::Kind::kNothing) {
        groups.insert({static_cast<int>(use.kind), use.group});
        reductions.insert(use.kind == AxisUse::Kind::kLinear        ? Reduction::kSum
                          : use.kind == AxisUse::Kind::kMonotoneMax ? Reduction::kMax
                                                                    : Reduction::kMin);
      }
    }
    for (const auto& [name, total] : pieces) {
      const std::int64_t size = rule.factors[*rule.find(name)].size;
      if (size % total == 0) continue;
      has_uneven = true;
      is_legal &= cuts == Cuts::kSomeUneven && is_interval(rule, *rule.find(name)) && leaves_none_empty(size, total);
    }
    is_legal &= has_uneven || cuts == Cuts::kEven;
    // Only one group at a time is partial, with one kind of reduction.
    if (is_legal && groups.size() <= 1 && reductions.size() <= 1) legal.push_back(std::move(assignment));
    std::size_t d = 0;
    while (d < digits.size() && ++digits[d] == choices.size()) digits[d++] = 0;
    if (d == digits.size()) break;
  }
  while (legal.size() > limit) {
    legal[random.below(legal.size())] = std::move(legal.back());
    legal.pop_back();
  }
  return legal;
}

}  // namespace shardplan
