// Collectives over a hierarchy of links.
//
// A group is described level by level (group_span.h). Along one level, p parts of a group exchange pieces of m bytes
// over links of rate B, each after a start-up of `latency`:
//     reduce_scatter, all_gather     (p-1) latency +   (p-1)/p m / B        rings
//     all_reduce                   2 (p-1) latency + 2 (p-1)/p m / B        a reduce_scatter, then an all_gather
//     all_to_all                     (p-1) latency +   (p-1)/p (m/p) / B    p-1 messages of m/p^2
//     permute                              latency +           (m/p) / B
// The rings are those of Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005.
// In a full mesh of c parts the rate is that of the p-1 links to the other members of the group, of c-1 (permute: of one).
// A link that a part shares (`link_per: group`) is divided by the devices that use it at once: all groups of a
// collective run together, so that is every device of the part whose group goes on across the level.
//
// Over several levels, n bytes in all, q devices of a group below the level:
//   - reduce_scatter goes inner levels first, so that the slow outer ones carry m = n/q; all_gather is its mirror
//     image.
//   - all_reduce is reduce_scatter inwards, all_reduce across the outermost, all_gather outwards; or one flat ring of
//     all devices, which crosses each part once per group: it starts more often but keeps all levels busy at the same
//     time.
//   - all_to_all is staged (each level exchanges all that a device has, few messages) or direct (each device sends to
//     every other, inner levels carry only what stays inside), whichever is cheaper. What crosses the outermost level
//     is the same.
//   - permute pays the outermost level.
// The rings of the levels follow each other. With `rings and trees` there are also, as in NCCL's tuning model
// (src/graph/tuning.cc of NCCL 2.28), over devices of which every part has equally many:
//   - channel ring: one ring over all devices, in as many channels as the group has links into each level, so that all
//     levels carry their share at the same time. Of p-1 steps (all_reduce: twice as many) as many cross a level as there
//     are parts to reach: (p-1)/p m / B of the level that is slowest.
//   - tree all_reduce: up and down a binary tree of the outermost parts and a chain within each,
//     2 (log2 parts latency + (devices of a part - 1) latency) + 2 m / (0.92 B). Within one innermost part a chain is no
//     gain.
// Adjacent levels that are rings or lines of links are the dimensions of a torus and count as one stage (torus.h); a group on a
// torus runs neither flat or channel rings nor trees, and its all_to_all is staged.
// With `direct_all_reduce` an all_reduce within the innermost level can also be one kernel, whose devices read each other's
// memory, without `launch`: all tensors at once, direct_all_reduce + (p-1) m / B, or in two phases, each device adding up one
// piece first, direct_all_reduce + latency + 2 (p-1)/p m / B.
// `protocols` replace the latency and take a share of the rate, the same one on all levels. Every collective pays
// `launch` once, however many stages it has, and all but permute `per_device` for each device of the group; what was
// measured has both in it. `contention` always applies: all parts of
// a level talk at once in a collective of the whole mesh.
#include "costmodel/hierarchical_costs.h"

#include <algorithm>

#include "base/error.h"
#include "base/random.h"
#include "costmodel/cluster/cluster_mesh.h"
#include "costmodel/torus.h"

