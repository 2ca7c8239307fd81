#include "planner/problem/strategy_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/json_text.h"
#include "base/json_tree.h"
#include "base/parse_number.h"
#include "base/yaml.h"
#include "layouts/uneven.h"

// The writer is a fold over the plan. The reader works on a JSON tree with source places: each name is looked up in
// the graph, each layout is parsed and checked like the user's own, and all errors are collected before one exception
// is thrown. Valid entries are merged into the decisions made so far; a contradiction names both places.

namespace shardplan {
namespace {

constexpr std::size_t kMostUnknown = 5;  // names that are listed one by one
constexpr char kSchema[] = "shardplan.strategies/1";

struct TensorSection {
  const char* name;
  TensorKind kind;
  const char* word;
};
constexpr TensorSection kTensorSections[] = {{"inputs", TensorKind::kInput, "input"},
                                             {"parameters", TensorKind::kParameter, "parameter"},
                                             {"states", TensorKind::kState, "state"}};

/// The key of a version whose layout is a choice of its own; nothing for others.
const char* version_key(const TensorVersion& version, const OperatorGraph& graph) {
  switch (version.kind) {
    case TensorVersion::Kind::kDelivered:
      return graph.operators()[version.readers.front().op].pass == Pass::kForward ? "forward" : "backward";
    case TensorVersion::Kind::kKept:
      return "kept";
    case TensorVersion::Kind::kOutput:
      return "output";
    case TensorVersion::Kind::kProduced:   // as its operator
    case TensorVersion::Kind::kRequested:  // as the model says
    case TensorVersion::Kind::kStored:     // inputs, parameters, states
    case TensorVersion::Kind::kUpdated:    // as stored
      break;
  }
  return nullptr;
}

/// "dp, hccs:(1)2".
std::string axes_words(const std::vector<AxisRef>& axes, const DeviceMesh& mesh) {
  std::string text;
  for (const AxisRef& axis : axes) text += (text.empty() ? "" : ", ") + mesh.to_string(axis);
  return text;
}

/// Reads a document; errors are collected and reading continues.
class StrategyFileReader {
 public:
  StrategyFileReader(const std::string& path, const OperatorGraph& graph, const DeviceMesh& mesh,
                     UserStrategies& decided)
      : path_(path), graph_(graph), mesh_(mesh), decided_(decided) {
    loaded_.is_loaded.resize(graph.operators().size(), 0);
  }

  LoadedStrategies run() {
    const JsonNode root = parse_json(read_text_file(path_, kMostWrittenBytes), path_);
    check_schema(root);
    check_keys(root, {"schema", "model", "mesh", "operators", "training", "inputs", "parameters", "states", "versions"},
               "the document");
    const std::string mesh = text_of(root, "mesh");
    if (faults_.empty() && mesh != mesh_.to_string()) {
      fault(place_of(root, "mesh"), "the strategies are of the mesh {}, the model is planned on {}",
            mesh.empty() ? "of one device" : mesh, mesh_.to_string().empty() ? "one device" : mesh_.to_string());
    }
    if (!faults_.empty()) throw InputError(std::move(faults_));
    if (const JsonNode* operators = object(root, "operators")) {
      for (const JsonMember& member : operators->members) read_operator(member, true);
    }
    if (const JsonNode* operators = object(root, "training"); operators != nullptr && graph_.is_training()) {
      for (const JsonMember& member : operators->members) read_operator(member, false);
    }
    for (const auto& [section, kind, word] : kTensorSections) {
      const JsonNode* tensors = object(root, section);
      if (tensors == nullptr || (kind == TensorKind::kState && !graph_.is_training())) continue;
      for (const JsonMember& member : tensors->members) read_tensor(member, kind, word);
    }
    if (const JsonNode* tensors = object(root, "versions")) read_versions(*tensors);
    if (num_unknown_ > kMostUnknown) {
      fault(more_unknown_, "and {} more names that the model does not have", num_unknown_ - kMostUnknown);
    }
    if (!faults_.empty()) throw InputError(std::move(faults_));
    return std::move(loaded_);
  }

