#pragma once

#include <fmt/format.h>

#include <string>

#include "base/random.h"
#include "model/read_model.h"

namespace shardplan {

/// The model with places for about two thirds of its operators.
inline std::string with_places(std::string text, const std::string& parallel, int workers, Random& random) {
  std::string entries;
  const Model model = read_model_text(text, "m.yaml");
  for (const GraphOperator& op : model.graph.operators()) {
    if (random.below(3) == 0) continue;
    entries += fmt::format("  {}: {{place: (\"MS_WORKER\", {})}}\n", op.name, random.below(workers));
  }
  return text + "cluster: dgx-a100\nparallel: " + parallel + "\nstrategies:\n" + entries;
}

}  // namespace shardplan
