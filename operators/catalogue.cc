#include "operators/catalogue.h"

#include <algorithm>
#include <iterator>

#include "operators/families/activation.h"
#include "operators/families/arithmetic.h"
#include "operators/families/attention.h"
#include "operators/families/batch_norm.h"
#include "operators/families/communication.h"
#include "operators/families/comparison.h"
#include "operators/families/contraction.h"
#include "operators/families/conversion.h"
#include "operators/families/convolution.h"
#include "operators/families/dropout.h"
#include "operators/families/elementwise_loss.h"
#include "operators/families/experts.h"
#include "operators/families/group_norm.h"
#include "operators/families/indexing.h"
#include "operators/families/key_value_cache.h"
#include "operators/families/loss.h"
#include "operators/families/masking.h"
#include "operators/families/normalisation.h"
#include "operators/families/optimizer.h"
#include "operators/families/pooling.h"
#include "operators/families/rearranging.h"
#include "operators/families/recurrent.h"
#include "operators/families/reduction.h"
#include "operators/families/resampling.h"
#include "operators/families/reshaping.h"
#include "operators/families/rotary.h"
#include "operators/families/scan.h"
#include "operators/families/slicing.h"
#include "operators/families/softmax.h"
#include "operators/families/sorting.h"
#include "operators/families/sparse_update.h"
#include "operators/families/splitting.h"
#include "operators/families/vectors.h"

namespace shardplan {
namespace {

std::vector<OperatorType> make_catalogue() {
  std::vector<OperatorType> all;
  for (const auto family : {activation_operators,    arithmetic_operators,       attention_operators,
                            batch_norm_operators,    communication_operators,    comparison_operators,
                            contraction_operators,   conversion_operators,       convolution_operators,
                            dropout_operators,       elementwise_loss_operators, expert_operators,
                            group_norm_operators,    indexing_operators,         key_value_cache_operators,
                            loss_operators,          masking_operators,          normalisation_operators,
                            optimizer_operators,     pooling_operators,          rearranging_operators,
                            recurrent_operators,     reduction_operators,        resampling_operators,
                            reshaping_operators,     rotary_operators,           scan_operators,
                            slicing_operators,       softmax_operators,          sorting_operators,
                            sparse_update_operators, splitting_operators,        vector_operators}) {
    std::ranges::move(family(), std::back_inserter(all));
  }
  std::ranges::sort(all, {}, &OperatorType::name);
  return all;
}

}  // namespace

const std::vector<OperatorType>& operator_catalogue() {
  static const std::vector<OperatorType> catalogue = make_catalogue();
  return catalogue;
}

const OperatorType* find_operator_type(std::string_view name) {
  const std::vector<OperatorType>& all = operator_catalogue();
  const auto at =
      std::ranges::lower_bound(all, name, {}, [](const OperatorType& type) -> std::string_view { return type.name; });
  return at != all.end() && at->name == name ? &*at : nullptr;
}

}  // namespace shardplan
