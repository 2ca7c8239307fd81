#include "program/list_order.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "program/instruction_facts.h"

namespace shardplan {
namespace {

constexpr std::size_t kGiven = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kNumLinkLevels = 32;

class ListScheduling {
 public:
  explicit ListScheduling(const ParallelProgram& program) : program_(program) {
    const std::size_t count = program.instructions.size();
    producer_.resize(program.values.size(), kGiven);
    for (std::size_t i = 0; i < count; ++i) {
      for (const ValueId output : at(i).outputs) producer_[output] = i;
    }
    readers_.resize(count);
    waits_.resize(count, 0);
    is_lazy_.resize(count, 0);
    tails_.resize(count, 0);
    is_emitted_.resize(count, 0);
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_timed_kernel = is_kernel(i);
      bool all_given = true;
      for (const ValueId input : at(i).inputs) {
        const std::size_t producer = producer_[input];
        if (producer == kGiven) continue;
        readers_[producer].push_back(i);
        all_given = all_given && is_lazy_[producer] != 0;
      }
      is_lazy_[i] = !is_timed_kernel && all_given;
    }
    for (const auto& [before, after] : overwrites()) {
      readers_[before].push_back(after);
      ++waits_[after];
    }
    // Readers stand behind what they read.
    for (std::size_t i = count; i-- > 0;) {
      for (const std::size_t reader : readers_[i]) tails_[i] = std::max(tails_[i], tails_[reader]);
      tails_[i] += at(i).time;
    }
  }

  std::vector<std::size_t> run() {
    const std::size_t loop = program_.num_in_micro_batch();
    run(0, loop);
    run(loop, program_.instructions.size());
    return std::move(sequence_);
  }

 private:
  /// Longest tail first, then the order given.
  struct ByTail {
    const std::vector<Picoseconds>* tails;
    bool operator()(std::size_t a, std::size_t b) const {
      return std::tuple(-(*tails)[a], a) < std::tuple(-(*tails)[b], b);
    }
  };
  using Ready = std::set<std::size_t, ByTail>;
  using End = std::pair<Picoseconds, std::size_t>;

  const Instruction& at(std::size_t i) const { return program_.instructions[i]; }
  bool is_kernel(std::size_t i) const { return at(i).kind == InstructionKind::kOperator && at(i).time > 0; }

  /// What reads a stored value, itself or gathered, and what writes the new one over it.
  std::vector<std::pair<std::size_t, std::size_t>> overwrites() const {
    IdVector<ValueId, std::vector<std::size_t>> readers(program_.values.size());
    for (std::size_t i = program_.instructions.size(); i-- > 0;) {
      for (const ValueId input : at(i).inputs) {
        if (producer_[input] != kGiven && is_lazy_[producer_[input]] == 0) continue;
        std::vector<std::size_t>& known = readers[input];
        if (is_lazy_[i] == 0) {
          known.push_back(i);
          continue;
        }
        for (const ValueId output : at(i).outputs) {
          known.insert(known.end(), readers[output].begin(), readers[output].end());
        }
      }
    }
    std::map<TensorId, ValueId> given;
    for (const Binding& one : program_.given) given.emplace(one.tensor, one.value);
    const std::size_t loop = program_.num_in_micro_batch();
    std::vector<std::pair<std::size_t, std::size_t>> result;
    for (const Binding& update : program_.updates) {
      const std::size_t writer = producer_[update.value];
      const auto old = given.find(update.tensor);
      if (writer == kGiven || is_lazy_[writer] != 0 || old == given.end()) continue;
      for (const std::size_t reader : readers[old->second]) {
        if (reader < writer && (reader < loop) == (writer < loop)) result.emplace_back(reader, writer);
      }
    }
    return result;
  }

