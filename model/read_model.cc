#include <algorithm>
#include <functional>
#include <set>
#include <tuple>

#include "graph/index_extents.h"
#include "model/blocks/block_template.h"
#include "model/model.h"
#include "model/model_instance.h"
#include "model/model_options.h"
#include "model/syntax/model_syntax.h"
#include "model/syntax/settings_table.h"

// A file becomes a graph in four steps, each of which goes on after faults as far as it can, so that one run shows them
// all: its text is read (model_syntax), dims get numbers (here), bodies get types (block_template), copies get names
// (model_instance).

namespace shardplan {
namespace {

/// The file's dims, in whatever order they stand; those that cannot be computed become 1 and a fault.
class DimEvaluator {
 public:
  DimEvaluator(const std::vector<BlockDim>& dims, const std::map<std::string, std::int64_t>& overrides,
               std::vector<Diagnostic>& faults)
      : overrides_(overrides), faults_(faults) {
    for (const BlockDim& dim : dims) dims_.emplace(dim.name.text, &dim);
    for (const auto& [name, value] : overrides) {
      if (!dims_.contains(name)) {
        const std::string nearest = nearest_name(name, names());
        faults.push_back(
            {{"--dim", 0, 0},
             fmt::format("no dim '{}'{}", name, nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)),
             dims_.empty() ? "the model has no dims" : fmt::format("the model's dims: {}", fmt::join(names(), ", "))});
      } else if (value < 1) {
        faults.push_back({{"--dim", 0, 0}, fmt::format("{} is {}; expected at least 1", name, value), ""});
      }
    }
  }

  std::map<std::string, std::int64_t> evaluate() {
    for (const auto& [name, dim] : dims_) value_of(name, *dim);
    return std::move(values_);
  }
  /// Whether some dim has no value of its own.
  bool is_broken() const { return !broken_.empty(); }

 private:
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, dim] : dims_) names.push_back(name);
    return names;
  }

  std::int64_t value_of(const std::string& name, const BlockDim& dim) {
    if (const auto known = values_.find(name); known != values_.end()) return known->second;
    if (const auto given = overrides_.find(name); given != overrides_.end()) {
      return values_[name] = std::max<std::int64_t>(given->second, 1);
    }
    if (!open_.insert(name).second) {
      fault(dim, "depends on itself");
      return values_[name] = 1;
    }
    std::int64_t value = 1;
    try {
      value = dim.expression.evaluate([&](std::string_view other) {
        const auto found = dims_.find(std::string(other));
        if (found != dims_.end()) {
          if (open_.size() > 200) throw InputError(SourcePlace{}, "dims that depend on each other more than 200 deep");
          const std::int64_t inner = value_of(found->first, *found->second);
          if (broken_.contains(found->first)) broken_.insert(name);  // told there
          return inner;
        }
        const std::string nearest = nearest_name(std::string(other), names());
        throw InputError({}, "no dim '{}' here{}", other,
                         nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest));
      });
      if (value < 1) {
        fault(dim, fmt::format("is {}; expected at least 1", value));
        value = 1;
      }
    } catch (const InputError& error) {
      fault(dim, error.diagnostics()[0].message);
    }
    open_.erase(name);
    return values_[name] = value;
  }

  void fault(const BlockDim& dim, const std::string& what) {
    if (!broken_.insert(dim.name.text).second) return;
    const bool is_sentence = what.starts_with("is ") || what.starts_with("depends");
    faults_.push_back({dim.name.place, fmt::format("dims: {}{} {}", dim.name.text, is_sentence ? "" : ":", what), ""});
  }

  const std::map<std::string, std::int64_t>& overrides_;
  std::vector<Diagnostic>& faults_;
  std::map<std::string, const BlockDim*> dims_;
  std::map<std::string, std::int64_t> values_;
  std::set<std::string> open_;    // being computed
  std::set<std::string> broken_;  // without a value, themselves or by what they depend on
};

std::string unchecked_note(const std::vector<std::string>& unchecked) {
  if (unchecked.empty()) return {};
  const auto shown = std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(unchecked.size()), 3);
  const std::string names = fmt::format("{}", fmt::join(unchecked.begin(), unchecked.begin() + shown, ", "));
  const std::size_t more = unchecked.size() - static_cast<std::size_t>(shown);
  return fmt::format("shapes behind {}{} were not checked", names, more == 0 ? "" : fmt::format(" and {} more", more));
}

