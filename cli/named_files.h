#pragma once

#include <string>
#include <vector>

#include "cli/command_table.h"

namespace shardplan {

/// A value given for an option.
struct GivenValue {
  const Option* option;
  std::string text;
};

/// Throws InputError that names each file that a command would write (`Option::writing`) although it also reads it or
/// writes it for another option. Symbolic links and other spellings of a path count; an older output may be replaced.
void check_named_files(const std::vector<GivenValue>& given);

}  // namespace shardplan
