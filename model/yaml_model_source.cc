#include "model/yaml_model_source.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "graph/autocast.h"
#include "graph/float8.h"
#include "graph/fuse_attention.h"
#include "graph/index_extents.h"
#include "graph/int8_weights.h"
#include "graph/pad.h"
#include "model/blocks/template_library.h"
#include "model/file_dims.h"
#include "model/local_syntax.h"
#include "model/mindspore_compat.h"
#include "model/model_instance.h"
#include "model/model_options.h"
#include "model/parameter_pins.h"
#include "model/product_marks.h"
#include "model/syntax/model_syntax.h"
#include "model/syntax/settings_table.h"

// A file becomes a graph in four steps, each of which continues after faults as far as it can, so that one run shows
// them all: its text is parsed (model_syntax), dims get numbers (file_dims), blocks get types (block_template), copies
// get names (model_instance). Only the last three depend on the sizes asked for.

namespace shardplan {
namespace {

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

std::vector<std::string> texts(const std::vector<Word>& words) {
  std::vector<std::string> result;
  for (const Word& word : words) result.push_back(word.text);
  return result;
}

/// `mixed_precision` is the type of all tensors without a type of their own; what else says one must agree with it.
void check_types_of_model(const ModelSyntax& syntax, const Model& model, std::vector<Diagnostic>& faults) {
  if (!model.training || !model.training->mixed_precision) return;
  const DataType mixed = *model.training->mixed_precision;
  if (syntax.autocast) {
    faults.push_back(
        {syntax.autocast->place,
         "autocast casts f32 weights where products read them; mixed_precision stores weights of two bytes",
         "leave out one of the two"});
  }
  if (!syntax.dtype || *syntax.dtype == DataType::kF32 || *syntax.dtype == mixed) return;
  faults.push_back({syntax.document->place(*syntax.training->find("mixed_precision")),
                    fmt::format("training: mixed_precision is {}, but dtype of the file is {}", to_string(mixed),
                                to_string(*syntax.dtype)),
                    "keep one of them, or dtype: f32"});
}

/// What `int8_weights` and `fp8` say about products.
void set_product_types(const ModelSyntax& syntax, Model& model, std::vector<Diagnostic>& faults) {
  model.int8_weights = texts(syntax.int8_weights);
  model.fp8 = texts(syntax.fp8);
  if (!syntax.int8_weights.empty() && model.training) {
    faults.push_back({syntax.int8_weights[0].place, "int8_weights is for inference; the file has a training section",
                      "fp8: [...] lets products of training multiply in f8"});
    return;
  }
  const std::vector<OperatorId> in_float8 = marked_products(model.graph, "fp8", syntax.fp8, faults);
  std::vector<OperatorId> narrow = marked_products(model.graph, "int8_weights", syntax.int8_weights, faults);
  std::vector<OperatorId> both;
  std::ranges::set_intersection(in_float8, narrow, std::back_inserter(both));
  if (!both.empty()) {
    const std::string& name = model.graph.operators()[both[0]].name.str();
    faults.push_back({syntax.int8_weights[0].place, fmt::format("{} is marked by int8_weights and by fp8", name), {}});
  }
  if (!faults.empty()) return;
  if (!in_float8.empty()) {
    const StoredWeights weights = model.training ? StoredWeights::kAsDeclared : StoredWeights::kInFloat8;
    model.graph = products_in_float8(model.graph, in_float8, weights);
    narrow = marked_products(model.graph, "int8_weights", syntax.int8_weights, faults);
  }
  if (!narrow.empty()) model.graph = weights_in_int8(model.graph, narrow);
}

/// What rank 0 finds is a fault of all ranks; what another one finds is its own.
void add_reader(const LocalView& local, std::vector<Diagnostic>& faults) {
  if (local.rank == 0) return;
  for (Diagnostic& fault : faults) {
    if (!fault.hint.empty()) fault.hint += "; ";
    fault.hint += fmt::format("as rank {} of {} reads the file", local.rank, local.group_size);
  }
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
  const auto add_block = [&](const BlockSyntax& block) {
    for (const OperatorSyntax& op : block.operators) {
      if (op.repeat) add(op.repeat->expression);
    }
  };
  add_block(syntax.body);
  for (const BlockSyntax& block : syntax.blocks) add_block(block);
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (const BlockDim& dim : syntax.body.dims) {
      if (dim.name.text == names[i]) add(dim.expression);
    }
  }
  return names;
}

/// The first dimension of the first input that has one.
std::string batch_of(const ModelSyntax& syntax) {
  for (const TensorSyntax& input : syntax.body.inputs) {
    if (input.shape && !input.shape->dims.empty()) return input.shape->dims[0].expression.text();
  }
  return {};
}

Placed<std::string> cluster_of(const ModelSyntax& syntax, const ParallelOptions& parallel) {
  if (syntax.cluster) return {syntax.cluster->text, syntax.cluster->place};
  const bool is_gpu = parallel.device && parallel.device->value == "GPU";
  return {is_gpu ? "dgx-a100" : "ascend-910", {}};
}

/// The file's dims that nothing depends on.
std::vector<std::string> unused_dims(const ModelSyntax& syntax, std::set<std::string> used) {
  const auto add = [&](const std::optional<ShapeSyntax>& list) {
    for (std::size_t i = 0; list && i < list->dims.size(); ++i) {
      for (const std::string& name : list->dims[i].expression.names()) used.insert(name);
    }
  };
  for (const TensorSyntax& input : syntax.body.inputs) add(input.begin);
  for (const TensorSyntax& parameter : syntax.body.parameters) add(parameter.begin);
  for (const OperatorSyntax& op : syntax.body.operators) add(op.ranks);
  add_dims_behind(syntax.body.dims, used);
  std::vector<std::string> unused;
  for (const BlockDim& dim : syntax.body.dims) {
    if (!used.contains(dim.name.text)) unused.push_back(dim.name.text);
  }
  return unused;
}

/// Which dims the model has at other sizes.
std::string padding_note(const std::map<std::string, std::int64_t>& padded,
                         const std::map<std::string, std::int64_t>& real) {
  std::vector<std::string> dims;
  for (const auto& [name, size] : padded) {
    if (size != real.at(name)) dims.push_back(fmt::format("{} is {} instead of {}", name, size, real.at(name)));
  }
  return fmt::format("without padding the model is right; with it {}", fmt::join(dims, ", "));
}

std::vector<Diagnostic> padded_per_device(const ModelSyntax& syntax, const std::map<std::string, std::int64_t>& padded,
                                          const std::map<std::string, std::int64_t>& real) {
  std::vector<Diagnostic> faults;
  for (const BlockDim& dim : syntax.body.dims) {
    if (!dim.pad || padded.at(dim.name.text) == real.at(dim.name.text)) continue;
    faults.push_back(
        {dim.name.place,
         fmt::format("dims: {}: pad is for models of all devices; this one is written per device", dim.name.text),
         "write the padded size and mask it"});
  }
  return faults;
}

bool has_strategies(OperatorGraphBuilder& graph) {
  for (std::size_t i = 0; i < graph.num_operators(); ++i) {
    const UserStrategy& strategy = graph.op(OperatorId(i)).strategy;
    if (!strategy.in.empty() || !strategy.out.empty()) return true;
  }
  return false;
}

}  // namespace

