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

/// Adds the dims that `used` ones are made of.
void add_dims_behind(const std::vector<BlockDim>& dims, std::set<std::string>& used);

}  // namespace shardplan
