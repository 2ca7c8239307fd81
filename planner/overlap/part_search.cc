// The parts of a problem with ties (parts), then what is found in each of them (PartSearch).
#include "planner/overlap/part_search.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/side_by_side.h"
#include "solver/part_problem.h"
#include "solver/searches/search_list.h"
#include "solver/tied_problem.h"

namespace shardplan {
namespace {

constexpr std::uint64_t kPartWork = 10'000'000;
constexpr double kPartGap = 1e-4;
constexpr std::size_t kPartsAtOnce = 4;  // threads
/// How many surroundings are searched, and how many nodes they have.
constexpr std::size_t kMostCenters = 16, kSizes[] = {8, 24};
/// Passes are searched if the whole problem has at most this many entries: larger ones take longer than everything
/// else, and were never the better parts.
constexpr std::size_t kEntriesOfPasses = 2'000'000;

/// What the nodes of a part may belong to.
enum Role : unsigned { kForward = 1, kBackward = 2, kStored = 4 };
constexpr unsigned kRolesOfParts[] = {kForward,          kBackward, kStored, kForward | kBackward, kBackward | kStored,
                                      kForward | kStored};

/// Communication of a choice, between two nodes or of one (named twice).
struct Communication {
  NodeId from, to;
  std::optional<MatrixId> matrix;  // of an edge
  std::int64_t cost = 0;
};

struct SearchedPart {
  std::vector<NodeId> nodes;             // ascending
  std::optional<Communication> without;  // must take less time than it does
};

/// The parts of a choice of the problem.
class Parts {
 public:
  Parts(const SearchedModel& model, const StrategyProblem& problem, const IdVector<NodeId, NodeId>& decides)
      : model_(model), problem_(problem), decides_(decides), neighbours_(problem.nodes.size()) {
    for (const ProblemEdge& edge : problem.edges) {
      neighbours_[edge.from].push_back(edge.to);
      neighbours_[edge.to].push_back(edge.from);
    }
  }

  std::vector<SearchedPart> of(const Choice& choice) const {
    std::set<std::vector<NodeId>> plain;
    if (num_entries(problem_) <= kEntriesOfPasses) plain = of_roles();
    const std::vector<Communication> centers = most_communication(choice);
    std::vector<SearchedPart> parts;
    for (const Communication& center : centers) {
      for (const std::size_t size : kSizes) {
        std::vector<NodeId> part = around(center, size);
        parts.push_back({part, center});
        plain.insert(std::move(part));
      }
    }
    for (const std::vector<NodeId>& nodes : plain) parts.push_back({nodes, {}});
    return parts;
  }

 private:
  std::set<std::vector<NodeId>> of_roles() const {
    const IdVector<NodeId, unsigned> roles = this->roles();
    std::set<std::vector<NodeId>> parts;
    for (const unsigned wanted : kRolesOfParts) {
      std::vector<NodeId> part;
      for (const NodeId node : roles.ids()) {
        if ((roles[node] & ~wanted) == 0) part.push_back(node);
      }
      if (!part.empty() && part.size() < roles.size()) parts.insert(std::move(part));
    }
    return parts;
  }

  IdVector<NodeId, unsigned> roles() const {
    IdVector<NodeId, unsigned> roles(problem_.nodes.size(), 0);
    for (const OperatorId op : model_.graph.operators().ids()) {
      const Pass pass = model_.graph.operators()[op].pass;
      roles[decides_[model_.problem.operator_nodes[op]]] |= pass == Pass::kForward    ? kForward
                                                            : pass == Pass::kBackward ? kBackward
                                                                                      : kStored;
    }
    for (const VersionId id : model_.versions.all.ids()) {
      if (const auto node = model_.problem.version_nodes[id]) roles[decides_[*node]] |= role(model_.versions.all[id]);
    }
    for (const ModelProblem::Copy& copy : model_.problem.copies) {
      roles[decides_[copy.node]] |= roles[decides_[copy.taker]];
    }
    return roles;
  }
  unsigned role(const TensorVersion& version) const {
    const GraphTensor& tensor = model_.graph.tensor(version.tensor);
    const bool is_stored = tensor.kind == TensorKind::kParameter || tensor.kind == TensorKind::kState;
    if (is_stored) return version.kind == TensorVersion::Kind::kStored ? kStored : kForward | kBackward;
    return tensor.gradient_of ? kBackward : kForward;
  }

