#include "solver/bounds/elimination.h"

#include <algorithm>
#include <limits>
#include <set>
#include <span>

#include "solver/core/vector_kernels.h"
#include "solver/interned.h"

// Bucket elimination (Bertele and Brioschi, Nonserial Dynamic Programming, 1972; Dechter, Artificial Intelligence 113,
// 1999) with two additions that make it practical for models, whose graphs are long and narrow but whose nodes have
// hundreds of strategies.
//
// First, a table's dimension is not a node but what the table needs to know about the node: a partition of its values.
// An edge of redistributions depends on the layout, of which there are 8 where there are 64 strategies; joined edges
// depend on the coarsest partition that refines both. `order` and `plan_steps` work this out symbolically, with
// numbered partitions, before any table is computed, so the cost and feasibility of a run are known in advance.
//
// Second, equal steps are computed once. A step is identified by its operands: the node's own costs, and the numbers of
// its tables and partitions. Tables are numbered by content, after their minimum is moved into the cost, so the table
// after layer 3 is recognised as that after layer 2: the best choice far away hardly depends on the choice here. This
// reduces 960 layers to a few, without knowing what a layer is.
//
// The order is greedy, smallest next table first, which is common and not optimal. A step processes its table in blocks
// over the last dimension and carries along the sums of all factors known at each depth, so that the inner loop is a
// gather and an addition (core/vector_kernels.h).
//
// Limitation: no memory limits. They couple all nodes at a time and would make every table as wide as the model;
// callers that need them pass costs that include prices of bytes.

