#include "program/local_program.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>

#include "operators/families/communication.h"

// Simulates what the ranks would do by themselves: each proceeds until it reaches a communication; when all members
// of a group are at one over that group, they execute it together. A rank is at one operator at a time, so one pass
// over the operators of all ranks suffices, and an error is known when no rank can proceed.

namespace shardplan {
namespace {

constexpr std::string_view kV2 = "NeighborExchangeV2";

class LocalProgramBuilder {
 public:
  explicit LocalProgramBuilder(std::vector<const OperatorGraph*> graphs) : next_(graphs.size(), 0) {
    program_.graphs = std::move(graphs);
  }

  LocalProgram run() {
    std::deque<std::int64_t> ready;
    for (std::size_t rank = 0; rank < next_.size(); ++rank) ready.push_back(static_cast<std::int64_t>(rank));
    while (!ready.empty()) {
      const std::int64_t rank = ready.front();
      ready.pop_front();
      const std::optional<LocalOperator> communication = advance(rank);
      if (!communication) continue;
      const std::vector<std::int64_t> group = group_ranks(operation(*communication));
      std::vector<LocalOperator>& waiting = waiting_[group];
      waiting.push_back(*communication);
      if (waiting.size() < group.size()) continue;
      LocalStep step = in_order(group, waiting);
      waiting_.erase(group);
      check(step);
      program_.steps.push_back(std::move(step));
      for (const std::int64_t member : group) {
        ++next_[static_cast<std::size_t>(member)];
        ready.push_back(member);
      }
    }
    if (!waiting_.empty()) report_waiting();
    return std::move(program_);
  }

 private:
  const OperatorGraph& graph(std::int64_t rank) const { return *program_.graphs[static_cast<std::size_t>(rank)]; }
  const Operation& operation(const LocalOperator& at) const { return graph(at.rank).operation(at.op); }
  const GraphOperator& op(const LocalOperator& at) const { return graph(at.rank).operators()[at.op]; }
  /// For an exchange of gradients, which has no line in the file: the place of its parameter.
  const SourcePlace& place(const LocalOperator& at) const {
    const GraphOperator& named = op(at);
    return named.parameter ? graph(at.rank).tensor(*named.parameter).place : named.place;
  }

  /// Runs a rank up to its next communication; nothing if it ends.
  std::optional<LocalOperator> advance(std::int64_t rank) {
    const auto& operators = graph(rank).operators();
    std::size_t& next = next_[static_cast<std::size_t>(rank)];
    for (; next < operators.size(); ++next) {
      const LocalOperator at{rank, OperatorId(next)};
      if (is_communication(*operation(at).type)) return at;
      program_.steps.push_back({at});
    }
    return std::nullopt;
  }

  LocalStep in_order(const std::vector<std::int64_t>& group, const std::vector<LocalOperator>& waiting) const {
    LocalStep step;
    for (const std::int64_t rank : group) {
      step.push_back(
          *std::find_if(waiting.begin(), waiting.end(), [&](const LocalOperator& at) { return at.rank == rank; }));
    }
    return step;
  }

  std::string text(const LocalOperator& at) const {
    const std::string& type = operation(at).type->name;
    const std::vector<std::int64_t> group = group_ranks(operation(at));
    const std::string ranks = std::is_sorted(group.begin(), group.end())
                                  ? ranks_text(group)
                                  : fmt::format("{} in this order", fmt::join(group, ", "));
    return fmt::format("{} ({} over ranks {})", op(at).name, type, ranks);
  }

  void check(const LocalStep& step) const {
    const Operation& first = operation(step[0]);
    for (const LocalOperator& at : step) {
      const Operation& other = operation(at);
      if (other.type != first.type) {
        throw InputError(place(at), "{}: rank {} is in {} while rank {} is in {}", op(at).name, at.rank, text(at),
                         step[0].rank, text(step[0]));
      }
      const bool is_exchange = first.type->name.starts_with("NeighborExchange");
      const bool is_equal = is_exchange || (other.attributes == first.attributes && other.operands == first.operands);
      if (!is_equal) {
        throw InputError(place(at), "{}: {} of rank {} is {}, of rank {} {}", op(at).name, first.type->name,
                         step[0].rank, description(first), at.rank, description(other));
      }
    }
    if (first.type->name.starts_with("NeighborExchange")) (void)neighbour_sends(program_, step);
  }

