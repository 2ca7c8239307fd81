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
                     UserStrategies& decided, IdVector<OperatorId, char>& is_loaded)
      : path_(path), graph_(graph), mesh_(mesh), decided_(decided), is_loaded_(is_loaded) {}

  void run() {
    const JsonNode root = parse_json(read_text_file(path_, kMostWrittenBytes), path_);
    check_schema(root);
    check_keys(root, {"schema", "model", "mesh", "operators", "training", "inputs", "parameters", "states"},
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
    if (num_unknown_ > kMostUnknown) {
      fault(more_unknown_, "and {} more names that the model does not have", num_unknown_ - kMostUnknown);
    }
    if (!faults_.empty()) throw InputError(std::move(faults_));
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
    is_loaded_[*id] = 1;
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
    if (member.value.kind != JsonNode::Kind::kString) {
      fault(member.value.place, "{} is {}; expected a layout, as \"[{{dp}}, {{}}]\"", name, describe(member.value));
      return;
    }
    TensorLayout layout;
    try {
      layout = parse_layout(member.value.text, mesh_);
    } catch (const InputError& error) {
      fault(member.value.place, "{}: {}", name, error.diagnostics().front().message);
      return;
    }
    std::string wrong = check_uneven_layout(layout, mesh_, tensor.type.shape);
    if (wrong.empty() && !layout.partial.empty()) wrong = "a stored tensor is never partial";
    if (!wrong.empty()) {
      fault(member.value.place, "{}: {}", name, wrong);
      return;
    }
    layout = canonical(layout, mesh_, tensor.type.shape);
    RareValue<TensorLayout>& stored = decided_.stored[*id];
    if (stored && *stored != layout) {
      const SourcePlace own = tensor.layout ? tensor.layout->place : tensor.place;
      fault(member.value.place, "{}: the file contradicts its strategy in {}:{}:{}; keep one of them", name, own.file,
            own.line, own.column);
      return;
    }
    stored = std::move(layout);
  }

  const std::string& path_;
  const OperatorGraph& graph_;
  const DeviceMesh& mesh_;
  UserStrategies& decided_;
  IdVector<OperatorId, char>& is_loaded_;
  std::vector<Diagnostic> faults_;
  std::size_t num_unknown_ = 0;
  SourcePlace more_unknown_;                                         // where the first is that is not listed
  std::vector<std::string> forward_operators_, training_operators_;  // built when first needed
};

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
  return document.dump(1) + "\n";
}

void load_strategy_file(const std::string& path, const OperatorGraph& graph, const DeviceMesh& mesh,
                        UserStrategies& decided, IdVector<OperatorId, char>& is_loaded) {
  StrategyFileReader(path, graph, mesh, decided, is_loaded).run();
}

}  // namespace shardplan
