#pragma once

#include <deque>
#include <utility>

namespace shardplan {

/// Keeps a value until the process ends and never destroys it: destroying a plan of a million operators would take
/// longer than printing it.
template <class T>
T& until_exit(T value) {
  static auto* const kept = new std::deque<T>;
  return kept->emplace_back(std::move(value));
}

}  // namespace shardplan