std::shared_ptr<const YamlModelSource> YamlModelSource::parse(std::string text, std::string file) {
  const std::shared_ptr<YamlModelSource> source(new YamlModelSource());
  source->syntax_ = read_model_syntax(text, file, source->faults_);
  source->text_ = std::move(text);
  source->file_ = std::move(file);
  return source;
}

Model YamlModelSource::at(const ModelOverrides& overrides) const {
  const bool pads = overrides.pads && std::any_of(syntax_.body.dims.begin(), syntax_.body.dims.end(),
                                                  [](const BlockDim& dim) { return dim.pad.has_value(); });
  Model real = read(overrides, nullptr);
  if (!pads) return real;
  const auto sizes = padded_file_dims(syntax_.body.dims, real.dims, overrides.dims, overrides.padded);
  if (sizes == real.dims) return real;
  if (real.local) throw_faults(padded_per_device(syntax_, sizes, real.dims), file_, {});
  real.overrides.pads = false;
  Model model;
  try {
    model = read(overrides, &sizes);
    model.graph = pad(real.graph, model.graph);
  } catch (const InputError& error) {
    throw_faults(error.diagnostics(), file_, padding_note(sizes, real.dims));
  }
  for (const BlockDim& dim : syntax_.body.dims) {
    const std::string& name = dim.name.text;
    if (dim.pad && sizes.at(name) != real.dims.at(name)) {
      model.padded_dims[name] = {real.dims.at(name), sizes.at(name)};
    }
  }
  model.unpadded = std::make_shared<const Model>(std::move(real));
  return model;
}