namespace shardplan {
namespace {

__extension__ using Wide = unsigned __int128;

Picoseconds saturate(Wide time) {
  return time >= static_cast<Wide>(kLongestTime) ? kLongestTime : static_cast<Picoseconds>(time);
}

Wide greatest_common_divisor(Wide a, Wide b) {
  while (b != 0) {
    const Wide rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/// bytes * numerator / denominator rounded up; usually with one 64-bit division.
Wide scaled(Bytes bytes, Wide numerator, Wide denominator) {
  Wide product = 0;
  if (__builtin_mul_overflow(static_cast<Wide>(bytes), numerator, &product)) return kLongestTime;
  if ((product >> 64) == 0 && (denominator >> 64) == 0) {
    const auto low = static_cast<std::uint64_t>(product);
    const auto divisor = static_cast<std::uint64_t>(denominator);
    return low / divisor + (low % divisor != 0 ? 1 : 0);
  }
  return product / denominator + (product % denominator != 0 ? 1 : 0);
}

/// Linear between the points, and between `start` for no bytes and the first one; above the last one proportional to the
/// bytes.
Picoseconds interpolate(const CollectiveTable& table, Picoseconds start, Wide bytes) {
  const auto& points = table.points;
  const auto above = std::find_if(points.begin(), points.end(),
                                  [&](const auto& point) { return static_cast<Wide>(point.first) >= bytes; });
  if (above == points.begin()) {
    const auto& [first_bytes, first_time] = points.front();
    start = std::min(start, first_time);
    return start + saturate(scaled(static_cast<Bytes>(bytes), static_cast<Wide>(first_time - start),
                                   static_cast<Wide>(first_bytes)));
  }
  if (above == points.end()) {
    if (bytes >= static_cast<Wide>(kLongestTime)) return kLongestTime;
    const auto& [last_bytes, last_time] = points.back();
    return saturate(scaled(static_cast<Bytes>(bytes), static_cast<Wide>(last_time), static_cast<Wide>(last_bytes)));
  }
  const auto below = above - 1;
  const Wide rise = static_cast<Wide>(above->second - below->second);
  const Wide part = bytes - static_cast<Wide>(below->first);
  return below->second +
         saturate(scaled(static_cast<Bytes>(part), rise, static_cast<Wide>(above->first - below->first)));
}

std::size_t slot_of(const std::vector<AxisRef>& axes, std::size_t num_slots) {
  std::uint64_t hash = axes.size();
  for (const AxisRef& ref : axes) {
    hash = mix(hash ^ ref.axis ^ (static_cast<std::uint64_t>(ref.before) << 20) ^
               (static_cast<std::uint64_t>(ref.size) << 40));
  }
  return hash % num_slots;
}

/// Least squares of relative deviations: of a measured time, `starts` parts are start-ups and `rates` parts transfer by the
/// formula, to be multiplied by one factor each, and `rest` is neither.
class TwoFactors {
 public:
  void add(double starts, double rates, double rest) {
    start_start_ += starts * starts;
    start_rate_ += starts * rates;
    rate_rate_ += rates * rates;
    start_rest_ += starts * (1 - rest);
    rate_rest_ += rates * (1 - rest);
  }
  /// The factors of start-ups and of transfer times. One measurement gives both the same.
  std::pair<double, double> factors() const {
    const double determinant = start_start_ * rate_rate_ - start_rate_ * start_rate_;
    if (determinant <= 1e-9 * start_start_ * rate_rate_) {
      const double both = start_start_ + 2 * start_rate_ + rate_rate_;
      const double factor = both > 0 ? std::max(kLeastFactor, (start_rest_ + rate_rest_) / both) : 1;
      return {factor, factor};
    }
    const double starts = (start_rest_ * rate_rate_ - rate_rest_ * start_rate_) / determinant;
    const double rates = (rate_rest_ * start_start_ - start_rest_ * start_rate_) / determinant;
    if (starts < 0) return {0, std::max(kLeastFactor, rate_rest_ / rate_rate_)};
    if (rates < kLeastFactor) return {std::max(0.0, start_rest_ / start_start_), kLeastFactor};
    return {starts, rates};
  }

 private:
  static constexpr double kLeastFactor = 1e-3;
  double start_start_ = 0, start_rate_ = 0, rate_rate_ = 0, start_rest_ = 0, rate_rest_ = 0;
};

constexpr int kNumKinds = 7;
constexpr int kMostProbes = 8;

}  // namespace

/// How the levels transfer messages under one protocol; by level.
struct HierarchicalCosts::Links {
  std::vector<Picoseconds> latency;
  std::vector<std::int64_t> rate;  // bytes per second that one link sustains
};

/// latency + bytes * numerator / denominator; or what a measured table says of bytes * numerator / denominator, with the
/// latency for none.
struct HierarchicalCosts::Stage {
  Picoseconds latency = 0;
  Wide numerator = 0;
  Wide denominator = 1;
  const CollectiveTable* table = nullptr;

  Stage() = default;
  Stage(Wide start_ups, Picoseconds latency_of_each, Wide above, Wide below)
      : latency(saturate(start_ups * static_cast<Wide>(latency_of_each))) {
    const Wide divisor = greatest_common_divisor(above, below);
    numerator = above / divisor;
    denominator = below / divisor;
  }

  Picoseconds time(Bytes bytes) const {
    const Wide amount = scaled(bytes, numerator, denominator);
    return table == nullptr ? saturate(static_cast<Wide>(latency) + amount) : interpolate(*table, latency, amount);
  }
};

/// Everything precomputed for one list of axes: by kind, sequences of stages, of which the cheapest counts.
struct HierarchicalCosts::Group {
  std::vector<AxisRef> axes;
  std::array<std::vector<std::vector<Stage>>, kNumKinds> alternatives;
  std::vector<std::vector<Stage>> exchange;  // per byte that a device sends
  std::uint32_t links = 0;
};

HierarchicalCosts::HierarchicalCosts(Cluster cluster, DeviceMesh mesh)
    : cluster_(std::move(cluster)), mesh_(std::move(mesh)), positions_(point_positions(cluster_, mesh_)) {
  std::size_t num_protocols = 1;
  for (const ClusterLevel& level : cluster_.levels) num_protocols = std::max(num_protocols, 1 + level.protocols.size());
  for (std::size_t protocol = 0; protocol < num_protocols; ++protocol) {
    Links links;
    for (const ClusterLevel& level : cluster_.levels) {
      LinkProtocol by{level.latency, 1'000'000};
      if (protocol > 0 && protocol <= level.protocols.size()) by = level.protocols[protocol - 1];
      const Wide share = static_cast<Wide>(level.efficiency_ppm) * static_cast<Wide>(level.contention_ppm);
      const Wide rate = static_cast<Wide>(level.bandwidth) * share / 1'000'000'000'000;
      const Wide used = rate * static_cast<Wide>(by.bandwidth_ppm) / 1'000'000;
      links.rate.push_back(std::max<std::int64_t>(1, static_cast<std::int64_t>(used)));
      links.latency.push_back(by.latency);
    }
    links_.push_back(std::move(links));
  }
  for (std::size_t level = 0; level < cluster_.levels.size(); ++level) scale_by_tables(level);
}

/// Tables say how far a level's formula is off; otherwise a plan would avoid a slow measured collective by two others over
/// the same links, which nobody measured.
void HierarchicalCosts::scale_by_tables(std::size_t level) {
  // Measured were devices of the level, wherever ranks stand, and perhaps when it had more parts.
  Cluster measured_on = cluster_;
  measured_on.position_of_rank.clear();
  ClusterLevel& own = measured_on.levels[level];
  TwoFactors known;
  bool is_any = false;
  for (const CollectiveTable& table : cluster_.tables) {
    if (table.level != own.name) continue;
    own.count = std::max(cluster_.levels[level].count, table.level_count);
    if (own.count % table.devices != 0) continue;
    const DeviceMesh whole = make_mesh(measured_on);
    AxisRef part = whole.find(own.name).value();
    part.before = part.size / table.devices;
    part.size = table.devices;
    const GroupSpan span = group_span(measured_on, whole, point_positions(measured_on, whole), {part});
    const Stage stage = formula_along(table.kind, span.levels, span.size, links_[0]);
    const Picoseconds start = start_of(table.kind, table.devices);
    for (const auto& [bytes, time] : table.points) {
      const auto measured = static_cast<double>(time);
      known.add(static_cast<double>(stage.latency) / measured,
                static_cast<double>(scaled(bytes, stage.numerator, stage.denominator)) / measured,
                static_cast<double>(start) / measured);
      is_any = true;
    }
  }
  if (!is_any) return;
  const auto [starts, rates] = known.factors();
  for (Links& links : links_) {
    links.latency[level] = saturate(static_cast<Wide>(starts * static_cast<double>(links.latency[level])));
    const double rate = std::min(static_cast<double>(links.rate[level]) / rates, 0x1p60);
    links.rate[level] = std::max<std::int64_t>(1, static_cast<std::int64_t>(rate));
  }
}

/// What a collective takes before any message: what was measured has it in it.
Picoseconds HierarchicalCosts::start_of(CollectiveKind kind, std::int64_t group_size) const {
  const CollectiveSoftware& software = cluster_.collectives;
  const std::int64_t handled = kind == CollectiveKind::kCollectivePermute ? 0 : group_size;
  return saturate(static_cast<Wide>(software.launch) +
                  static_cast<Wide>(software.per_device) * static_cast<Wide>(handled));
}

HierarchicalCosts::~HierarchicalCosts() = default;

std::int64_t HierarchicalCosts::sharers(const LevelSpan& span, std::int64_t of_part) const {
  return cluster_.levels[span.level].link_per == LinkPer::kGroup ? of_part : 1;
}

bool HierarchicalCosts::is_torus(const LevelSpan& span) const {
  const Topology topology = cluster_.levels[span.level].topology;
  return topology == Topology::kRing || topology == Topology::kLine;
}

std::int64_t HierarchicalCosts::rate_to(std::int64_t others, const LevelSpan& span, const Links& links) const {
  const ClusterLevel& level = cluster_.levels[span.level];
  const std::int64_t rate = links.rate[span.level];
  if (level.topology != Topology::kFullMesh) return rate;
  const Wide used = static_cast<Wide>(rate) * static_cast<Wide>(others) / static_cast<Wide>(level.count - 1);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(used));
}

HierarchicalCosts::Stage HierarchicalCosts::stage_on_torus(CollectiveKind kind, std::span<const LevelSpan> levels,
                                                           std::int64_t group_size, const Links& links) const {
  std::vector<TorusDimension> dimensions;
  for (const LevelSpan& span : levels) {
    const ClusterLevel& level = cluster_.levels[span.level];
    dimensions.push_back(torus_dimension(level.topology == Topology::kRing, level.count, span.members, span.distance,
                                         span.overlapping, span.around, links.latency[span.level],
                                         links.rate[span.level]));
  }
  const TorusTime time = torus_time(kind, dimensions, levels.back().below, group_size);
  return {1, saturate(static_cast<Wide>(time.latency)), static_cast<Wide>(time.above), static_cast<Wide>(time.below)};
}

/// Along one level, or along adjacent dimensions of a torus.
HierarchicalCosts::Stage HierarchicalCosts::stage_along(CollectiveKind kind, std::span<const LevelSpan> levels,
                                                        std::int64_t group_size, const Links& links) const {
  const LevelSpan& span = levels.front();
  const ClusterLevel& level = cluster_.levels[span.level];
  const Wide parts = static_cast<Wide>(span.members);
  const Wide below = static_cast<Wide>(span.below);
  const Wide size = static_cast<Wide>(group_size);
  const bool is_of_pieces = kind == CollectiveKind::kAllToAll || kind == CollectiveKind::kCollectivePermute;
  for (const CollectiveTable& table : cluster_.tables) {
    if (levels.size() > 1 || table.kind != kind || table.level != level.name || table.devices != span.members) continue;
    // The bytes of the `members` devices that meet here: n/q of a tensor that is gathered or reduced, p of its pieces
    // else.
    Stage measured = is_of_pieces ? Stage(0, 0, parts, size) : Stage(0, 0, 1, below);
    const Picoseconds latency = formula_along(kind, levels, group_size, links).latency;
    measured.latency = std::min(kLongestTime, latency + start_of(kind, span.members));
    measured.table = &table;
    return measured;
  }
  return formula_along(kind, levels, group_size, links);
}

HierarchicalCosts::Stage HierarchicalCosts::formula_along(CollectiveKind kind, std::span<const LevelSpan> levels,
                                                          std::int64_t group_size, const Links& links) const {
  const LevelSpan& span = levels.front();
  const Picoseconds latency = links.latency[span.level];
  const std::int64_t others = kind == CollectiveKind::kCollectivePermute ? 1 : span.members - 1;
  const Wide rate = static_cast<Wide>(rate_to(others, span, links));
  const Wide parts = static_cast<Wide>(span.members);
  const Wide per_byte = static_cast<Wide>(sharers(span, span.crossing_devices)) * kPicosecondsPerSecond;
  const Wide below = static_cast<Wide>(span.below);
  const Wide size = static_cast<Wide>(group_size);
  if (is_torus(span)) return stage_on_torus(kind, levels, group_size, links);
  switch (kind) {
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return {parts - 1, latency, (parts - 1) * per_byte, parts * below * rate};
    case CollectiveKind::kAllReduce:
      return {2 * (parts - 1), latency, 2 * (parts - 1) * per_byte, parts * below * rate};
    case CollectiveKind::kAllToAll:
      return {parts - 1, latency, (parts - 1) * per_byte, parts * size * rate};
    case CollectiveKind::kCollectivePermute:
      return {1, latency, per_byte, size * rate};
    case CollectiveKind::kSlice:
    case CollectiveKind::kToPartial:
      break;
  }
  return {};
}

std::vector<HierarchicalCosts::Stage> HierarchicalCosts::stages(CollectiveKind kind, const GroupSpan& span,
                                                                const Links& links) const {
  std::vector<Stage> result;
  const std::span<const LevelSpan> levels(span.levels);
  for (std::size_t begin = 0, end = 0; begin < levels.size(); begin = end) {
    if (kind == CollectiveKind::kCollectivePermute && begin > 0) break;
    end = begin + 1;
    while (is_torus(levels[begin]) && end < levels.size() && is_torus(levels[end])) ++end;
    const std::span<const LevelSpan> together = levels.subspan(begin, end - begin);
    if (kind == CollectiveKind::kAllReduce && begin > 0) {
      result.push_back(stage_along(CollectiveKind::kReduceScatter, together, span.size, links));
      result.push_back(stage_along(CollectiveKind::kAllGather, together, span.size, links));
    } else {
      result.push_back(stage_along(kind, together, span.size, links));
    }
  }
  return result;
}

std::vector<HierarchicalCosts::Stage> HierarchicalCosts::direct_all_to_all(const GroupSpan& span,
                                                                           const Links& links) const {
  std::vector<Stage> result;
  const Wide size = static_cast<Wide>(span.size);
  for (const LevelSpan& level : span.levels) {
    const Wide peers = static_cast<Wide>(level.peers);
    const Wide per_byte = static_cast<Wide>(sharers(level, level.crossing_devices)) * kPicosecondsPerSecond;
    result.emplace_back(peers, links.latency[level.level], peers * per_byte,
                        size * size * static_cast<Wide>(rate_to(level.members - 1, level, links)));
  }
  return result;
}

HierarchicalCosts::Stage HierarchicalCosts::flat_all_reduce(const GroupSpan& span, const Links& links) const {
  const LevelSpan* slowest = nullptr;
  Picoseconds latency = 0;
  const auto share = [&](const LevelSpan& level) { return static_cast<Wide>(sharers(level, level.crossing_groups)); };
  const auto rate = [&](const LevelSpan& level) { return static_cast<Wide>(rate_to(level.members - 1, level, links)); };
  for (const LevelSpan& level : span.levels) {
    latency = std::max(latency, links.latency[level.level]);
    if (slowest == nullptr || share(level) * rate(*slowest) > share(*slowest) * rate(level)) slowest = &level;
  }
  const Wide hops = 2 * (static_cast<Wide>(span.size) - 1);
  return {hops, latency, hops * share(*slowest) * kPicosecondsPerSecond, static_cast<Wide>(span.size) * rate(*slowest)};
}

HierarchicalCosts::Stage HierarchicalCosts::channel_ring(CollectiveKind kind, const GroupSpan& span,
                                                         const Links& links) const {
  const Wide passes = kind == CollectiveKind::kAllReduce ? 2 : 1;
  Wide start = 0, reached = 1;  // parts that the steps over the outer levels reach
  Wide above = 0, below = 1;    // the slowest level's time per byte
  for (const LevelSpan& level : span.levels) {
    const Wide parts = reached * static_cast<Wide>(level.members);
    start += (parts - reached) * static_cast<Wide>(links.latency[level.level]);
    reached = parts;
    const Wide uses = static_cast<Wide>(sharers(level, level.crossing_devices));
    const Wide carries = static_cast<Wide>(level.below) * static_cast<Wide>(rate_to(level.members - 1, level, links));
    if (uses * below > above * carries) {
      above = uses;
      below = carries;
    }
  }
  const Wide size = static_cast<Wide>(span.size);
  return {1, saturate(passes * start), passes * (size - 1) * above * kPicosecondsPerSecond, size * below};
}

HierarchicalCosts::Stage HierarchicalCosts::tree_all_reduce(const GroupSpan& span, const Links& links) const {
  constexpr Wide kTreePercent = 92;  // of a ring's rate, NCCL's
  Wide start = 0;
  Wide above = 0, below = 1;
  for (const LevelSpan& level : span.levels) {
    const bool is_tree = &level == &span.levels.front() && level.level + 1 < cluster_.levels.size();
    Wide hops = static_cast<Wide>(level.members) - 1;
    if (is_tree) {
      for (hops = 0; (Wide{1} << hops) < static_cast<Wide>(level.members);) ++hops;
    }
    start += hops * static_cast<Wide>(links.latency[level.level]);
    const Wide uses = static_cast<Wide>(sharers(level, level.crossing_devices));
    const Wide carries = static_cast<Wide>(level.below) * static_cast<Wide>(rate_to(level.members - 1, level, links));
    if (uses * below > above * carries) {
      above = uses;
      below = carries;
    }
  }
  return {1, saturate(2 * start), 2 * 100 * above * kPicosecondsPerSecond, kTreePercent * below};
}

std::vector<HierarchicalCosts::Stage> HierarchicalCosts::direct_all_reduces(const GroupSpan& span,
                                                                            const Links& links) const {
  const LevelSpan& level = span.levels.front();
  const Wide parts = static_cast<Wide>(level.members);
  const Wide per_byte = static_cast<Wide>(sharers(level, level.crossing_devices)) * kPicosecondsPerSecond;
  const Wide rate = static_cast<Wide>(rate_to(level.members - 1, level, links));
  const Picoseconds start = cluster_.collectives.direct_all_reduce;
  const Wide two_phases = static_cast<Wide>(start) + static_cast<Wide>(links.latency[level.level]);
  return {{1, start, (parts - 1) * per_byte, rate},
          {1, saturate(two_phases), 2 * (parts - 1) * per_byte, parts * rate}};
}

void HierarchicalCosts::add_alternatives(Group& group, const GroupSpan& span, std::size_t protocol) const {
  const Links& links = links_[protocol];
  const auto is_measured = [](const std::vector<Stage>& sequence) {
    return std::any_of(sequence.begin(), sequence.end(), [](const Stage& stage) { return stage.table != nullptr; });
  };
  const auto add = [&](CollectiveKind kind, std::vector<Stage> sequence) {
    Picoseconds start = start_of(kind, span.size);
    for (const Stage& stage : sequence) {
      if (stage.table != nullptr) start -= start_of(stage.table->kind, stage.table->devices);
    }
    if (start > 0) sequence.insert(sequence.begin(), Stage(1, start, 0, 1));
    group.alternatives[static_cast<std::size_t>(kind)].push_back(std::move(sequence));
  };
  const bool has_torus = std::ranges::any_of(span.levels, [&](const LevelSpan& level) { return is_torus(level); });
  const bool has_channels = cluster_.collectives.has_rings_and_trees && span.is_uniform && !has_torus;
  // A table replaces the formula of its level; over several levels what runs otherwise than level by level remains.
  const bool is_one_level = span.levels.size() == 1;
  for (const CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                                    CollectiveKind::kAllReduce, CollectiveKind::kCollectivePermute}) {
    std::vector<Stage> sequence = stages(kind, span, links);
    const bool is_table = is_one_level && is_measured(sequence);
    if (!is_table || protocol == 0) add(kind, std::move(sequence));
    if (is_table) continue;
    const bool is_reduce = kind == CollectiveKind::kAllReduce;
    if (is_reduce && !is_one_level && !has_torus) add(kind, {flat_all_reduce(span, links)});
    if (has_channels && is_reduce) add(kind, {tree_all_reduce(span, links)});
    const bool is_innermost = is_one_level && span.levels.front().level + 1 == cluster_.levels.size();
    if (cluster_.collectives.direct_all_reduce > 0 && is_reduce && is_innermost) {
      for (const Stage& stage : direct_all_reduces(span, links)) {
        group.alternatives[static_cast<std::size_t>(kind)].push_back({stage});
      }
    }
    if (has_channels && kind != CollectiveKind::kCollectivePermute) add(kind, {channel_ring(kind, span, links)});
  }

