#pragma once

#include <vector>

#include "tests/operators/cases.h"

namespace shardplan {

/// The instances of each family, defined in its test.
std::vector<CaseMaker> activation_cases();
std::vector<CaseMaker> arithmetic_cases();
std::vector<CaseMaker> attention_cases();
std::vector<CaseMaker> batch_norm_cases();
std::vector<CaseMaker> comparison_cases();
std::vector<CaseMaker> contraction_cases();
std::vector<CaseMaker> conversion_cases();
std::vector<CaseMaker> convolution_cases();
std::vector<CaseMaker> dropout_cases();
std::vector<CaseMaker> elementwise_loss_cases();
std::vector<CaseMaker> expert_cases();
std::vector<CaseMaker> group_norm_cases();
std::vector<CaseMaker> indexing_cases();
std::vector<CaseMaker> key_value_cache_cases();
std::vector<CaseMaker> loss_cases();
std::vector<CaseMaker> masking_cases();
std::vector<CaseMaker> normalisation_cases();
std::vector<CaseMaker> optimizer_cases();
std::vector<CaseMaker> pooling_cases();
std::vector<CaseMaker> rearranging_cases();
std::vector<CaseMaker> recurrent_cases();
std::vector<CaseMaker> reduction_cases();
std::vector<CaseMaker> resampling_cases();
std::vector<CaseMaker> reshaping_cases();
std::vector<CaseMaker> rotary_cases();
std::vector<CaseMaker> scan_cases();
std::vector<CaseMaker> slicing_cases();
std::vector<CaseMaker> softmax_cases();
std::vector<CaseMaker> sorting_cases();
std::vector<CaseMaker> sparse_update_cases();
std::vector<CaseMaker> splitting_cases();
std::vector<CaseMaker> vector_cases();

}  // namespace shardplan