Model YamlModelSource::read(const ModelOverrides& overrides, const std::map<std::string, std::int64_t>* sizes) const {
  std::vector<Diagnostic> faults = faults_;

  Model model;
  model.source = shared_from_this();
  model.overrides = overrides;
  if (syntax_.parallel) model.parallel = read_parallel(*syntax_.document, *syntax_.parallel, faults);
  model.local = local_view(syntax_, model.parallel, overrides.local, faults);
  std::map<std::string, std::int64_t> known;
  if (model.local) known = {{"rank", model.local->rank}, {"group_size", model.local->group_size}};
  const auto reject = [&](const std::string& note) {
    if (model.local) add_reader(*model.local, faults);
    throw_faults(std::move(faults), file_, note);
  };
  const FileDims dims =
      sizes != nullptr ? FileDims{*sizes} : evaluate_file_dims(syntax_.body.dims, overrides.dims, faults, known);
  std::optional<ModelSyntax> own;
  if (model.local) own = syntax_of_rank(syntax_, *model.local, dims.values, faults);
  const ModelSyntax& syntax = own ? *own : syntax_;
  if (model.local) model.begins = begins_of(syntax, dims.values, faults);
  model.name = syntax.name;
  model.dims = dims.values;
  for (const BlockDim& dim : syntax.body.dims) {
    model.dim_order.push_back(dim.name.text);
    if (dim.expression.literal()) model.free_dims.push_back(dim.name.text);
  }
  model.repeat_dims = repeat_dims(syntax);
  model.batch = batch_of(syntax);
  if (syntax.is_pynative) {
    model.parallel.is_pynative = syntax.is_pynative->value;
    model.parallel.mode_place = syntax.is_pynative->place;
  }
  if (syntax.training) {
    model.training = read_training(*syntax.document, *syntax.training, faults);
    check_training_pins(*syntax.document, *syntax.training, *model.training, model.parallel, faults);
    if (!syntax.loss)
      faults.push_back(
          {model.training->place, "training: the model has no loss", "loss: NAME names the scalar to minimise"});
  }
  if (syntax.autocast) model.autocast = syntax.autocast->value;
  if (!syntax.training && syntax.parallel && syntax.parallel->is_map()) {
    check_keys_of_training(*syntax.document, *syntax.parallel, faults);
  }
  check_types_of_model(syntax, model, faults);
  const CommFusions& fusion = model.parallel.comm_fusion;
  if (fusion.asks_for_some() && !model.training) {
    faults.push_back({*fusion.place,
                      "parallel: comm_fusion joins collectives of gradients and of updated weights; there is no "
                      "training",
                      "training: {optimizer: sgd} trains the model"});
  }
  SettingsTable settings(syntax.strategies, read_set_options(overrides.strategies, faults));

  TemplateOptions options;
  options.dtype = syntax.dtype.value_or(DataType::kF32);
  options.autocast = syntax.autocast.has_value();
  options.local = model.local;
  options.most_copies = overrides.most_copies;
  options.mesh = model.parallel.mesh;
  if (model.training && model.training->mixed_precision) options.dtype = *model.training->mixed_precision;
  OperatorGraphBuilder builder(model.name);
  TemplateLibrary library(syntax, {model.dims, overrides.literals, {}, {}}, options, builder, faults);
  std::vector<std::string> unchecked;
  // What follows from a dim without a value would only be confusing.
  if (!dims.is_complete) reject("shapes were not checked");
  const BlockTemplate* file = library.file_template(unchecked);
  if (file && file->loss && !file->types[*file->loss].shape.empty()) {
    faults.push_back(
        {syntax.loss->place,
         fmt::format("loss: {} is {}; expected a scalar", syntax.loss->text, to_string(file->types[*file->loss].shape)),
         "reduce it: {op: ReduceMean, in: " + syntax.loss->text + "}"});
  }
  if (!file) reject(unchecked_note(unchecked));
  ModelInstance instance = instantiate_model(*file, model.parallel, model.training ? &*model.training : nullptr,
                                             std::move(settings), std::move(builder));
  faults.insert(faults.end(), instance.faults.begin(), instance.faults.end());
  if (model.parallel.compat == "mindspore-1.7" && instance.is_sharded) check_mindspore_shard(model.parallel, faults);
  if (!model.parallel.compat.empty() && instance.last_worker) {
    check_mindspore_place(model.parallel, *instance.last_worker, has_strategies(instance.graph), faults);
  }
  if (!faults.empty()) reject(unchecked_note(unchecked));
  if (model.parallel.workers && !instance.last_worker) {
    throw_faults({{model.parallel.workers->place,
                   "parallel: workers divides the devices among the workers that place names; no operator has a place",
                   "place: {role: MS_WORKER, rank: 1} beside an operator or a block"}},
                 file_, {});
  }
  model.notices = std::move(instance.notices);
  model.parallel.device = std::move(instance.device);
  model.last_worker = instance.last_worker;
  model.cluster = cluster_of(syntax, model.parallel);
  const std::vector<std::string> unused = unused_dims(syntax, library.numbers().used_dims);
  if (!unused.empty()) model.notices.push_back(fmt::format("dims that nothing uses: {}", fmt::join(unused, ", ")));
  std::erase_if(model.free_dims,
                [&](const std::string& name) { return std::find(unused.begin(), unused.end(), name) != unused.end(); });
  for (std::size_t i = 0; model.local && i < instance.graph.num_tensors(); ++i) {
    GraphTensor& tensor = instance.graph.tensor(TensorId(i));
    if (std::exchange(tensor.layerwise_parallel, false)) model.not_exchanged.insert(tensor.name);
  }
  const std::set<std::int64_t>& literals = library.numbers().literals;
  model.literals.assign(literals.begin(), literals.end());
  set_index_extents(instance.graph);
  model.graph = instance.graph.build();
  if (model.parallel.fuses_attention) model.graph = fuse_attention(model.graph);
  if (model.autocast) model.graph = autocast(model.graph, *model.autocast);
  set_product_types(syntax, model, faults);
  if (!faults.empty()) throw_faults(std::move(faults), file_, {});
  return model;
}

}  // namespace shardplan
