#include "simulator/workers/worker_link.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/parse_number.h"
#include "simulator/execute/reference.h"

namespace shardplan {
namespace {

using LinkClock = std::chrono::steady_clock;

constexpr double kSliceOfWait = 0.1;          // seconds between checks whether to stop
constexpr double kSecondsForAReason = 2.0;    // after a loss: the scheduler may say more
constexpr double kSecondsForLastWords = 0.3;  // of a scheduler that is gone
constexpr double kAsLongAsAlive = std::numeric_limits<double>::infinity();
constexpr std::size_t kLongestReason = 4000;
constexpr std::int64_t kLeastMessage = 1 << 16;  // above the size of any message without data

double waited_since(LinkClock::time_point begin) {
  return std::chrono::duration<double>(LinkClock::now() - begin).count();
}

std::string part_of_buffer(const TensorValues& buffer) {
  return {reinterpret_cast<const char*>(buffer.data()), buffer.size() * sizeof(double)};
}

TensorValues buffer_of(const std::string& bytes) {
  TensorValues buffer(bytes.size() / sizeof(double));
  if (!buffer.empty()) std::memcpy(buffer.data(), bytes.data(), buffer.size() * sizeof(double));
  return buffer;
}

}  // namespace

WorkerLink::WorkerLink(const JobOptions& options, const WorkerIdentity& identity)
    : options_(options),
      transport_({.host = identity.address,
                  .silence = options.timeout,
                  .most_bytes = std::max(kLeastMessage, identity.most_bytes)}) {
  scheduler_ = transport_.connect_to_scheduler(options.host, options.port);
  transport_.send(scheduler_, {job_word::kHello, identity.rank ? std::to_string(*identity.rank) : "",
                               std::to_string(options.workers), transport_.address(), identity.fingerprint});
  wait_until([&] { return rank_ >= 0; }, options.timeout,
             fmt::format("the scheduler at {}:{} and {} workers", options.host, options.port, options.workers));
  for (const std::optional<std::size_t>& peer : peers_) {
    if (peer) transport_.send(*peer, {job_word::kHere, std::to_string(rank_)});
  }
  wait_until([&] { return here_.size() + 1 == peers_.size(); }, options.timeout, "the other workers");
  transport_.send(scheduler_, {job_word::kReady, std::to_string(rank_)});
}

std::string WorkerLink::name_of(std::size_t peer) const {
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    if (peers_[rank] == peer) return fmt::format("worker {}", rank);
  }
  return "the scheduler";
}

std::string WorkerLink::missing_peers() const {
  if (rank_ < 0) {
    return transport_.is_stranger(scheduler_) ? ": what listens there is not a scheduler of this version" : "";
  }
  std::vector<std::string> missing;
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    if (peers_[rank] && !here_.contains(static_cast<int>(rank))) missing.push_back(fmt::format("worker {}", rank));
  }
  return fmt::format(": {} cannot reach this one", fmt::join(missing, ", "));
}

std::size_t WorkerLink::peer_of(int worker) const {
  const std::optional<std::size_t> peer = peers_.at(static_cast<std::size_t>(worker));
  SHARDPLAN_CHECK(peer.has_value());
  return *peer;
}

template <class Condition>
void WorkerLink::wait_until(const Condition& is_there, double seconds, const std::string& what) {
  const LinkClock::time_point begin = LinkClock::now();
  while (!is_there()) {
    if (options_.stop.stop_requested()) throw Stopped();
    std::optional<Transport::Event> event = transport_.wait(kSliceOfWait);
    if (event && !event->lost) {
      take(event->message);
    } else if (event && is_done_ && *event->lost != scheduler_) {
      continue;  // that worker may be done too, and the scheduler knows
    } else if (event || waited_since(begin) > seconds) {
      hear_the_reason(event && *event->lost == scheduler_ ? kSecondsForLastWords : kSecondsForAReason);
      if (is_over_) continue;  // the others left since all are done
      if (event) throw InputError(SourcePlace{}, "{} is gone", name_of(*event->lost));
      if (is_there()) continue;
      throw InputError(SourcePlace{}, "waited {:g} seconds for {}{}", seconds, what, missing_peers());
    }
  }
}

