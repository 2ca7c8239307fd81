#include "graph/row_updates.h"

#include <fmt/format.h>

#include <string_view>

#include "base/error.h"

namespace shardplan {

void check_row_updates(const OperatorGraph& graph, const GraphOperator& lookup, const TrainingOptions& options) {
  const GraphTensor& table = graph.tensor(lookup.operands[0]);
  const auto refuse = [&](std::string_view found, std::string_view wanted) {
    throw InputError(lookup.place, "{}: only the rows of {} that were looked up are updated, but {}; expected {}",
                     lookup.name, table.name, found, wanted);
  };
  const bool has_update = options.optimizer == "sgd" || options.optimizer == "adam";
  if (!has_update) refuse("the optimizer is " + options.optimizer, "sgd or adam, or a lookup by Gather");
  if (options.weight_decay != 0) refuse("weight_decay shrinks all rows", "weight_decay: 0, or a lookup by Gather");
  if (options.clip_norm > 0) {
    refuse("clip_norm needs the norm of its gradient", "no clip_norm, or a lookup by Gather");
  }
  if (options.micro_batches > 1) {
    refuse("micro_batches add up whole gradients", "one micro-batch, or a lookup by Gather");
  }
  if (options.exchanged_over || options.summed_means) {
    refuse("devices exchange whole gradients", "auto_parallel or semi_auto_parallel, or a lookup by Gather");
  }
  if (table.pins && table.pins->gradient_strategy) {
    refuse("gradient_strategy lays out its gradient", "state_strategy, or a lookup by Gather");
  }
  if (table.comm_fusion.value_or(0) > 0) {
    refuse("comm_fusion joins the exchanges of gradients", "comm_fusion: 0, or a lookup by Gather");
  }
  if (table.readers.size() > 1) {
    refuse(fmt::format("{} operators read it", table.readers.size()), "one, or lookups by Gather");
  }
  if (element_bytes(table.type.dtype) < element_bytes(DataType::kF32) && options.master_copy) {
    refuse(fmt::format("it is {} and its copy in f32 is updated", to_string(table.type.dtype)),
           "a table of f32 (dtype: f32), or master_copy: false");
  }
}

}  // namespace shardplan