  std::vector<Communication> most_communication(const Choice& choice) const {
    std::vector<Communication> all;
    for (const NodeId node : problem_.nodes.ids()) {
      const StrategyTable& table = problem_.strategy_tables[problem_.nodes[node].strategies];
      all.push_back({node, node, {}, table.costs[choice.strategy[node].value()].communication});
    }
    for (const ProblemEdge& edge : problem_.edges) {
      const CostMatrix& matrix = problem_.matrices[edge.matrix];
      const std::int64_t cost = matrix.at(choice.strategy[edge.from].value(), choice.strategy[edge.to].value());
      all.push_back({edge.from, edge.to, edge.matrix, cost});
    }
    std::erase_if(all, [](const Communication& one) { return one.cost == 0; });
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.cost > b.cost; });
    if (all.size() > kMostCenters) all.resize(kMostCenters);
    return all;
  }

  /// The first `size` nodes by their distance.
  std::vector<NodeId> around(const Communication& center, std::size_t size) const {
    std::vector<NodeId> part{center.from};
    std::set<NodeId> seen{center.from};
    const auto add = [&](NodeId node) {
      if (part.size() < size && seen.insert(node).second) part.push_back(node);
    };
    add(center.to);
    for (std::size_t i = 0; i < part.size() && part.size() < size; ++i) {
      for (const NodeId next : neighbours_[part[i]]) add(next);
    }
    std::sort(part.begin(), part.end());
    return part;
  }

  const SearchedModel& model_;
  const StrategyProblem& problem_;
  const IdVector<NodeId, NodeId>& decides_;  // by node of the model's problem
  IdVector<NodeId, std::vector<NodeId>> neighbours_;
};

/// Forbids all strategies of a part with which this communication of the whole problem takes as long as it does.
void forbid(PartProblem& part, const StrategyProblem& whole, const Communication& what) {
  const auto number = [&](NodeId node) {
    const auto at = std::lower_bound(part.nodes.begin(), part.nodes.end(), node);
    return NodeId(static_cast<std::size_t>(at - part.nodes.begin()));
  };
  if (!what.matrix) {
    std::vector<Cost>& costs = part.problem.strategy_tables[part.problem.nodes[number(what.from)].strategies].costs;
    const std::vector<Cost>& known = whole.strategy_tables[whole.nodes[what.from].strategies].costs;
    for (std::size_t s = 0; s < costs.size(); ++s) {
      if (known[s].communication >= what.cost) costs[s].communication = kForbidden;
    }
    return;
  }
  CostMatrix matrix = whole.matrices[*what.matrix];
  for (std::int64_t& cost : matrix.costs) cost = cost >= what.cost ? kForbidden : 0;
  const MatrixId forbids = part.problem.matrices.push_back(std::move(matrix));
  part.problem.edges.push_back({number(what.from), number(what.to), forbids});
}

}  // namespace

PartSearch::PartSearch(const SearchedModel& model, LevelOptions options) : model_(model), options_(std::move(options)) {
  options_.start.reset();
  options_.wants_bound = false;
  options_.limits.work = std::min(kPartWork, options_.limits.work > 0 ? options_.limits.work : kPartWork);
  options_.limits.gap = kPartGap;
  options_.limits.progress = {};
}

std::vector<Choice> PartSearch::around(const Choice& center, const StrategyProblem& estimated) const {
  std::optional<TiedProblem> tied;
  if (model_.ties) tied = tied_problem(estimated, *model_.ties);
  const StrategyProblem& searched = tied ? tied->problem : estimated;
  const Choice known = tied ? tied->tied(center) : center;
  if (tied && tied->expanded(known) != center) return {};
  IdVector<NodeId, NodeId> decides;
  for (const NodeId node : estimated.nodes.ids()) decides.push_back(tied ? tied->node[node] : node);
  const std::vector<SearchedPart> parts = Parts(model_, searched, decides).of(known);
  const std::unique_ptr<Search> search = make_search(kDefaultSearch);
  std::vector<std::optional<Choice>> found(parts.size());
  side_by_side(num_processors(kPartsAtOnce), parts.size(), [&](std::size_t, std::size_t i) {
    std::optional<PartProblem> part = part_problem(searched, known, parts[i].nodes);
    if (!part) return;
    LevelOptions options = options_;
    if (parts[i].without) {
      forbid(*part, searched, *parts[i].without);
    } else {
      options.start = part->start();
    }
    const LevelResult best = search_level(part->problem, *search, options);
    if (best.choice) found[i] = part->expanded(*best.choice);
  });
  std::vector<Choice> choices;
  for (const std::optional<Choice>& choice : found) {
    if (!choice || *choice == known) continue;
    Choice whole = tied ? tied->expanded(*choice) : *choice;
    if (std::find(choices.begin(), choices.end(), whole) == choices.end()) choices.push_back(std::move(whole));
  }
  return choices;
}

}  // namespace shardplan