void WorkerLink::hear_the_reason(double seconds) {
  const LinkClock::time_point begin = LinkClock::now();
  const double most = std::min(seconds, options_.timeout);
  while (!is_over_ && waited_since(begin) < most && !options_.stop.stop_requested()) {
    std::optional<Transport::Event> event = transport_.wait(kSliceOfWait);
    if (event && !event->lost) take(event->message);
  }
}

void WorkerLink::take_welcome(const MessageParts& message) {
  const std::optional<int> rank = parse_number<int>(message[1]);
  const std::size_t workers = message.size() - 2;
  if (!rank || *rank < 0 || workers != static_cast<std::size_t>(options_.workers) || *rank >= options_.workers) {
    throw InputError(SourcePlace{}, "the scheduler's answer makes no sense");
  }
  rank_ = *rank;
  for (std::size_t i = 0; i < workers; ++i) {
    const bool is_self = static_cast<int>(i) == rank_;
    peers_.push_back(is_self ? std::nullopt : std::optional(transport_.connect(message[i + 2])));
  }
}

void WorkerLink::take(MessageParts& message) {
  const std::string& word = message[0];
  if (word == job_word::kStop && message.size() == 2) throw InputError(SourcePlace{}, "{}", message[1]);
  if (word == job_word::kBye) is_over_ = is_done_;
  if (word == job_word::kWelcome && rank_ < 0 && message.size() > 2) return take_welcome(message);
  if (message.size() < 2) return;
  const std::optional<int> from = parse_number<int>(message[1]);
  if (!from || *from < 0 || *from >= options_.workers || *from == rank_) return;
  if (word == job_word::kHere) here_.insert(*from);
  if (message.size() < 3) return;
  const std::optional<std::size_t> instruction = parse_number<std::size_t>(message[2]);
  if (!instruction) return;
  if (word == job_word::kTaken) taken_[*from] = *instruction;
  if (word != job_word::kData) return;
  if (arrived_.contains(*from)) {
    throw InputError(SourcePlace{}, "worker {} sends more before the last message was taken", *from);
  }
  Arrived arrived{*instruction, {}};
  for (std::size_t i = 3; i < message.size(); ++i) {
    arrived.buffers.push_back(buffer_of(message[i]));
    message[i] = std::string();
  }
  arrived_.emplace(*from, std::move(arrived));
}

void WorkerLink::send(int to, std::size_t instruction, const DeviceBuffers& buffers) {
  MessageParts message{job_word::kData, std::to_string(rank_), std::to_string(instruction)};
  for (const TensorValues& buffer : buffers) message.push_back(part_of_buffer(buffer));
  transport_.send(peer_of(to), message);
  wait_until([&] { return taken_.contains(to); }, kAsLongAsAlive, "");
  const std::size_t taken = taken_.extract(to).mapped();
  if (taken != instruction) {
    throw InputError(SourcePlace{}, "worker {} takes what instruction {} sends; expected {}", to, taken, instruction);
  }
}

DeviceBuffers WorkerLink::receive(int from, std::size_t instruction) {
  wait_until([&] { return arrived_.contains(from); }, kAsLongAsAlive, "");
  Arrived arrived = std::move(arrived_.extract(from).mapped());
  if (arrived.instruction != instruction) {
    throw InputError(SourcePlace{}, "worker {} sends what instruction {} makes; expected {}", from, arrived.instruction,
                     instruction);
  }
  transport_.send(peer_of(from), {job_word::kTaken, std::to_string(rank_), std::to_string(instruction)});
  return std::move(arrived.buffers);
}

void WorkerLink::finish() {
  is_done_ = true;
  transport_.send(scheduler_, {job_word::kDone, std::to_string(rank_)});
  wait_until([&] { return is_over_; }, kAsLongAsAlive, "");
}

void WorkerLink::fail(const std::string& why) noexcept {
  try {
    transport_.send(scheduler_, {job_word::kFailed, std::to_string(rank_), why.substr(0, kLongestReason)});
    const LinkClock::time_point begin = LinkClock::now();
    while (waited_since(begin) < kSecondsForAReason) {
      std::optional<Transport::Event> event = transport_.wait(kSliceOfWait);
      if (event && event->lost == scheduler_) return;
      if (event && !event->lost) take(event->message);  // throws if the scheduler ends the job
    }
  } catch (const std::exception&) {
    // The scheduler already knows, or it is gone and so is the job.
  }
}

}  // namespace shardplan