namespace shardplan {
namespace {

constexpr double kLargestTable = std::size_t{1} << 22;    // entries of one table
constexpr double kLargestStep = std::size_t{1} << 28;     // entries times classes of the eliminated node
constexpr std::size_t kAllTables = std::size_t{1} << 24;  // entries of all different tables together

}  // namespace

std::uint32_t Elimination::Partitions::intern(const std::vector<std::uint32_t>& class_of) {
  const std::uint32_t id = classes_.number(class_of);
  if (id == sizes_.size()) sizes_.push_back(*std::max_element(class_of.begin(), class_of.end()) + 1);
  return id;
}

std::uint32_t Elimination::Partitions::join(std::uint32_t a, std::uint32_t b) {
  if (a == b || sizes_[b] == 1 || sizes_[a] == classes_[a].size()) return a;
  if (sizes_[a] == 1 || sizes_[b] == classes_[b].size()) return b;
  const std::pair key = std::minmax(a, b);
  if (const auto at = joins_.find(key); at != joins_.end()) return at->second;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> known;
  std::vector<std::uint32_t> class_of;
  for (std::size_t value = 0; value < classes_[a].size(); ++value) {
    const std::pair pair(classes_[a][value], classes_[b][value]);
    class_of.push_back(known.try_emplace(pair, static_cast<std::uint32_t>(known.size())).first->second);
  }
  return joins_[key] = intern(class_of);
}

Elimination::Elimination(const CoreProblem& core) : core_(&core) {
  std::map<std::pair<std::uint32_t, bool>, std::uint32_t> of_matrix;  // never iterated over
  for (const CoreNeighbour& neighbour : core.neighbours) {
    const auto [at, is_new] = of_matrix.try_emplace({neighbour.matrix, neighbour.is_row}, 0);
    if (is_new) {
      const CoreMatrix& matrix = (*core.matrices)[neighbour.matrix];
      at->second = partitions_.intern(neighbour.is_row ? matrix.row_class : matrix.column_class);
    }
    slot_partition_.push_back(at->second);
  }
  const std::vector<std::uint32_t> nodes = order();
  if (is_possible_) plan_steps(nodes);
}

/// Smallest next table first, measured by the work to compute it.
std::vector<std::uint32_t> Elimination::order() {
  struct Link {
    std::uint32_t node, mine, theirs;  // what tables over both distinguish at this end and at the other end
  };
  const CoreProblem& core = *core_;
  const std::size_t count = core.num_nodes();
  std::vector<std::vector<Link>> links(count);  // by node
  for (std::uint32_t node = 0; node < count; ++node) {
    for (std::uint32_t slot = core.first_neighbour[node]; slot < core.first_neighbour[node + 1]; ++slot) {
      const CoreNeighbour& neighbour = core.neighbours[slot];
      const Link link{neighbour.node, slot_partition_[slot], slot_partition_[neighbour.reverse]};
      // What depends on one end alone couples nothing.
      if (partitions_.size(link.mine) > 1 && partitions_.size(link.theirs) > 1) links[node].push_back(link);
    }
  }
  std::vector<double> tables(count), sizes(count);
  std::vector<std::uint32_t> own(count, 0);  // what all tables of a node distinguish together
  const auto measure = [&](std::uint32_t node) {
    if (links[node].empty()) {
      tables[node] = sizes[node] = 1;
      return;
    }
    double entries = 1;
    own[node] = links[node].front().mine;
    for (const Link& link : links[node]) {
      entries *= static_cast<double>(partitions_.size(link.theirs));
      own[node] = partitions_.join(own[node], link.mine);
    }
    tables[node] = entries;
    sizes[node] = entries * static_cast<double>(partitions_.size(own[node]));
  };
  std::set<std::pair<double, std::uint32_t>> queue;
  for (std::uint32_t node = 0; node < count; ++node) {
    measure(node);
    queue.emplace(sizes[node], node);
  }
  std::set<std::vector<std::uint32_t>> known_looks;
  std::vector<std::uint32_t> nodes;
  while (!queue.empty()) {
    const std::uint32_t gone = queue.begin()->second;
    queue.erase(queue.begin());
    if (tables[gone] > kLargestTable || sizes[gone] > kLargestStep) {
      is_possible_ = false;
      return nodes;
    }
    largest_table_ = std::max(largest_table_, static_cast<std::size_t>(tables[gone]));
    // Steps of equal layers look alike; if they are equal, only one is computed.
    std::vector<std::uint32_t> looks{own[gone]};
    for (const Link& link : links[gone]) looks.push_back(link.theirs);
    std::sort(looks.begin() + 1, looks.end());
    if (known_looks.insert(std::move(looks)).second) work_ += sizes[gone];
    nodes.push_back(gone);
    const std::vector<Link> others = std::move(links[gone]);
    for (const Link& a : others) {
      std::vector<Link> joined;
      auto at = links[a.node].begin();
      const auto end = links[a.node].end();
      for (const Link& b : others) {
        for (; at != end && at->node < b.node; ++at) {
          if (at->node != gone) joined.push_back(*at);
        }
        const bool is_known = at != end && at->node == b.node;
        if (b.node == a.node) continue;
        joined.push_back({b.node, is_known ? partitions_.join(at->mine, a.theirs) : a.theirs,
                          is_known ? partitions_.join(at->theirs, b.theirs) : b.theirs});
        if (is_known) ++at;
      }
      for (; at != end; ++at) {
        if (at->node != gone) joined.push_back(*at);
      }
      links[a.node] = std::move(joined);
      queue.erase({sizes[a.node], a.node});
      measure(a.node);
      queue.emplace(sizes[a.node], a.node);
    }
  }
  return nodes;
}

void Elimination::plan_steps(const std::vector<std::uint32_t>& order) {
  const CoreProblem& core = *core_;
  std::vector<std::uint32_t> position(core.num_nodes());
  for (std::uint32_t at = 0; at < order.size(); ++at) position[order[at]] = at;
  std::vector<std::vector<Factor>> waiting(core.num_nodes());  // at the first node of the scope to be eliminated
  const auto place = [&](Factor factor) {
    const auto first =
        std::min_element(factor.scope.begin(), factor.scope.end(),
                         [&](const Dimension& a, const Dimension& b) { return position[a.node] < position[b.node]; });
    waiting[first->node].push_back(std::move(factor));
  };
  for (std::uint32_t node = 0; node < core.num_nodes(); ++node) {
    for (std::uint32_t slot = core.first_neighbour[node]; slot < core.first_neighbour[node + 1]; ++slot) {
      const CoreNeighbour& neighbour = core.neighbours[slot];
      if (!neighbour.is_row) continue;
      const Dimension row{node, slot_partition_[slot]};
      const Dimension column{neighbour.node, slot_partition_[neighbour.reverse]};
      if (partitions_.size(column.partition) == 1) {
        place({true, neighbour.matrix, {row}});
      } else if (partitions_.size(row.partition) == 1) {
        place({true, neighbour.matrix, {column}});
      } else {
        place({true, neighbour.matrix, {row, column}});
      }
    }
  }
  steps_.reserve(order.size());
  for (const std::uint32_t node : order) {
    Step step;
    step.gone = {node, partitions_.intern(std::vector<std::uint32_t>(core.num_values(node), 0))};
    step.factors = std::move(waiting[node]);
    for (const Factor& factor : step.factors) {
      for (const Dimension& dimension : factor.scope) {
        if (dimension.node == node) {
          step.gone.partition = partitions_.join(step.gone.partition, dimension.partition);
          continue;
        }
        const auto known = std::find_if(step.scope.begin(), step.scope.end(),
                                        [&](const Dimension& other) { return other.node == dimension.node; });
        if (known == step.scope.end()) {
          step.scope.push_back(dimension);
        } else {
          known->partition = partitions_.join(known->partition, dimension.partition);
        }
      }
    }
    // The largest dimension last, where loops are tightest.
    std::sort(step.scope.begin(), step.scope.end(), [&](const Dimension& a, const Dimension& b) {
      return std::pair(partitions_.size(a.partition), a.node) < std::pair(partitions_.size(b.partition), b.node);
    });
    if (!step.scope.empty()) place({false, static_cast<std::uint32_t>(steps_.size()), step.scope});
    steps_.push_back(std::move(step));
  }
}

/// The tables of one run.
class Elimination::Tables {
 public:
  Tables(const Elimination& plan, const std::vector<double>& costs) : plan_(plan), core_(*plan.core_), costs_(costs) {}

