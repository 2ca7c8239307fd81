#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace shardplan {

/// Names with the indices of repeats as '*': "layers.3.attn.weight" -> "layers.*.attn.weight". A part of a name that is
/// a number always comes from a repeat.
std::string folded_name(std::string_view name);

/// The outermost block that a name lies in, with its index if it repeats: "layers.3.attn.weight" -> "layers.3",
/// "wte.gather" -> "wte", "head" -> "head".
std::string top_block(std::string_view name);

/// The block to which an operator's result is attributed: two levels inside a repeat ("layers.*.attn"), else the
/// outermost block.
std::string holder_block(std::string_view name);

/// True if `name` is `scope` or within it.
bool is_within(std::string_view name, std::string_view scope);

/// The last part: "layers.3.attn.matmul" -> "matmul".
std::string_view last_part(std::string_view name);

/// A run of copies of one repeat (or a single name), as printed.
struct NameRun {
  std::string name;       // "layers.*" for all copies, "layers.1-11" or "layers.0" for some, "wte"
  std::size_t count = 1;  // number of names
  std::size_t first = 0;  // position of its first name
};

/// Joins consecutive copies of one folded name whose `keys` are equal: {"wte", "layers.0", "layers.1", "layers.2"}
/// with keys {a, b, c, c} gives "wte", "layers.0", "layers.1-2". A run of all copies is named with '*'. Requires at
/// most one index per name.
std::vector<NameRun> fold_runs(const std::vector<std::string>& names, const std::vector<std::string>& keys);

}  // namespace shardplan
