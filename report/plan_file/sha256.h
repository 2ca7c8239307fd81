#pragma once

#include <string>
#include <string_view>

namespace shardplan {

/// SHA-256 (FIPS 180-4) of a text, in lower-case hexadecimal: names the version of a model or cluster file that a plan
/// was made from.
std::string sha256(std::string_view text);

}  // namespace shardplan