  std::optional<Outcome> run(WorkMeter& meter) {
    Outcome outcome;
    for (const Step& step : plan_.steps_) {
      const Made made = get(step, meter, outcome);
      if (meter.is_spent() || num_entries_ > kAllTables) return std::nullopt;
      table_of_.push_back(made.table);
      outcome.cost += made.least;
    }
    outcome.entries = num_entries_;
    outcome.choice.assign(core_.num_nodes(), 0);
    for (std::size_t at = plan_.steps_.size(); at-- > 0;) choose(plan_.steps_[at], outcome.choice);
    return outcome;
  }

 private:
  struct Made {
    std::uint32_t table = 0;
    double least = 0;  // what was subtracted from every entry
  };
  /// A factor as the step's loops see it: `offsets[d][k]` is the offset of class k of the step's dimension d in the
  /// table.
  struct Walk {
    const double* table = nullptr;
    std::vector<std::vector<std::uint32_t>> offsets;  // by dimension except the last; empty: does not depend on it
    std::vector<std::uint32_t> block;                 // classes of the eliminated node x classes of the last dimension
    std::size_t depth = 0;                            // dimensions before this one determine where the block is
  };

  /// The core's matrices come first, then the computed tables.
  std::uint32_t table_of(const Factor& factor) const {
    return factor.is_matrix ? factor.origin
                            : static_cast<std::uint32_t>(core_.matrices->size()) + table_of_[factor.origin];
  }
  const std::vector<double>& entries_of(const Factor& factor) const {
    return factor.is_matrix ? (*core_.matrices)[factor.origin].forward : tables_[table_of_[factor.origin]];
  }