 private:
  template <class... Args>
  void fault(const SourcePlace& place, fmt::format_string<Args...> format, Args&&... args) {
    faults_.push_back({place, fmt::format(format, std::forward<Args>(args)...), {}});
  }

  /// Another kind of document is refused as a whole, not key by key.
  void check_schema(const JsonNode& root) {
    if (root.kind != JsonNode::Kind::kObject) {
      throw InputError(root.place, "the document is {}; expected an object", describe(root));
    }
    const std::string schema = text_of(root, "schema");
    if (faults_.empty() && schema != kSchema) {
      fault(place_of(root, "schema"), "schema is '{}'; expected {}, as --strategy-ckpt-save-file writes it", schema,
            kSchema);
    }
    if (!faults_.empty()) throw InputError(std::move(faults_));
  }

  void check_keys(const JsonNode& node, const std::set<std::string>& known, const std::string& where) {
    if (node.kind != JsonNode::Kind::kObject) {
      fault(node.place, "{} is {}; expected an object", where, describe(node));
    }
    for (const JsonMember& member : node.members) {
      if (!known.contains(member.key.text)) {
        fault(member.key.place, "{}: unknown key '{}'; expected {}", where, member.key.text, fmt::join(known, ", "));
      }
    }
  }
  SourcePlace place_of(const JsonNode& node, std::string_view key) const {
    const JsonNode* found = node.find(key);
    return found != nullptr ? found->place : node.place;
  }
  std::string text_of(const JsonNode& node, const std::string& key) {
    const JsonNode* found = node.find(key);
    if (found == nullptr || found->kind != JsonNode::Kind::kString) {
      fault(place_of(node, key), "{}: {}", key, found == nullptr ? "missing" : "expected a string");
      return {};
    }
    return found->text;
  }
  const JsonNode* object(const JsonNode& node, const std::string& key) {
    const JsonNode* found = node.find(key);
    if (found != nullptr && found->kind == JsonNode::Kind::kObject) return found;
    if (found != nullptr) fault(found->place, "{} is {}; expected an object", key, describe(*found));
    return nullptr;
  }

  /// "dp, mp"; nothing (and an error) if they are not axes of the mesh.
  std::optional<std::vector<AxisRef>> read_axes(const JsonNode& node, const std::string& where) {
    if (node.kind != JsonNode::Kind::kString) {
      fault(node.place, "{} is {}; expected axes in a string, as \"dp, mp\"", where, describe(node));
      return std::nullopt;
    }
    try {
      const TensorLayout layout = parse_layout(fmt::format("[{{{}}}]", node.text), mesh_);
      if (layout.dimensions.size() == 1 && layout.dimensions[0].parts.size() == 1 && layout.partial.empty()) {
        return layout.dimensions[0].parts[0].axes;
      }
      fault(node.place, "{}: '{}'; expected axes, as \"dp, mp\"", where, node.text);
    } catch (const InputError& error) {
      fault(node.place, "{}: {}", where, error.diagnostics().front().message);
    }
    return std::nullopt;
  }

  /// A name that the model does not have; `near()` returns the one that may have been meant, or "". All names of a file
  /// may be another model's, and finding a near one takes as long as the model has names: only the first are listed.
  template <class Near>
  void unknown_name(const JsonNode& key, const char* word, const Near& near) {
    ++num_unknown_;
    if (num_unknown_ == kMostUnknown + 1) more_unknown_ = key.place;
    if (num_unknown_ > kMostUnknown) return;
    const std::string meant = near();
    fault(key.place, "the model has no {} '{}'{}", word, key.text,
          meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant));
  }

  static bool belongs(const GraphOperator& op, bool is_forward) {
    return (op.pass == Pass::kForward) == is_forward && !op.is_copy;
  }
  /// The operators that the section may have.
  const std::vector<std::string>& known_operators(bool is_forward) {
    std::vector<std::string>& names = is_forward ? forward_operators_ : training_operators_;
    if (!names.empty()) return names;
    for (const GraphOperator& op : graph_.operators()) {
      if (belongs(op, is_forward)) names.push_back(op.name);
    }
    return names;
  }