  static std::string description(const Operation& operation) {
    std::string text;
    for (const TensorType& operand : operation.operands) {
      text += fmt::format("{} {}", to_string(operand.dtype), to_string(operand.shape));
    }
    for (const auto& [name, value] : operation.attributes) {
      if (name != "group" && name != "rank_size") text += fmt::format(", {} {}", name, to_string(value));
    }
    return text;
  }

  /// The reason why the ranks in `missing` do not reach the communication in which others wait.
  std::string where(const std::vector<std::int64_t>& missing) const {
    std::vector<std::string> parts;
    std::vector<std::int64_t> ended;
    for (const std::int64_t rank : missing) {
      const bool exists = rank < static_cast<std::int64_t>(next_.size());
      if (!exists || next_[static_cast<std::size_t>(rank)] == graph(rank).operators().size()) {
        ended.push_back(rank);
        continue;
      }
      if (parts.size() >= 3) continue;
      parts.push_back(
          fmt::format("rank {} waits in {}", rank, text({rank, OperatorId(next_[static_cast<std::size_t>(rank)])})));
    }
    if (!ended.empty()) {
      parts.insert(parts.begin(), fmt::format("rank{} {} end{} without it", ended.size() == 1 ? "" : "s",
                                              ranks_text(ended), ended.size() == 1 ? "s" : ""));
    }
    return fmt::format("{}", fmt::join(parts, "; "));
  }

  [[noreturn]] void report_waiting() const {
    std::vector<Diagnostic> faults;
    for (const auto& [group, waiting] : waiting_) {
      std::vector<std::int64_t> here;
      for (const LocalOperator& at : waiting) here.push_back(at.rank);
      std::sort(here.begin(), here.end());
      std::vector<std::int64_t> missing;
      for (const std::int64_t rank : group) {
        if (!std::binary_search(here.begin(), here.end(), rank)) missing.push_back(rank);
      }
      const LocalOperator& first = waiting.front();
      faults.push_back(
          {place(first),
           fmt::format("{}: rank{} {} wait{} in {} for ever: {}", op(first).name, here.size() == 1 ? "" : "s",
                       ranks_text(here), here.size() == 1 ? "s" : "", text(first), where(missing)),
           "all ranks of a group run its communications in the same order"});
    }
    throw InputError(std::move(faults));
  }

