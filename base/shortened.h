#pragma once

#include <string>
#include <string_view>

namespace shardplan {

/// What a user gave, for a message: at most 100 bytes of it, and bytes that are no printable ASCII as '?', so that
/// neither its length nor bad UTF-8 spoils the line.
inline std::string shortened(std::string_view text) {
  constexpr std::size_t kMost = 100;
  std::string result(text.substr(0, kMost));
  for (char& c : result) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text.size() > kMost ? result + "..." : result;
}

}  // namespace shardplan
