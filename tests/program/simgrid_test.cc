// `overlapped_timeline` compared with another simulator: SimGrid (Casanova, Giersch, Legrand, Quinson, Suter, JPDC
// 74(10), 2014), which gets the rules of program/overlapped_timeline.h as a graph of activities. A device is a host of
// speed 1 and every level of links a link of bandwidth 1, so a kernel of n picoseconds is n flops, and a collective of
// n is a message of n bytes, which occupies the links of all its levels at once. The order is given by dependencies
// alone:
//
//   kernel       after what makes its inputs, and after the kernel before it in the sequence
//   collective   after what makes its inputs, after the kernel before it, and on each of its levels after the one before it
//   bucket       one message after what makes all members' inputs
//   no time      views: after what makes their inputs, on a host of their own
//
// The loop of micro-batches is unrolled. A product beside a gather in pieces is split where it needs the last of them,
// as the header says. SimGrid then computes when everything begins and ends; at full speed beside each other (shares of
// speed cannot be expressed by such a graph) both must agree to the picosecond.
#include <gtest/gtest.h>
#include <xbt/log.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/random.h"
#include "model/read_model.h"
#include "planner/model_planner.h"
#include "program/instruction_table.h"
#include "program/last_run.h"
#include "program/overlapped_timeline.h"
#include "tests/support/random_sketch.h"

namespace shardplan {
namespace {

using Span = OverlappedTimeline::Span;
using simgrid::s4u::Activity;
using simgrid::s4u::ActivityPtr;

constexpr std::uint32_t kLevels = 5;

/// There is one SimGrid engine per process, with one platform: a device, a host for what takes no time, and for every
/// set of levels a sender and a receiver with their links between them.
class Platform {
 public:
  static Platform& get() {
    static Platform platform;
    return platform;
  }
  /// Runs everything that was started; returns when it was over.
  Picoseconds run() {
    engine_.run();
    return now();
  }
  static Picoseconds now() { return static_cast<Picoseconds>(simgrid::s4u::Engine::get_clock()); }

  ActivityPtr kernel(Picoseconds time) const { return execution(device_, time); }
  ActivityPtr view() const { return execution(views_, 0); }
  ActivityPtr message(Picoseconds time, std::uint32_t links) const {
    if (time == 0) return view();
    if (links == 0 || links >= senders_.size()) throw std::logic_error("no such links");
    simgrid::s4u::CommPtr message = simgrid::s4u::Comm::sendto_init(senders_[links], receivers_[links]);
    message->set_payload_size(static_cast<std::uint64_t>(time));
    return message;
  }

 private:
  Platform() : engine_("replay") {
    using simgrid::s4u::Engine;
    xbt_log_control_set("root.thres:warning");
    // Messages get the full bandwidth of their links, with no other delays.
    Engine::set_config("network/model:CM02");
    Engine::set_config("network/bandwidth-factor:1");
    Engine::set_config("network/latency-factor:0");
    Engine::set_config("network/weight-S:0");
    Engine::set_config("network/crosstraffic:false");
    simgrid::s4u::NetZone* zone = simgrid::s4u::create_full_zone("cluster");
    device_ = zone->create_host("device", 1.0);
    views_ = zone->create_host("views", 1.0);
    std::vector<const simgrid::s4u::Link*> levels;
    for (std::uint32_t level = 0; level < kLevels; ++level) {
      levels.push_back(zone->create_link("level " + std::to_string(level), 1.0)->set_latency(0.0));
    }
    senders_.resize(1u << kLevels);
    receivers_.resize(1u << kLevels);
    for (std::uint32_t links = 1; links < senders_.size(); ++links) {
      senders_[links] = zone->create_host("sender " + std::to_string(links), 1.0);
      receivers_[links] = zone->create_host("receiver " + std::to_string(links), 1.0);
      std::vector<simgrid::s4u::LinkInRoute> route;
      for (std::uint32_t level = 0; level < kLevels; ++level) {
        if ((links >> level & 1) != 0) route.emplace_back(levels[level]);
      }
      zone->add_route(senders_[links]->get_netpoint(), receivers_[links]->get_netpoint(), nullptr, nullptr, route,
                      false);
    }
    zone->seal();
  }
  static ActivityPtr execution(simgrid::s4u::Host* host, Picoseconds time) {
    simgrid::s4u::ExecPtr execution = simgrid::s4u::Exec::init();
    execution->set_flops_amount(static_cast<double>(time));
    execution->set_host(host);
    return execution;
  }

  simgrid::s4u::Engine engine_;
  simgrid::s4u::Host* device_ = nullptr;
  simgrid::s4u::Host* views_ = nullptr;
  std::vector<simgrid::s4u::Host*> senders_, receivers_;  // by set of levels
};

/// A program as a graph of activities.
class Replay {
 public:
  explicit Replay(const ParallelProgram& program)
      : program_(program), table_(program), order_(table_), made_by_(program.values.size()), levels_(kLevels) {
    first_.resize(order_.size(), nullptr);
    last_.resize(order_.size(), nullptr);
  }

