#pragma once

#include <string>
#include <string_view>

namespace shardplan {

/// A text of the user for a message: at most 100 bytes, with '?' for every byte that is not printable ASCII, so that
/// neither its length nor invalid UTF-8 garbles the line.
inline std::string shortened(std::string_view text) {
  constexpr std::size_t kMost = 100;
  std::string result(text.substr(0, kMost));
  for (char& c : result) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text.size() > kMost ? result + "..." : result;
}

}  // namespace shardplan
