#pragma once

#include <string>
#include <string_view>

namespace shardplan {

/// SHA-256 (FIPS 180-4) of a text, in lower-case hexadecimal: identifies the version of the model or cluster file from
/// which a plan was made.
std::string sha256(std::string_view text);

}  // namespace shardplan