  void read_operator(const JsonMember& member, bool is_forward) {
    const std::string& name = member.key.text;
    const std::optional<OperatorId> id = graph_.find_operator(name);
    if (!id || !belongs(graph_.operators()[*id], is_forward)) {
      unknown_name(member.key, "operator", [&] { return nearest_name(name, known_operators(is_forward)); });
      return;
    }
    const std::size_t faults_before = faults_.size();
    check_keys(member.value, {"factors", "partial"}, name);
    const Operation& operation = graph_.operation(*id);
    Strategy strategy;
    strategy.factors.resize(operation.rule.factors.size());
    if (const JsonNode* factors = object(member.value, "factors")) {
      for (const JsonMember& cut : factors->members) {
        const std::optional<std::uint32_t> factor = operation.rule.find(cut.key.text);
        if (!factor) {
          std::vector<std::string> names;
          for (const Factor& known : operation.rule.factors) names.push_back(known.name);
          fault(cut.key.place, "{}: {} has no factor '{}'; it has {}", name, operation.type->name, cut.key.text,
                fmt::join(names, ", "));
        } else if (auto axes = read_axes(cut.value, name + "." + cut.key.text)) {
          strategy.factors[*factor] = std::move(*axes);
        }
      }
    }
    if (const JsonNode* partial = object(member.value, "partial")) read_partial(*partial, name, operation, strategy);
    if (faults_.size() > faults_before) return;
    if (const std::string wrong = check_strategy(operation, strategy, mesh_); !wrong.empty()) {
      fault(member.value.place, "{}: {}", name, wrong);
      return;
    }
    SharedVector<Strategy>& known = decided_.operators[*id];
    const bool agrees =
        known.empty() || std::any_of(known.begin(), known.end(), [&](const Strategy& own) {
          return sharded_alike({own.factors, {}, 0, Reduction::kSum}, {strategy.factors, {}, 0, Reduction::kSum});
        });
    if (!agrees) {
      const SourcePlace& own = graph_.operators()[*id].strategy->in_place;
      fault(member.value.place, "{}: the file contradicts its in_strategy in {}:{}:{}; keep one of them", name,
            own.file, own.line, own.column);
      return;
    }
    known = {std::move(strategy)};
    loaded_.is_loaded[*id] = 1;
  }

  void read_partial(const JsonNode& node, const std::string& name, const Operation& operation, Strategy& strategy) {
    check_keys(node, {"axes", "group", "reduction"}, name + ".partial");
    const JsonNode* axes = node.find("axes");
    if (axes == nullptr) {
      fault(node.place, "{}.partial: axes: missing", name);
      return;
    }
    if (auto read = read_axes(*axes, name + ".partial")) strategy.partial = std::move(*read);
    const std::string reduction = text_of(node, "reduction");
    strategy.reduction = reduction == "max" ? Reduction::kMax : reduction == "min" ? Reduction::kMin : Reduction::kSum;
    if (to_string(strategy.reduction) != reduction) {
      fault(place_of(node, "reduction"), "{}.partial: reduction is '{}'; expected sum, max or min", name, reduction);
    }
    const std::size_t groups =
        strategy.reduction == Reduction::kSum ? operation.rule.linear.size() : operation.rule.monotone.size();
    const JsonNode* group = node.find("group");
    const std::string text = group != nullptr && group->kind == JsonNode::Kind::kNumber ? group->text : "";
    const auto number = parse_number<decltype(strategy.group)>(text);
    if (!number || *number >= groups) {
      fault(place_of(node, "group"), "{}.partial: no operands of this group pass a partial result on", name);
    }
    strategy.group = *number;
  }

