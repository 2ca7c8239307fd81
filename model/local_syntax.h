#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/model.h"
#include "model/syntax/model_syntax.h"

namespace shardplan {

/// A model written per device: one program that every rank reads with its own `rank` and `group_size` in expressions, and
/// whose communication operators say what ranks exchange. It is one if its parallel_mode is hybrid_parallel, where
/// gradients are summed over all ranks, or stand_alone with such operators, where nothing is exchanged but what they say.

/// The rank for which the file is to be read; nothing for a model in the view of all devices. Adds faults for what has no
/// meaning in the one or the other: strategies where nothing is laid out, `ranks` and AllReduce where there are no ranks.
std::optional<LocalView> local_view(const ModelSyntax& syntax, const ParallelOptions& parallel,
                                    const std::optional<LocalView>& asked, std::vector<Diagnostic>& faults);

/// What one rank has of the file: without the operators that its `ranks` leave to others, and without the inputs and
/// parameters that only those read. `dims` are all of the file's, with `rank` and `group_size`.
ModelSyntax syntax_of_rank(const ModelSyntax& syntax, const LocalView& local,
                           const std::map<std::string, std::int64_t>& dims, std::vector<Diagnostic>& faults);

/// `begin` of the file's inputs and parameters, by name.
std::map<std::string, Shape> begins_of(const ModelSyntax& syntax, const std::map<std::string, std::int64_t>& dims,
                                       std::vector<Diagnostic>& faults);

}  // namespace shardplan
