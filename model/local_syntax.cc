#include "model/local_syntax.h"

#include <algorithm>
#include <set>

#include "operators/catalogue.h"
#include "operators/families/communication.h"

// A model per device is one text that is read once per rank. So the checks are of two kinds: what has no meaning in the
// other view (ranks in a model of all devices, layouts in one per device), refused once for the text; and what a rank
// leaves out, found by following names from the operators that it runs to the inputs and parameters that these read.

namespace shardplan {
namespace {

/// More ranks than the file is read for, one after the other.
constexpr std::int64_t kMostRanks = 1024;

template <class Visit>
void for_each_line(const ModelSyntax& syntax, const Visit& visit) {
  for (const OperatorSyntax& op : syntax.body.operators) visit(op);
  for (const BlockSyntax& block : syntax.blocks) {
    for (const OperatorSyntax& op : block.operators) visit(op);
  }
}

template <class Visit>
void for_each_tensor(const BlockSyntax& body, const Visit& visit) {
  for (const TensorSyntax& input : body.inputs) visit(input);
  for (const TensorSyntax& parameter : body.parameters) visit(parameter);
}

bool communicates(const OperatorSyntax& op) {
  const OperatorType* type = op.is_block ? nullptr : find_operator_type(op.type.text);
  return type != nullptr && !type->is_internal && is_communication(*type);
}

bool has_ranks(const ModelSyntax& syntax) {
  bool any = false;
  for_each_line(syntax, [&](const OperatorSyntax& op) { any = any || op.ranks || communicates(op); });
  return any;
}

/// In the view of all devices.
void refuse_ranks(const ModelSyntax& syntax, std::vector<Diagnostic>& faults) {
  constexpr const char* kHint =
      "parallel_mode: hybrid_parallel sums gradients over all ranks, stand_alone does not exchange them";
  for_each_line(syntax, [&](const OperatorSyntax& op) {
    if (communicates(op)) {
      faults.push_back({op.type.place,
                        fmt::format("{}: {} is an operator of models that are written per device; this one is the view "
                                    "of all devices, and what they exchange follows from its layouts",
                                    op.name.text, op.type.text),
                        kHint});
    } else if (op.ranks) {
      faults.push_back(
          {op.ranks->place, fmt::format("{}: ranks: only a model written per device has them", op.name.text), kHint});
    }
  });
  const auto refuse = [&](const TensorSyntax& tensor) {
    if (tensor.begin) {
      faults.push_back({tensor.begin->place,
                        fmt::format("{}: begin: only a model written per device has pieces", tensor.name.text), kHint});
    }
  };
  for_each_tensor(syntax.body, refuse);
  for (const BlockSyntax& block : syntax.blocks) for_each_tensor(block, refuse);
}

/// In a model written per device: what lays something out, and what says of exchanges what none has.
void refuse_layouts(const ModelSyntax& syntax, bool is_hybrid, std::vector<Diagnostic>& faults) {
  const auto refuse = [&](const SourcePlace& place, const std::string& what, std::string hint = "") {
    faults.push_back({place,
                      what + " has no meaning in a model written per device: each rank holds what the file says and "
                             "nothing is searched",
                      std::move(hint)});
  };
  const auto check = [&](const Settings& settings, const std::string& name) {
    const auto one = [&](const auto& setting, const char* key) {
      if (setting) refuse(setting->place, fmt::format("{}: {}", name, key));
    };
    one(settings.in_strategy, "in_strategy");
    one(settings.out_strategy, "out_strategy");
    one(settings.strategy, "strategy");
    one(settings.level, "level");
    one(settings.parallel_mode, "parallel_mode");
    one(settings.worker, "place");
    one(settings.gather_again, "gather_again");
    if (settings.comm_fusion && !is_hybrid) {
      faults.push_back(
          {settings.comm_fusion->place,
           fmt::format("{}: comm_fusion: in stand_alone no gradients are exchanged that could be joined", name),
           "parallel_mode: hybrid_parallel sums them over all ranks"});
    }
    one(settings.gradient_strategy, "gradient_strategy");
    one(settings.state_strategy, "state_strategy");
    one(settings.parallel_optimizer, "parallel_optimizer");
  };
  for_each_line(syntax, [&](const OperatorSyntax& op) {
    check(op.settings, op.name.text);
    if (!op.ranks || !op.ranks->dims.empty()) return;
    faults.push_back({op.ranks->place, fmt::format("{}: ranks is empty: no rank has it", op.name.text),
                      "leave the operator out, or `ranks` for all ranks to have it"});
  });
  for (const StrategyLine& line : syntax.strategies) check(line.settings, line.name.text);
  const auto check_tensor = [&](const TensorSyntax& tensor) {
    check(tensor.settings, tensor.name.text);
    if (is_hybrid && tensor.layerwise_parallel && tensor.settings.comm_fusion) {
      faults.push_back(
          {tensor.settings.comm_fusion->place,
           fmt::format("{}: comm_fusion: its gradient is not exchanged, since every rank has a {} of its own "
                       "(layerwise_parallel)",
                       tensor.name.text, tensor.name.text),
           ""});
    }
  };
  for_each_tensor(syntax.body, check_tensor);
  for (const BlockSyntax& block : syntax.blocks) {
    for_each_tensor(block, check_tensor);
    for_each_tensor(block, [&](const TensorSyntax& tensor) {
      if (!tensor.begin) return;
      faults.push_back({tensor.begin->place,
                        fmt::format("{}.{}: begin: only inputs and parameters of the file itself have one",
                                    block.name.text, tensor.name.text),
                        "declare it at the file's level and pass it to the block"});
    });
  }
  if (syntax.is_pynative && syntax.is_pynative->value) refuse(syntax.is_pynative->place, "mode: pynative");
  if (!syntax.parallel || !syntax.parallel->is_map()) return;
  if (const YamlNode* mesh = syntax.parallel->find("mesh"); mesh != nullptr && mesh->is_scalar()) {
    refuse(syntax.document->place(*mesh), "parallel: mesh: auto");
  }
  static const std::set<std::string> kKnown = {"parallel_mode", "device_num", "gradients_mean", "mesh", "device"};
  for (const YamlEntry& entry : syntax.parallel->entries) {
    const std::string said = fmt::format("parallel: {} ", entry.key.text);  // by what read the options
    const bool is_refused = std::any_of(faults.begin(), faults.end(),
                                        [&](const Diagnostic& fault) { return fault.message.starts_with(said); });
    if (!kKnown.contains(entry.key.text) && !is_refused) {
      const bool is_fusion = entry.key.text == "comm_fusion" && is_hybrid;
      refuse(syntax.document->place(entry.key), "parallel: " + entry.key.text,
             is_fusion ? "`comm_fusion: 1` beside a block or a parameter joins gradients of equal ids" : "");
    }
  }
}

std::string first_part(const std::string& path) { return path.substr(0, path.find('.')); }

std::set<std::string> names_read(const std::vector<OperatorSyntax>& operators) {
  std::set<std::string> names;
  for (const OperatorSyntax& op : operators) {
    for (const Word& word : op.in) names.insert(first_part(word.text));
  }
  return names;
}

}  // namespace

std::optional<LocalView> local_view(const ModelSyntax& syntax, const ParallelOptions& parallel,
                                    const std::optional<LocalView>& asked, std::vector<Diagnostic>& faults) {
  const bool is_hybrid = parallel.parallel_mode == ParallelMode::kHybridParallel;
  const bool is_alone = parallel.parallel_mode == ParallelMode::kStandAlone;
  if (!is_hybrid && !(is_alone && has_ranks(syntax))) {
    refuse_ranks(syntax, faults);
    return std::nullopt;
  }
  refuse_layouts(syntax, is_hybrid, faults);
  if (!asked && !parallel.device_num) {
    faults.push_back({parallel.place,
                      "parallel: device_num is missing: a model written per device says for how many it is written",
                      "as in: {parallel_mode: hybrid_parallel, device_num: 8}"});
  }
  const LocalView local = asked ? *asked : LocalView{0, parallel.device_num ? parallel.device_num->value : 1};
  if (local.group_size > kMostRanks) {
    faults.push_back({parallel.device_num ? parallel.device_num->place : parallel.place,
                      fmt::format("a model written per device is read for each of {} ranks; at most {}",
                                  local.group_size, kMostRanks),
                      ""});
  }
  return local;
}

ModelSyntax syntax_of_rank(const ModelSyntax& syntax, const LocalView& local,
                           const std::map<std::string, std::int64_t>& dims, std::vector<Diagnostic>& faults) {
  ModelSyntax own = syntax;
  const auto value = [&](const PlacedExpression& rank, const std::string& name) -> std::int64_t {
    try {
      const std::int64_t found = rank.expression.evaluate([&](std::string_view dim) {
        const auto at = dims.find(std::string(dim));
        if (at == dims.end()) throw InputError(SourcePlace{}, "no dim '{}' here", dim);
        return at->second;
      });
      if (found >= 0 && found < local.group_size) return found;
      faults.push_back(
          {rank.place,
           fmt::format("{}: ranks: there is no rank {}: they are 0 to {}", name, found, local.group_size - 1), ""});
    } catch (const InputError& error) {
      faults.push_back({rank.place, fmt::format("{}: ranks: {}", name, error.diagnostics()[0].message), ""});
    }
    return local.rank;
  };
  const auto has = [&](const OperatorSyntax& op) {
    bool is_own = !op.ranks;
    for (std::size_t i = 0; op.ranks && i < op.ranks->dims.size(); ++i) {
      if (value(op.ranks->dims[i], op.name.text) == local.rank) is_own = true;
    }
    return is_own;
  };
  const auto leave_out = [&](BlockSyntax& body) {
    std::vector<OperatorSyntax> left_out;
    std::vector<OperatorSyntax> kept;
    for (OperatorSyntax& op : body.operators) (has(op) ? kept : left_out).push_back(std::move(op));
    body.operators = std::move(kept);
    if (left_out.empty()) return;
    const std::set<std::string> read = names_read(body.operators);
    const std::set<std::string> was_read = names_read(left_out);
    const auto is_idle = [&](const TensorSyntax& tensor) {
      return was_read.contains(tensor.name.text) && !read.contains(tensor.name.text);
    };
    if (body.is_file()) std::erase_if(body.inputs, is_idle);
    std::erase_if(body.parameters, is_idle);
    std::erase_if(body.constants, is_idle);
    if (!body.outputs) return;
    std::erase_if(*body.outputs, [&](const Word& output) {
      return std::any_of(left_out.begin(), left_out.end(), [&](const OperatorSyntax& op) {
        const bool is_result =
            std::any_of(op.out.begin(), op.out.end(), [&](const Word& name) { return name.text == output.text; });
        return is_result || op.name.text == first_part(output.text);
      });
    });
  };
  leave_out(own.body);
  for (BlockSyntax& block : own.blocks) leave_out(block);
  return own;
}

std::map<std::string, Shape> begins_of(const ModelSyntax& syntax, const std::map<std::string, std::int64_t>& dims,
                                       std::vector<Diagnostic>& faults) {
  std::map<std::string, Shape> begins;
  for_each_tensor(syntax.body, [&](const TensorSyntax& tensor) {
    if (!tensor.begin) return;
    Shape begin;
    for (const PlacedExpression& part : tensor.begin->dims) {
      try {
        const std::int64_t first = part.expression.evaluate([&](std::string_view dim) {
          const auto at = dims.find(std::string(dim));
          if (at == dims.end()) throw InputError(SourcePlace{}, "no dim '{}' here", dim);
          return at->second;
        });
        if (first < 0) throw InputError(SourcePlace{}, "{} is negative", first);
        begin.push_back(first);
      } catch (const InputError& error) {
        faults.push_back(
            {part.place, fmt::format("{}: begin: {}", tensor.name.text, error.diagnostics()[0].message), ""});
      }
    }
    if (tensor.shape && begin.size() != tensor.shape->dims.size() &&
        tensor.begin->dims.size() != tensor.shape->dims.size()) {
      faults.push_back({tensor.begin->place,
                        fmt::format("{}: begin has {} positions, the tensor {} dimensions", tensor.name.text,
                                    tensor.begin->dims.size(), tensor.shape->dims.size()),
                        ""});
    }
    begins.emplace(tensor.name.text, std::move(begin));
  });
  return begins;
}

}  // namespace shardplan
