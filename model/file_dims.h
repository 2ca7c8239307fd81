#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/syntax/model_syntax.h"

namespace shardplan {

/// The values of a file's dims. They may refer to each other in any order; --dim replaces a dim's expression by a number.
struct FileDims {
  std::map<std::string, std::int64_t> values;
  bool is_complete = true;  // false: at least one dim has no value of its own and counts as 1, with a fault
};

/// `known` are names that the file may use as well; they are among the values, and no dim may be called so.
FileDims evaluate_file_dims(const std::vector<BlockDim>& dims, const std::map<std::string, std::int64_t>& overrides,
                            std::vector<Diagnostic>& faults, const std::map<std::string, std::int64_t>& known = {});

/// The same with dims padded: those with `pad` are rounded up to a multiple of it, or are what `padded` says; all others
/// follow, but none becomes smaller than without padding or is no whole number: it keeps its size then (D: H/heads with
/// more heads, the slots of more experts). `real` are all values without padding, `given` those of them that replace an
/// expression.
std::map<std::string, std::int64_t> padded_file_dims(const std::vector<BlockDim>& dims,
                                                     const std::map<std::string, std::int64_t>& real,
                                                     const std::map<std::string, std::int64_t>& given,
                                                     const std::map<std::string, std::int64_t>& padded);

/// Adds the dims that `used` ones are made of.
void add_dims_behind(const std::vector<BlockDim>& dims, std::set<std::string>& used);

}  // namespace shardplan
