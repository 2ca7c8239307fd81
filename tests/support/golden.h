#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/write_files.h"
#include "tests/support/files.h"

namespace shardplan {

/// Compares a page with tests/golden/<name>. With SHARDPLAN_RENEW=1 in the environment the file is written instead:
/// check the changes with `git diff tests/golden` before you commit them.
inline void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = "tests/golden/" + name;
  if (std::getenv("SHARDPLAN_RENEW") != nullptr) {
    write_file(path, text);
    return;
  }
  EXPECT_EQ(text, content_of(path))
      << "if the new page is right: SHARDPLAN_RENEW=1 ./run test, then git diff tests/golden";
}

}  // namespace shardplan