  Made get(const Step& step, WorkMeter& meter, Outcome& outcome) {
    const std::vector<double> own(costs_.begin() + core_.first_value[step.gone.node],
                                  costs_.begin() + core_.first_value[step.gone.node + 1]);
    std::vector<std::uint32_t> key{own_costs_.number(own), step.gone.partition};
    for (const Dimension& dimension : step.scope) key.push_back(dimension.partition);
    for (const Factor& factor : step.factors) {
      key.push_back(table_of(factor));
      for (const Dimension& dimension : factor.scope) {
        key.push_back(place_of(step, dimension.node));
        key.push_back(dimension.partition);
      }
    }
    meter.spend(key.size() + own.size());
    const auto [at, is_new] = made_.try_emplace(std::move(key));
    if (is_new) {
      at->second = make(step, own, meter);
    } else {
      ++outcome.repeated_steps;
    }
    return at->second;
  }

  /// Position in the step's scope; the scope's size for the eliminated node.
  static std::uint32_t place_of(const Step& step, std::uint32_t node) {
    std::uint32_t place = 0;
    while (place < step.scope.size() && step.scope[place].node != node) ++place;
    return place;
  }

  /// The offset in a table of each class of a partition, for a coarser one.
  std::vector<std::uint32_t> offsets_of(std::uint32_t fine, std::uint32_t coarse, std::size_t stride) const {
    const Partitions& partitions = plan_.partitions_;
    std::vector<std::uint32_t> offsets(partitions.size(fine));
    for (std::size_t value = 0; value < partitions.class_of(fine).size(); ++value) {
      offsets[partitions.class_of(fine)[value]] =
          static_cast<std::uint32_t>(partitions.class_of(coarse)[value] * stride);
    }
    return offsets;
  }

  Walk walk_of(const Step& step, const Factor& factor) const {
    Walk walk;
    walk.table = entries_of(factor).data();
    const std::size_t outer = step.scope.empty() ? 0 : step.scope.size() - 1;
    walk.offsets.resize(outer);
    std::vector<std::uint32_t> rows,
        columns(step.scope.empty() ? 1 : plan_.partitions_.size(step.scope.back().partition));
    std::size_t stride = 1;
    for (std::size_t i = factor.scope.size(); i-- > 0;) {
      const Dimension& dimension = factor.scope[i];
      const std::size_t place = place_of(step, dimension.node);
      const std::uint32_t fine = place == step.scope.size() ? step.gone.partition : step.scope[place].partition;
      std::vector<std::uint32_t> offsets = offsets_of(fine, dimension.partition, stride);
      if (place == step.scope.size()) {
        rows = std::move(offsets);
      } else if (place == outer) {
        columns = std::move(offsets);
      } else {
        walk.depth = std::max(walk.depth, place + 1);
        walk.offsets[place] = std::move(offsets);
      }
      stride *= plan_.partitions_.size(dimension.partition);
    }
    for (const std::uint32_t row : rows) {
      for (const std::uint32_t column : columns) walk.block.push_back(row + column);
    }
    return walk;
  }