  void read_tensor(const JsonMember& member, TensorKind kind, const char* word) {
    const std::string& name = member.key.text;
    const std::optional<TensorId> id = graph_.find_tensor(name);
    if (!id || graph_.tensor(*id).kind != kind || graph_.tensor(*id).name != name) {
      unknown_name(member.key, word, [] { return std::string(); });
      return;
    }
    const GraphTensor& tensor = graph_.tensor(*id);
    std::optional<TensorLayout> layout = read_layout(member.value, name, tensor.type.shape);
    if (!layout) return;
    if (!layout->partial.empty()) {
      fault(member.value.place, "{}: a stored tensor is never partial", name);
      return;
    }
    RareValue<TensorLayout>& stored = decided_.stored[*id];
    if (stored && *stored != *layout) {
      const SourcePlace own = tensor.layout ? tensor.layout->place : tensor.place;
      fault(member.value.place, "{}: the file contradicts its strategy in {}:{}:{}; keep one of them", name, own.file,
            own.line, own.column);
      return;
    }
    stored = *std::move(layout);
  }

  /// Nothing (and an error) if it is none of a tensor of that shape.
  std::optional<TensorLayout> read_layout(const JsonNode& node, const std::string& where, const Shape& shape) {
    if (node.kind != JsonNode::Kind::kString) {
      fault(node.place, "{} is {}; expected a layout, as \"[{{dp}}, {{}}]\"", where, describe(node));
      return std::nullopt;
    }
    try {
      const TensorLayout layout = parse_layout(node.text, mesh_);
      const std::string wrong = check_uneven_layout(layout, mesh_, shape);
      if (wrong.empty()) return canonical(layout, mesh_, shape);
      fault(node.place, "{}: {}", where, wrong);
    } catch (const InputError& error) {
      fault(node.place, "{}: {}", where, error.diagnostics().front().message);
    }
    return std::nullopt;
  }

  void read_versions(const JsonNode& tensors) {
    const TensorVersions versions = tensor_versions(graph_);
    IdVector<TensorId, ShortVector<VersionId>> of_tensor(graph_.tensors().size());
    for (const VersionId id : versions.all.ids()) of_tensor[versions.all[id].tensor].push_back(id);
    loaded_.versions.resize(versions.all.size());
    for (const JsonMember& member : tensors.members) {
      const std::string& name = member.key.text;
      const std::optional<TensorId> id = graph_.find_tensor(name);
      if (!id || graph_.tensor(*id).name != name) {
        // Without training the tensors of the backward pass are missing.
        if (graph_.is_training()) unknown_name(member.key, "tensor", [] { return std::string(); });
        continue;
      }
      check_keys(member.value, {"forward", "kept", "backward", "output"}, name);
      if (!are_neighbours_loaded(graph_.tensor(*id))) continue;
      for (const VersionId version : of_tensor[*id]) read_version(member, versions, version);
    }
  }

  /// Other operators may need other layouts.
  bool are_neighbours_loaded(const GraphTensor& tensor) const {
    const auto is_loaded = [&](OperatorId op) {
      const GraphOperator& info = graph_.operators()[op];
      return loaded_.is_loaded[info.is_copy ? *info.forward : op] != 0;
    };
    return (!tensor.producer || is_loaded(*tensor.producer)) &&
           std::ranges::all_of(tensor.readers, [&](const Reader& reader) { return is_loaded(reader.op); });
  }

  void read_version(const JsonMember& member, const TensorVersions& versions, VersionId id) {
    const TensorVersion& version = versions.all[id];
    const char* key = version_key(version, graph_);
    if (key == nullptr || version.keeping != TensorVersion::Keeping::kFree) return;
    const JsonNode* node = member.value.find(key);
    if (node == nullptr) return;
    const GraphTensor& tensor = graph_.tensor(version.tensor);
    const std::string where = fmt::format("{}.{}", tensor.name, key);
    std::optional<TensorLayout> layout = read_layout(*node, where, tensor.type.shape);
    if (!layout) return;
    if (!layout->partial.empty() && !passes_on(versions, version, *layout)) {
      fault(node->place, "{}: partial, but only a delivery of what {} leaves partial in the same way may be", where,
            tensor.producer ? graph_.operators()[*tensor.producer].name : "an operator");
      return;
    }
    loaded_.versions[id] = *std::move(layout);
  }

