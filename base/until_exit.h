#pragma once

#include <deque>
#include <utility>

namespace shardplan {

/// A value that stays until the process ends, and is then not taken apart: of a plan of a million operators that would take
/// longer than printing it.
template <class T>
T& until_exit(T value) {
  static auto* const kept = new std::deque<T>;
  return kept->emplace_back(std::move(value));
}

}  // namespace shardplan