  OverlappedTimeline run() {
    const std::vector<LastRunCollective> early = issued_in_last_run(order_);
    const std::int64_t runs = table_.loop() > 0 ? program_.micro_batches : 0;
    for (std::int64_t number = 0; number < runs; ++number) {
      issue(0, table_.loop(), number + 1 == runs ? early : std::vector<LastRunCollective>{});
    }
    issue(early.empty() ? table_.loop() : early.back().end, order_.size(), {});
    const Picoseconds began = Platform::now();
    for (const ActivityPtr& activity : activities_) activity->vetoable_start();
    OverlappedTimeline result;
    result.end = Platform::get().run() - began;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const auto at = [&](double time) { return static_cast<Picoseconds>(time) - began; };
      result.spans.push_back({at(first_[i]->get_start_time()), at(last_[i]->get_finish_time())});
    }
    return result;
  }

 private:
  using Set = std::set<Activity*>;

  void issue(std::size_t begin, std::size_t end, const std::vector<LastRunCollective>& early) {
    std::size_t next_early = 0;
    for (std::size_t i = begin; i < end;) {
      const InstructionTable::Row& row = order_[i];
      std::size_t next = i + 1;
      if (row.is_communication) {
        next = order_.end_of_bucket(i);
        communicate(i, next, {kernel_});
      } else if (row.is_timed_kernel()) {
        if (order_.scatters_pieces_behind(i)) ++next;
        compute(i);
      } else {
        const ActivityPtr view = add(Platform::get().view(), makers(i));
        made(i, view, view);
      }
      i = next;
      for (; next_early < early.size() && early[next_early].after <= i; ++next_early) {
        communicate(early[next_early].begin, early[next_early].end, {kernel_});
      }
    }
  }

  /// A product beside collectives in pieces is split where the first piece of its result is done, and where it needs
  /// the last piece of each gather. Without such collectives it is not split.
  void compute(std::size_t i) {
    const Picoseconds time = order_[i].time;
    const bool scatters = order_.scatters_pieces_behind(i);
    std::map<Picoseconds, Set, std::greater<>> gathers;  // by the rest of the product that needs their last pieces
    Set before{kernel_};
    for (const ValueId input : order_.inputs(i)) {
      const auto gather = gathers_in_pieces_.find(input);
      if (order_[i].is_product && gather != gathers_in_pieces_.end()) {
        before.insert(gather->second.begin);
        gathers[time / gather->second.pieces].insert(made_by_[input].begin(), made_by_[input].end());
      } else {
        before.insert(made_by_[input].begin(), made_by_[input].end());
      }
    }
    std::vector<ActivityPtr> parts;
    Picoseconds left = time;
    const auto run_until = [&](Picoseconds rest, Set after) {
      parts.push_back(add(Platform::get().kernel(left - rest), std::move(after)));
      kernel_ = parts.back().get();
      left = rest;
    };
    if (scatters) {
      run_until(time - time / order_[i + 1].pieces, before);
      before = {kernel_};
    }
    for (auto& [rest, of_rest] : gathers) {
      run_until(rest, before);
      before = std::move(of_rest);
      before.insert(kernel_);
    }
    run_until(0, before);
    made(i, parts.front(), parts.back());
    if (!scatters) return;
    const ActivityPtr message = communicate(i + 1, i + 2, {parts.front().get()}, Waits::kNotForInputs);
    made(i + 1, message, add(Platform::get().view(), {message.get(), kernel_}));
  }

  enum class Waits { kForInputs, kNotForInputs };

  ActivityPtr communicate(std::size_t begin, std::size_t end, Set after, Waits waits = Waits::kForInputs) {
    std::uint32_t links = 0;
    for (std::size_t i = begin; i < end; ++i) {
      links |= order_[i].links;
      if (waits == Waits::kForInputs) after.merge(makers(i));
    }
    for (std::uint32_t level = 0; level < kLevels; ++level) {
      if ((links >> level & 1) != 0) after.insert(levels_[level]);
    }
    const bool is_gather = order_[begin].pieces > 1 && order_[begin].is_collective(CollectiveKind::kAllGather);
    if (is_gather) {  // a product may begin with it
      const ActivityPtr start = add(Platform::get().view(), std::move(after));
      for (const ValueId output : order_.outputs(begin))
        gathers_in_pieces_[output] = {start.get(), order_[begin].pieces};
      after = {start.get()};
    }
    const std::uint32_t bucket = order_.fusion[begin];
    const Picoseconds time = bucket > 0 ? order_.buckets[bucket - 1].time : order_[begin].time;
    const ActivityPtr message = add(Platform::get().message(time, links), std::move(after));
    for (std::size_t i = begin; i < end; ++i) made(i, message, message);
    for (std::uint32_t level = 0; level < kLevels; ++level) {
      if ((links >> level & 1) != 0) levels_[level] = message.get();
    }
    return message;
  }

