#include "model/mindspore_compat.h"

namespace shardplan {

void check_mindspore_shard(ParallelOptions& parallel, std::vector<Diagnostic>& faults) {
  const auto refuse = [&](const SourcePlace& place, const char* needed) {
    faults.push_back(
        {place, fmt::format("compat: mindspore-1.7: shard needs {}", needed), "leave out compat, or shard"});
  };
  if (parallel.parallel_mode != ParallelMode::kAutoParallel) {
    refuse(parallel.parallel_mode_place, "parallel_mode auto_parallel");
  }
  if (parallel.search_place.line == 0) {
    parallel.search = "propagation";
  } else if (parallel.search != "propagation") {
    refuse(parallel.search_place, "search_mode sharding_propagation");
  }
  if (parallel.mode_place.line > 0 && !parallel.is_pynative) refuse(parallel.mode_place, "mode pynative");
  if (parallel.device && parallel.device->value != "Ascend") refuse(parallel.device->place, "device Ascend");
}

void check_mindspore_place(const ParallelOptions& parallel, const Placed<int>& last, bool is_sharded,
                           std::vector<Diagnostic>& faults) {
  const auto refuse = [&](const SourcePlace& place, const std::string& with) {
    faults.push_back({place, fmt::format("compat: mindspore-1.7: place is not mixed with {}", with),
                      "leave out compat, or one of them"});
  };
  const bool has_mode = parallel.parallel_mode_place.line > 0;
  if (has_mode && parallel.parallel_mode != ParallelMode::kStandAlone) {
    refuse(parallel.parallel_mode_place, "a parallel_mode; every worker runs its part alone");
  }
  if (is_sharded) refuse(last.place, "strategies");
  if (parallel.is_pynative) refuse(parallel.mode_place, "mode pynative");
}

}  // namespace shardplan