  /// True for a delivery that leaves a result as its operator makes it.
  bool passes_on(const TensorVersions& versions, const TensorVersion& version, const TensorLayout& layout) const {
    if (version.kind != TensorVersion::Kind::kDelivered) return false;
    if (versions.all[*version.from].kind != TensorVersion::Kind::kProduced) return false;
    const GraphTensor& tensor = graph_.tensor(version.tensor);
    const GraphOperator& op = graph_.operators()[*tensor.producer];
    const OperatorId owner = op.is_copy ? *op.forward : *tensor.producer;
    return layout ==
           result_layout(graph_.operation(*tensor.producer), decided_.operators[owner][0], mesh_, tensor.result);
  }

  const std::string& path_;
  const OperatorGraph& graph_;
  const DeviceMesh& mesh_;
  UserStrategies& decided_;
  LoadedStrategies loaded_;
  std::vector<Diagnostic> faults_;
  std::size_t num_unknown_ = 0;
  SourcePlace more_unknown_;                                         // where the first is that is not listed
  std::vector<std::string> forward_operators_, training_operators_;  // built when first needed
};

/// The versions of all tensors whose layouts are choices of their own; those of a tensor follow each other.
Json versions_json(const Plan& plan) {
  const OperatorGraph& graph = *plan.graph;
  const TensorVersions versions = tensor_versions(graph);
  Json tensors = Json::object();
  auto& entries = tensors.get_ref<Json::object_t&>();
  std::optional<TensorId> last;
  for (const VersionId id : versions.all.ids()) {
    const TensorVersion& version = versions.all[id];
    const char* key = version_key(version, graph);
    if (key == nullptr) continue;
    if (last != version.tensor) entries.emplace_back(graph.tensor(version.tensor).name, Json::object());
    last = version.tensor;
    entries.back().second[key] = to_string(plan.versions[id], plan.mesh);
  }
  return tensors;
}

}  // namespace

std::string strategy_file_text(const Plan& plan) {
  const OperatorGraph& graph = *plan.graph;
  Json document;
  document["schema"] = kSchema;
  document["model"] = plan.model->name;
  document["mesh"] = plan.mesh.to_string();
  Json operators = Json::object();
  Json training = Json::object();
  for (const OperatorId id : graph.operators().ids()) {
    if (graph.operators()[id].is_copy) continue;  // as its original
    const Strategy& strategy = plan.strategies[id];
    const std::vector<Factor>& factors = graph.operation(id).rule.factors;
    Json json;
    json["factors"] = Json::object();
    for (std::size_t f = 0; f < factors.size(); ++f) {
      const std::vector<AxisRef>& axes = strategy.factors[f];
      if (!axes.empty()) json["factors"][factors[f].name] = axes_words(axes, plan.mesh);
    }
    if (!strategy.partial.empty()) {
      json["partial"] = {{"axes", axes_words(strategy.partial, plan.mesh)},
                         {"group", strategy.group},
                         {"reduction", to_string(strategy.reduction)}};
    }
    Json& section = graph.operators()[id].pass == Pass::kForward ? operators : training;
    // Appended, since looking a key up among those before it would take quadratic time.
    section.get_ref<Json::object_t&>().emplace_back(graph.operators()[id].name, std::move(json));
  }
  document["operators"] = std::move(operators);
  if (graph.is_training()) document["training"] = std::move(training);
  for (const auto& [section, kind, word] : kTensorSections) {
    Json tensors = Json::object();
    auto& layouts = tensors.get_ref<Json::object_t&>();
    for (const Binding& given : plan.program.given) {
      const GraphTensor& tensor = graph.tensor(given.tensor);
      if (tensor.kind != kind) continue;
      layouts.emplace_back(tensor.name, to_string(plan.program.values[given.value].layout, plan.mesh));
    }
    if (kind != TensorKind::kState || graph.is_training()) document[section] = std::move(tensors);
  }
  document["versions"] = versions_json(plan);
  return document.dump(1) + "\n";
}

LoadedStrategies load_strategy_file(const std::string& path, const OperatorGraph& graph, const DeviceMesh& mesh,
                                    UserStrategies& decided) {
  return StrategyFileReader(path, graph, mesh, decided).run();
}

}  // namespace shardplan