/// In the file's order, each once.
[[noreturn]] void throw_faults(std::vector<Diagnostic> faults, const std::string& file, std::string note) {
  std::stable_sort(faults.begin(), faults.end(), [&](const Diagnostic& a, const Diagnostic& b) {
    const auto key = [&](const Diagnostic& d) {
      return std::make_tuple(d.place.file != file, d.place.line, d.place.column);
    };
    return key(a) < key(b);
  });
  std::vector<Diagnostic> unique;
  for (Diagnostic& fault : faults) {
    const bool is_known = std::any_of(unique.begin(), unique.end(), [&](const Diagnostic& other) {
      return other.place == fault.place && other.message == fault.message;
    });
    if (!is_known) unique.push_back(std::move(fault));
  }
  throw InputError(std::move(unique), std::move(note));
}

std::vector<StrategyLine> read_set_options(const std::map<std::string, std::string>& options,
                                           std::vector<Diagnostic>& faults) {
  std::vector<StrategyLine> lines;
  for (const auto& [name, entry] : options) {
    StrategyLine line;
    const std::string owner = read_set_option(name, entry, line.settings, faults);
    line.name = {owner, {"--set", 0, 0}};
    lines.push_back(std::move(line));
  }
  return lines;
}

/// The names in `repeat:` counts, and those that they are made of.
std::vector<std::string> repeat_dims(const ModelSyntax& syntax) {
  std::vector<std::string> names;
  const auto add = [&](const Expression& expression) {
    for (const std::string& name : expression.names()) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  };
  const auto add_body = [&](const BlockSyntax& body) {
    for (const OperatorSyntax& op : body.operators) {
      if (op.repeat) add(op.repeat->expression);
    }
  };
  add_body(syntax.body);
  for (const BlockSyntax& block : syntax.blocks) add_body(block);
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (const BlockDim& dim : syntax.body.dims) {
      if (dim.name.text == names[i]) add(dim.expression);
    }
  }
  return names;
}

std::string cluster_of(const ModelSyntax& syntax, const ParallelOptions& parallel) {
  if (syntax.cluster) return syntax.cluster->text;
  return parallel.device == "GPU" ? "dgx-a100" : "ascend-910";
}

}  // namespace

Model read_model(const std::string& path, const ModelOverrides& overrides) {
  return read_model_text(read_text_file(path), path, overrides);
}

Model read_model_text(const std::string& text, const std::string& file, const ModelOverrides& overrides) {
  std::vector<Diagnostic> faults;
  const ModelSyntax syntax = read_model_syntax(text, file, faults);

  Model model;
  model.name = syntax.name;
  model.file = file;
  model.text = text;
  DimEvaluator dims(syntax.body.dims, overrides.dims, faults);
  model.dims = dims.evaluate();
  for (const BlockDim& dim : syntax.body.dims) {
    model.dim_order.push_back(dim.name.text);
    if (dim.expression.literal()) model.free_dims.push_back(dim.name.text);
  }
  model.repeat_dims = repeat_dims(syntax);
  model.overrides = overrides;
  if (syntax.parallel) model.parallel = read_parallel(*syntax.document, *syntax.parallel, faults);
  if (syntax.training) {
    model.training = read_training(*syntax.document, *syntax.training, faults);
    if (!syntax.loss)
      faults.push_back({model.training->place, "training: the model has no loss",
                        "loss: NAME names the scalar that training makes small"});
  }
  SettingsTable settings(syntax.strategies, read_set_options(overrides.strategies, faults));

  TemplateOptions options;
  options.dtype = syntax.dtype.value_or(DataType::kF32);
  if (model.training && model.training->mixed_precision) options.dtype = *model.training->mixed_precision;
  OperatorGraphBuilder builder(model.name);
  TemplateLibrary library(syntax, model.dims, options, builder, faults);
  std::vector<std::string> unchecked;
  // What follows from a dim without a value would only be confusing.
  if (dims.is_broken()) throw_faults(std::move(faults), file, "shapes were not checked");
  const BlockTemplate* body = library.file_template(unchecked);
  if (body && body->loss && !body->types[*body->loss].shape.empty()) {
    faults.push_back(
        {syntax.loss->place,
         fmt::format("loss: {} is {}; expected a scalar", syntax.loss->text, to_string(body->types[*body->loss].shape)),
         "reduce it: {op: ReduceMean, in: " + syntax.loss->text + "}"});
  }
  if (!body) throw_faults(std::move(faults), file, unchecked_note(unchecked));
  instantiate_model(*body, model.parallel, model.training ? &*model.training : nullptr, settings, builder,
                    model.notices, model.parallel.device, faults);
  if (!faults.empty()) throw_faults(std::move(faults), file, unchecked_note(unchecked));
  model.cluster = cluster_of(syntax, model.parallel);
  set_index_extents(builder);
  model.graph = builder.build();
  return model;
}

}  // namespace shardplan
