#include "model/local_model.h"

#include "base/error.h"
#include "model/model_source.h"

namespace shardplan {
namespace {

constexpr std::int64_t kMostOperators = 2'000'000;  // every rank has a graph of its own

}  // namespace

std::vector<std::shared_ptr<const Model>> models_of_ranks(const Model& model, std::int64_t num_devices) {
  SHARDPLAN_CHECK(model.local.has_value());
  if (model.training && model.training->micro_batches > 1) {
    throw InputError(
        model.training->place,
        "training: micro_batches is for models in the view of all devices; one step of a model written per "
        "device is one batch");
  }
  const auto operators = static_cast<std::int64_t>(model.graph.operators().size());
  if (operators * num_devices > kMostOperators) {
    throw InputError(model.parallel.parallel_mode_place,
                     "{} operators on each of {} ranks: more than {} together in a model written per device", operators,
                     num_devices, kMostOperators);
  }
  std::vector<std::shared_ptr<const Model>> ranks;
  for (std::int64_t rank = 0; rank < num_devices; ++rank) {
    ModelOverrides overrides = model.overrides;
    overrides.local = LocalView{rank, num_devices};
    ranks.push_back(std::make_shared<const Model>(model.source->at(overrides)));
  }
  return ranks;
}

}  // namespace shardplan