  Set makers(std::size_t i) const {
    Set makers;
    for (const ValueId input : order_.inputs(i)) makers.insert(made_by_[input].begin(), made_by_[input].end());
    return makers;
  }
  void made(std::size_t i, const ActivityPtr& first, const ActivityPtr& last) {
    if (first_[i] == nullptr) first_[i] = first;
    if (first_[i] == first) last_[i] = last;  // its first run
    for (const ValueId output : order_.outputs(i)) made_by_[output] = {last.get()};
  }
  ActivityPtr add(ActivityPtr activity, Set after) {
    after.erase(nullptr);
    for (Activity* before : after) depend(before, activity);
    activities_.push_back(activity);
    return activity;
  }
  static void depend(Activity* before, const ActivityPtr& after) {
    if (auto* execution = dynamic_cast<simgrid::s4u::Exec*>(before)) {
      execution->add_successor(after);
    } else {
      dynamic_cast<simgrid::s4u::Comm&>(*before).add_successor(after);
    }
  }

  struct Gather {
    Activity* begin = nullptr;  // the activity that begins it
    std::int64_t pieces = 0;
  };

  const ParallelProgram& program_;
  const InstructionTable table_;
  const TableOrder order_;
  std::vector<ActivityPtr> activities_;
  std::vector<ActivityPtr> first_, last_;  // of an instruction's first run
  IdVector<ValueId, Set> made_by_;         // by value: what must end before it is ready
  std::map<ValueId, Gather> gathers_in_pieces_;
  Activity* kernel_ = nullptr;
  std::vector<Activity*> levels_;  // by level: the last collective issued there
};

void expect_equal(const ParallelProgram& program, const std::string& what) {
  const OverlappedTimeline ours = overlapped_timeline(program);
  const OverlappedTimeline replayed = Replay(program).run();
  EXPECT_EQ(replayed.end, ours.end) << what;
  EXPECT_EQ(replayed.spans, ours.spans) << what;
}

TEST(SimGridTest, RandomProgramsRunAsSimGridRunsThem) {
  std::size_t loops = 0, buckets = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Random random(seed);
    const ParallelProgram program = random_sketch(random);
    loops += program.micro_batches > 1;
    buckets += program.buckets.size();
    expect_equal(program, "seed " + std::to_string(seed));
    if (HasFailure()) break;
  }
  EXPECT_GT(loops, 100);
  EXPECT_GT(buckets, 100);
}

struct Replayed {
  std::string name;
  std::string model, cluster;
  std::map<std::string, std::int64_t> dims = {};
  bool collective_matmul = false;
};

class SimGridPlans : public testing::TestWithParam<Replayed> {};

TEST_P(SimGridPlans, RunAsSimGridRunsThemAtFullSpeed) {
  ModelOverrides overrides;
  overrides.dims = GetParam().dims;
  Cluster cluster = read_cluster(GetParam().cluster);
  cluster.collectives.collective_matmul = GetParam().collective_matmul;
  PlanOptions options;
  options.work_limit = 2'000'000;
  const ModelPlanner planner(std::make_shared<const Model>(read_model(GetParam().model, overrides)), cluster, options);
  Plan plan = planner.plan(Level::kSpeed, "auto");
  ASSERT_TRUE(plan.is_overlapped);
  plan.program.speeds_together.clear();
  expect_equal(plan.program, GetParam().name);
  EXPECT_GT(overlapped_timeline(plan.program).communication, 0);
  const auto is_in_pieces = [](const Instruction& instruction) { return instruction.in_pieces; };
  const bool has_pieces = std::any_of(plan.program.instructions.begin(), plan.program.instructions.end(), is_in_pieces);
  EXPECT_EQ(has_pieces, GetParam().collective_matmul);
}

// SimGrid's time grows with the square of the activities: few layers if there are many micro-batches.
const Replayed kReplayed[] = {
    {"gpt2_small", "configs/gpt2-small.yaml", "dgx-a100"},
    {"gpt2_small_on_32", "configs/gpt2-small.yaml", "dgx-a100x4"},
    {"lenet", "configs/lenet.yaml", "dgx-a100"},
    {"mixture", "configs/mixture.yaml", "dgx-a100"},
    {"micro_batches", "configs/llama-7b-train.yaml", "dgx-a100x8", {{"L", 2}}},
    {"collective_matmul", "configs/gpt3-175b.yaml", "dgx-a100", {{"L", 2}, {"B", 4}}, true},
};
INSTANTIATE_TEST_SUITE_P(SimGridTest, SimGridPlans, testing::ValuesIn(kReplayed),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace shardplan