  LocalProgram program_;
  std::vector<std::size_t> next_;                                            // by rank: the operator it is at
  std::map<std::vector<std::int64_t>, std::vector<LocalOperator>> waiting_;  // by group
};

}  // namespace

LocalProgram local_program(std::vector<const OperatorGraph*> graphs) {
  return LocalProgramBuilder(std::move(graphs)).run();
}

std::vector<NeighbourSend> neighbour_sends(const LocalProgram& program, const LocalStep& step) {
  const auto operation = [&](std::size_t member) -> const Operation& {
    return program.graphs[static_cast<std::size_t>(step[member].rank)]->operation(step[member].op);
  };
  const auto fail = [&](std::size_t member, const std::string& message) {
    const LocalOperator& at = step[member];
    const GraphOperator& op = program.graphs[static_cast<std::size_t>(at.rank)]->operators()[at.op];
    throw InputError(op.place, "{}: {}", op.name, message);
  };
  std::map<std::int64_t, std::size_t> member_of;
  for (std::size_t i = 0; i < step.size(); ++i) member_of[step[i].rank] = i;
  const bool is_v2 = operation(0).type->name.starts_with(kV2);

  // What each rank receives, by the sending rank and, for V2, the neighbour.
  using Key = std::tuple<std::size_t, std::size_t, std::size_t>;  // from, to, neighbour of the receiver
  std::map<Key, std::deque<std::size_t>> expected;
  for (std::size_t i = 0; i < step.size(); ++i) {
    const std::vector<std::int64_t>& ranks = operation(i).list("recv_rank_ids");
    for (std::size_t k = 0; k < ranks.size(); ++k) {
      if (ranks[k] < 0) continue;
      const auto from = member_of.find(ranks[k]);
      if (from == member_of.end()) {
        fail(i, fmt::format("recv_rank_ids: rank {} receives from rank {}, which is not in the group", step[i].rank,
                            ranks[k]));
      }
      expected[{from->second, i, is_v2 ? k : 0}].push_back(k);
    }
  }
  std::vector<NeighbourSend> sends;
  for (std::size_t i = 0; i < step.size(); ++i) {
    const std::vector<std::int64_t>& ranks = operation(i).list("send_rank_ids");
    for (std::size_t k = 0; k < ranks.size(); ++k) {
      if (ranks[k] < 0) continue;
      const auto to = member_of.find(ranks[k]);
      if (to == member_of.end()) {
        fail(i,
             fmt::format("send_rank_ids: rank {} sends to rank {}, which is not in the group", step[i].rank, ranks[k]));
      }
      const auto found = expected.find({i, to->second, is_v2 ? opposite(k) : 0});
      if (found == expected.end() || found->second.empty()) {
        fail(i, fmt::format("send_rank_ids: rank {} sends to rank {}, which receives nothing {}from it", step[i].rank,
                            ranks[k], is_v2 ? "on that side " : ""));
      }
      const NeighbourSend send{i, k, to->second, found->second.front()};
      found->second.pop_front();
      const Operation& from = operation(send.from);
      const Operation& into = operation(send.to);
      if (is_v2) {
        const Patch sent = sent_patch(from, send.sent);
        const Patch received = received_patch(into, send.received);
        if (sent.rows != received.rows || sent.columns != received.columns) {
          fail(i, fmt::format("rank {} sends {} x {} to rank {}, which expects {} x {}", step[i].rank, sent.rows,
                              sent.columns, ranks[k], received.rows, received.columns));
        }
      } else if (!(from.operands[send.sent] == into.results[send.received])) {
        const TensorType& sent = from.operands[send.sent];
        const TensorType& received = into.results[send.received];
        fail(i, fmt::format("rank {} sends {} {} to rank {}, which expects {} {}", step[i].rank, to_string(sent.dtype),
                            to_string(sent.shape), ranks[k], to_string(received.dtype), to_string(received.shape)));
      }
      sends.push_back(send);
    }
  }
  for (const auto& [key, results] : expected) {
    if (results.empty()) continue;
    const auto& [from, to, side] = key;
    fail(to, fmt::format("recv_rank_ids: rank {} waits for rank {}, which sends nothing {}to it", step[to].rank,
                         step[from].rank, is_v2 ? "on that side " : ""));
  }
  if (is_v2) {
    for (std::size_t i = 0; i < step.size(); ++i) {
      const TensorType& a = operation(0).operands[0];
      const TensorType& b = operation(i).operands[0];
      if (a.dtype == b.dtype && a.shape[0] == b.shape[0] && a.shape[1] == b.shape[1]) continue;
      fail(i, fmt::format("rank {} has {} {}, rank {} {} {}", step[0].rank, to_string(a.dtype), to_string(a.shape),
                          step[i].rank, to_string(b.dtype), to_string(b.shape)));
    }
  }
  return sends;
}

std::string ranks_text(std::vector<std::int64_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  const bool is_range = ranks.size() > 2 && ranks.back() - ranks.front() + 1 == static_cast<std::int64_t>(ranks.size());
  if (is_range) return fmt::format("{} to {}", ranks.front(), ranks.back());
  if (ranks.size() == 1) return fmt::format("{}", ranks[0]);
  return fmt::format("{} and {}", fmt::join(ranks.begin(), ranks.end() - 1, ", "), ranks.back());
}

}  // namespace shardplan