  const CollectiveKind all_to_all = CollectiveKind::kAllToAll;
  std::vector<Stage> staged =
      span.is_uniform ? stages(all_to_all, span, links) : stages(CollectiveKind::kAllGather, span, links);
  const bool is_table = is_one_level && is_measured(staged);
  if (!is_table || protocol == 0) add(all_to_all, std::move(staged));
  if ((!span.is_uniform || !is_table) && !has_torus) add(all_to_all, direct_all_to_all(span, links));

  const LevelSpan& outermost = span.levels.front();
  group.exchange.push_back(
      {Stage(1, cluster_.collectives.launch, 0, 1),
       Stage(1, links.latency[outermost.level],
             static_cast<Wide>(is_torus(outermost) ? outermost.overlapping
                                                   : sharers(outermost, outermost.crossing_devices)) *
                 kPicosecondsPerSecond,
             static_cast<Wide>(rate_to(1, outermost, links)))});
}

std::unique_ptr<const HierarchicalCosts::Group> HierarchicalCosts::describe(const std::vector<AxisRef>& axes) const {
  auto group = std::make_unique<Group>();
  group->axes = axes;
  const GroupSpan span = group_span(cluster_, mesh_, positions_, axes);
  if (span.levels.empty()) return group;
  for (const LevelSpan& level : span.levels) group->links |= 1u << std::min<std::size_t>(level.level, 31);
  for (std::size_t protocol = 0; protocol < links_.size(); ++protocol) add_alternatives(*group, span, protocol);
  return group;
}

Picoseconds HierarchicalCosts::cheapest(const std::vector<std::vector<Stage>>& alternatives, Bytes bytes) {
  if (alternatives.empty()) return 0;
  Picoseconds best = kLongestTime;
  for (const std::vector<Stage>& sequence : alternatives) {
    Picoseconds sum = 0;
    for (const Stage& stage : sequence) sum = std::min(kLongestTime, sum + stage.time(bytes));
    best = std::min(best, sum);
  }
  return best;
}

const HierarchicalCosts::Group& HierarchicalCosts::group(const std::vector<AxisRef>& axes) const {
  const std::size_t home = slot_of(axes, kSlots);
  for (int probe = 0; probe < kMostProbes; ++probe) {
    const Group* known = slots_[(home + static_cast<std::size_t>(probe)) % kSlots].load(std::memory_order_acquire);
    if (known == nullptr) break;
    if (known->axes == axes) return *known;
  }
  const std::lock_guard lock(mutex_);
  std::unique_ptr<const Group>& owned = groups_[axes];
  if (owned == nullptr) {
    owned = describe(axes);
    for (int probe = 0; probe < kMostProbes; ++probe) {
      std::atomic<const Group*>& slot = slots_[(home + static_cast<std::size_t>(probe)) % kSlots];
      if (slot.load(std::memory_order_relaxed) != nullptr) continue;
      slot.store(owned.get(), std::memory_order_release);
      break;
    }
  }
  return *owned;
}

Picoseconds HierarchicalCosts::time(CollectiveKind kind, const std::vector<AxisRef>& axes, Bytes group_bytes) const {
  if (kind == CollectiveKind::kSlice || kind == CollectiveKind::kToPartial || axes.empty()) return 0;
  SHARDPLAN_CHECK(group_bytes >= 0);
  return cheapest(group(axes).alternatives[static_cast<std::size_t>(kind)], group_bytes);
}

std::uint32_t HierarchicalCosts::links(const std::vector<AxisRef>& axes) const {
  return axes.empty() ? 0 : group(axes).links;
}

Picoseconds HierarchicalCosts::neighbour_exchange(const std::vector<AxisRef>& axes, Bytes sent) const {
  SHARDPLAN_CHECK(sent >= 0);
  return axes.empty() ? 0 : cheapest(group(axes).exchange, sent);
}

}  // namespace shardplan