  Made make(const Step& step, std::span<const double> own, WorkMeter& meter) {
    const std::vector<std::uint32_t>& class_of = plan_.partitions_.class_of(step.gone.partition);
    const std::size_t rows = plan_.partitions_.size(step.gone.partition);
    const std::size_t columns = step.scope.empty() ? 1 : plan_.partitions_.size(step.scope.back().partition);
    std::vector<double> least(rows, kInfinity);
    for (std::size_t value = 0; value < own.size(); ++value) {
      least[class_of[value]] = std::min(least[class_of[value]], own[value]);
    }
    // sums[d]: the block's costs of the factors that are known once the first d dimensions are fixed.
    std::vector<std::vector<double>> sums(std::max<std::size_t>(step.scope.size(), 1),
                                          std::vector<double>(rows * columns));
    for (std::size_t row = 0; row < rows; ++row)
      std::fill_n(sums[0].begin() + static_cast<std::ptrdiff_t>(row * columns), columns, least[row]);
    std::vector<std::vector<Walk>> walks(sums.size());
    for (const Factor& factor : step.factors) {
      Walk walk = walk_of(step, factor);
      walks[walk.depth].push_back(std::move(walk));
    }
    std::size_t entries = columns;
    for (std::size_t i = 0; i + 1 < step.scope.size(); ++i) entries *= plan_.partitions_.size(step.scope[i].partition);
    std::vector<double> table;
    table.reserve(entries);
    std::vector<std::uint32_t> digits(sums.size() - 1, 0);
    const auto fill = [&](const auto& self, std::size_t depth) -> void {
      std::vector<double>& sum = sums[depth];
      if (depth > 0) sum = sums[depth - 1];
      for (const Walk& walk : walks[depth]) {
        std::size_t at = 0;
        for (std::size_t i = 0; i < depth; ++i) at += walk.offsets[i].empty() ? 0 : walk.offsets[i][digits[i]];
        gather_add(walk.table + at, walk.block.data(), sum.size(), sum.data());
      }
      meter.spend(sum.size() * (walks[depth].size() + 1));
      if (meter.is_spent()) return;
      if (depth == digits.size()) {
        table.resize(table.size() + columns);
        column_minima(sum.data(), rows, columns, table.data() + table.size() - columns);
        return;
      }
      const auto count = static_cast<std::uint32_t>(plan_.partitions_.size(step.scope[depth].partition));
      for (digits[depth] = 0; digits[depth] < count && !meter.is_spent(); ++digits[depth]) self(self, depth + 1);
    };
    fill(fill, 0);
    if (meter.is_spent()) return {};
    const double lowest = *std::min_element(table.begin(), table.end());
    for (double& entry : table) entry -= lowest;
    if (step.scope.empty()) return {0, lowest};
    const std::size_t before = tables_.size();
    const std::size_t size = table.size();
    const std::uint32_t id = tables_.number(std::move(table));
    if (tables_.size() > before) num_entries_ += size;
    return {id, lowest};
  }

  /// The cheapest value of a step's node once its neighbours' values are fixed.
  void choose(const Step& step, CoreChoice& choice) const {
    const std::uint32_t node = step.gone.node;
    std::vector<double> sums(costs_.begin() + core_.first_value[node], costs_.begin() + core_.first_value[node + 1]);
    for (const Factor& factor : step.factors) {
      std::size_t at = 0;
      std::size_t stride = 1;
      std::size_t own_stride = 0;
      const std::vector<std::uint32_t>* own_class = nullptr;
      for (std::size_t i = factor.scope.size(); i-- > 0;) {
        const Dimension& dimension = factor.scope[i];
        const std::vector<std::uint32_t>& class_of = plan_.partitions_.class_of(dimension.partition);
        if (dimension.node == node) {
          own_stride = stride;
          own_class = &class_of;
        } else {
          at += class_of[choice[dimension.node]] * stride;
        }
        stride *= plan_.partitions_.size(dimension.partition);
      }
      const std::vector<double>& table = entries_of(factor);
      for (std::size_t value = 0; value < sums.size(); ++value)
        sums[value] += table[at + (*own_class)[value] * own_stride];
    }
    choice[node] = static_cast<std::uint32_t>(std::min_element(sums.begin(), sums.end()) - sums.begin());
  }

  const Elimination& plan_;
  const CoreProblem& core_;
  const std::vector<double>& costs_;
  NumberedPool<std::vector<double>> tables_;
  std::vector<std::uint32_t> table_of_;  // by step: number of its table
  std::size_t num_entries_ = 0;          // of all distinct tables
  NumberedPool<std::vector<double>> own_costs_;
  std::map<std::vector<std::uint32_t>, Made> made_;  // never iterated over
};

std::optional<Elimination::Outcome> Elimination::run(const std::vector<double>& costs, WorkMeter& meter) const {
  return Tables(*this, costs).run(meter);
}

}  // namespace shardplan
