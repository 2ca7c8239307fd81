#include "simulator/local/exchange.h"

#include <algorithm>

#include "base/error.h"
#include "operators/building/rule_builder.h"
#include "operators/families/communication.h"

namespace shardplan {
namespace {

/// A box of a row-major tensor.
struct Region {
  Shape shape;  // of the tensor
  Shape begin;
  Shape size;
};

/// Calls visit(offset in a, offset in b) for each element of two boxes of equal size.
template <class Visit>
void for_each_pair(const Region& a, const Region& b, const Visit& visit) {
  SHARDPLAN_CHECK(a.size == b.size);
  if (std::find(a.size.begin(), a.size.end(), 0) != a.size.end()) return;
  Shape at(a.size.size(), 0);
  const auto offset = [&](const Region& region) {
    std::int64_t sum = 0;
    for (std::size_t d = 0; d < at.size(); ++d) sum = sum * region.shape[d] + region.begin[d] + at[d];
    return static_cast<std::size_t>(sum);
  };
  while (true) {
    visit(offset(a), offset(b));
    std::size_t d = at.size();
    while (d > 0 && ++at[d - 1] == a.size[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

void copy(const TensorValues& from, const Region& source, TensorValues& to, const Region& target) {
  for_each_pair(source, target, [&](std::size_t a, std::size_t b) { to[b] = from[a]; });
}
void add(const TensorValues& from, const Region& source, TensorValues& to, const Region& target) {
  for_each_pair(source, target, [&](std::size_t a, std::size_t b) { to[b] += from[a]; });
}

Region whole_of(const Shape& shape) { return {shape, Shape(shape.size(), 0), shape}; }

/// The i-th of equal pieces along a dimension.
Region piece(const Shape& shape, std::size_t dimension, std::size_t i, std::int64_t count) {
  Region region = whole_of(shape);
  region.size[dimension] /= count;
  region.begin[dimension] = static_cast<std::int64_t>(i) * region.size[dimension];
  return region;
}

Region patch_of(const Shape& shape, const Patch& patch) {
  return {shape, {0, 0, patch.row, patch.column}, {shape[0], shape[1], patch.rows, patch.columns}};
}

void make_zero(ExchangeMember& member) {
  for (const TensorType& type : member.operation->results) {
    member.results.emplace_back(static_cast<std::size_t>(num_elements(type.shape)), 0.0);
  }
}

double combined(const std::string& op, double a, double b) {
  if (op == "sum") return a + b;
  if (op == "prod") return a * b;
  return op == "max" ? std::max(a, b) : std::min(a, b);
}

TensorValues reduced(std::span<const ExchangeMember> members, const std::string& op, std::size_t operand = 0) {
  TensorValues all = *members[0].operands[operand];
  for (const ExchangeMember& member : members.subspan(1)) {
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = combined(op, all[i], (*member.operands[operand])[i]);
  }
  return all;
}

std::size_t root_of(const Operation& operation) {
  const std::vector<std::int64_t> group = group_ranks(operation);
  const auto root = std::find(group.begin(), group.end(), operation.integer("root_rank"));
  return static_cast<std::size_t>(root - group.begin());
}

void all_to_all(std::span<ExchangeMember> members) {
  for (std::size_t to = 0; to < members.size(); ++to) {
    const Operation& operation = *members[to].operation;
    const Shape& x = operation.operands[0].shape;
    const Shape& y = operation.results[0].shape;
    const auto count = static_cast<std::int64_t>(members.size());
    const std::size_t split = normal_axis(operation, operation.integer("split_dim"), x.size());
    const std::size_t concat = normal_axis(operation, operation.integer("concat_dim"), x.size());
    for (std::size_t from = 0; from < members.size(); ++from) {
      copy(*members[from].operands[0], piece(x, split, to, count), members[to].results[0],
           piece(y, concat, from, count));
    }
  }
}

void exchange_v2(std::span<ExchangeMember> members, std::span<const NeighbourSend> sends) {
  for (ExchangeMember& member : members) {
    const Operation& operation = *member.operation;
    const Shape& x = operation.operands[0].shape;
    const Shape& y = operation.results[0].shape;
    copy(*member.operands[0], whole_of(x), member.results[0], patch_of(y, kept_patch(operation)));
  }
  for (const NeighbourSend& send : sends) {
    const Operation& from = *members[send.from].operation;
    const Operation& to = *members[send.to].operation;
    copy(*members[send.from].operands[0], patch_of(from.operands[0].shape, sent_patch(from, send.sent)),
         members[send.to].results[0], patch_of(to.results[0].shape, received_patch(to, send.received)));
  }
}

/// The gradient: passes a rank's gradient of what it received back to the part of x that was sent.
void exchange_v2_backwards(std::span<ExchangeMember> members, std::span<const NeighbourSend> sends) {
  for (ExchangeMember& member : members) {
    const Operation& operation = *member.operation;
    const Shape& dy = operation.operands[0].shape;
    const Shape& dx = operation.results[0].shape;
    copy(*member.operands[0], patch_of(dy, kept_patch(operation)), member.results[0], whole_of(dx));
  }
  for (const NeighbourSend& send : sends) {
    const Operation& from = *members[send.from].operation;
    const Operation& to = *members[send.to].operation;
    add(*members[send.to].operands[0], patch_of(to.operands[0].shape, received_patch(to, send.received)),
        members[send.from].results[0], patch_of(from.results[0].shape, sent_patch(from, send.sent)));
  }
}

}  // namespace

void run_exchange(std::span<ExchangeMember> members, std::span<const NeighbourSend> sends) {
  for (ExchangeMember& member : members) make_zero(member);
  const Operation& first = *members[0].operation;
  const std::string& name = first.type->name;
  if (name == "AllReduce" || name == "FusedAllReduce") {
    for (std::size_t i = 0; i < first.operands.size(); ++i) {
      const TensorValues all = reduced(members, first.text("reduce"), i);
      for (ExchangeMember& member : members) member.results[i] = all;
    }
  } else if (name == "ReduceScatter") {
    const TensorValues all = reduced(members, first.text("reduce"));
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::size_t size = members[i].results[0].size();
      std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(i * size), size, members[i].results[0].begin());
    }
  } else if (name == "AllGather") {
    TensorValues all;
    for (const ExchangeMember& member : members) {
      all.insert(all.end(), member.operands[0]->begin(), member.operands[0]->end());
    }
    for (ExchangeMember& member : members) member.results[0] = all;
  } else if (name == "Broadcast") {
    const TensorValues& root = *members[root_of(first)].operands[0];
    for (ExchangeMember& member : members) member.results[0] = root;
  } else if (name == "BroadcastGrad") {
    members[root_of(first)].results[0] = reduced(members, "sum");
  } else if (name == "AlltoAll") {
    all_to_all(members);
  } else if (name == "NeighborExchange") {
    for (const NeighbourSend& send : sends) {
      members[send.to].results[send.received] = *members[send.from].operands[send.sent];
    }
  } else if (name == "NeighborExchangeV2") {
    exchange_v2(members, sends);
  } else {
    SHARDPLAN_CHECK(name == "NeighborExchangeV2Grad");
    exchange_v2_backwards(members, sends);
  }
}

}  // namespace shardplan