  void run(std::size_t begin, std::size_t end) {
    kernels_ = Ready(ByTail{&tails_});
    collectives_.clear();
    missing_.assign(program_.instructions.size(), 0);
    std::array<Picoseconds, kNumLinkLevels> free_at{};
    std::vector<std::size_t> first;  // that wait for nothing
    for (std::size_t i = begin; i < end; ++i) {
      if (is_lazy_[i] != 0) continue;
      for (const ValueId input : at(i).inputs) {
        const std::size_t producer = producer_[input];
        if (producer != kGiven && producer >= begin && is_lazy_[producer] == 0) ++missing_[i];
      }
      missing_[i] += waits_[i];
      if (missing_[i] == 0) first.push_back(i);
    }
    for (const std::size_t i : first) make_ready(i);
    std::priority_queue<End, std::vector<End>, std::greater<>> ends;
    Picoseconds now = 0, kernel_ends = 0;
    std::size_t running = kGiven;
    for (;;) {
      // What begins at this time; collectives are issued before the kernel that runs meanwhile.
      while (Ready* ready = first_that_can_begin(free_at, now)) {
        const std::size_t next = *ready->begin();
        ready->erase(ready->begin());
        const Picoseconds over = now + at(next).time;
        for (std::size_t level = 0; level < kNumLinkLevels; ++level) {
          if ((at(next).links >> level & 1) != 0) free_at[level] = over;
        }
        ends.emplace(over, next);
        emit(next);
      }
      if (kernel_ends <= now) {
        if (running != kGiven) {
          emit(running);
          running = kGiven;
        }
        if (!kernels_.empty()) {
          running = *kernels_.begin();
          kernels_.erase(kernels_.begin());
          kernel_ends = now + at(running).time;
          ends.emplace(kernel_ends, running);
        }
      }
      if (ends.empty()) break;
      now = ends.top().first;
      if (running != kGiven && kernel_ends <= now) {
        emit(running);
        running = kGiven;
      }
      while (!ends.empty() && ends.top().first == now) {
        const std::size_t ended = ends.top().second;
        ends.pop();
        end_of(ended);
      }
    }
    for (std::size_t i = begin; i < end; ++i) emit(i);
  }

  /// The collectives of which the first goes before all others whose links are free; null if none are.
  Ready* first_that_can_begin(const std::array<Picoseconds, kNumLinkLevels>& free_at, Picoseconds now) {
    Ready* first = nullptr;
    for (auto& [links, ready] : collectives_) {
      bool is_free = !ready.empty();
      for (std::size_t level = 0; level < kNumLinkLevels; ++level) {
        is_free = is_free && ((links >> level & 1) == 0 || free_at[level] <= now);
      }
      if (!is_free) continue;
      if (first == nullptr || ByTail{&tails_}(*ready.begin(), *first->begin())) first = &ready;
    }
    return first;
  }

  void make_ready(std::size_t first) {
    std::vector<std::size_t> ready{first};
    while (!ready.empty()) {
      const std::size_t i = ready.back();
      ready.pop_back();
      if (is_kernel(i)) {
        kernels_.insert(i);
      } else if (is_communication(at(i)) && at(i).time > 0) {
        collectives_.try_emplace(at(i).links, ByTail{&tails_}).first->second.insert(i);
      } else {  // takes no time
        emit(i);
        add_unblocked(i, ready);
      }
    }
  }

  void end_of(std::size_t i) {
    std::vector<std::size_t> ready;
    add_unblocked(i, ready);
    for (const std::size_t next : ready) make_ready(next);
  }

  /// What waited for nothing but this one.
  void add_unblocked(std::size_t done, std::vector<std::size_t>& ready) {
    for (const std::size_t reader : readers_[done]) {
      if (is_lazy_[reader] == 0 && missing_[reader] > 0 && --missing_[reader] == 0) ready.push_back(reader);
    }
  }

  /// Behind what of its inputs waits to be asked for.
  void emit(std::size_t i) {
    if (is_emitted_[i] != 0) return;
    is_emitted_[i] = 1;
    for (const ValueId input : at(i).inputs) {
      const std::size_t producer = producer_[input];
      if (producer != kGiven && is_lazy_[producer] != 0) emit(producer);
    }
    sequence_.push_back(i);
  }

  const ParallelProgram& program_;
  IdVector<ValueId, std::size_t> producer_;
  std::vector<std::vector<std::size_t>>
      readers_;                       // by instruction; once for each input, and what writes over its input
  std::vector<std::size_t> waits_;    // by instruction: readers of the value that it writes over
  std::vector<char> is_lazy_;         // made of what is given alone
  std::vector<Picoseconds> tails_;    // from its beginning to the end of the step, on the longest path
  std::vector<std::size_t> missing_;  // inputs that are not there
  std::vector<char> is_emitted_;
  std::vector<std::size_t> sequence_;
  Ready kernels_;                               // whose inputs are there
  std::map<std::uint32_t, Ready> collectives_;  // likewise, by the levels of links that they use
};

}  // namespace

std::vector<std::size_t> list_order(const ParallelProgram& program) { return ListScheduling(program).run(); }

}  // namespace shardplan
