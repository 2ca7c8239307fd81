// From a YAML tree to the lines of a model file, without asking what a name or a number means.
//
// Every fault is added and reading goes on; a line that makes no sense keeps its name, so that what refers to it causes no
// second fault. Names are checked for their form and for being used twice here, and resolved in model/blocks/.

#include "model/syntax/model_syntax.h"

#include <algorithm>
#include <set>

#include "base/utf8.h"
#include "model/syntax/bracket_text.h"
#include "model/syntax/model_keys.h"
#include "model/syntax/scalar_values.h"
#include "model/syntax/strategy_syntax.h"

// The first of the steps from text to graph: keys and forms. What is wrong is reported and left out, but names stay
// known wherever that is possible, since a fault in one line should not make faults of all lines that refer to it.

namespace shardplan {
namespace {

/// "wte.embedding_table", "layers.3": names and copies joined by dots.
bool is_path(std::string_view text) {
  while (true) {
    const std::size_t dot = text.find('.');
    const std::string_view part = text.substr(0, dot);
    const bool is_copy = !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    if (!is_name(part) && !is_copy) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

/// The largest multiple to which a dim is padded.
constexpr std::int64_t kMostPad = std::int64_t{1} << 30;

constexpr const char* kOperatorForms = "as in: {op: ReLU, in: x} or {block: nn.Dense, in: x, out_channels: 10}";

class SyntaxReader {
 public:
  SyntaxReader(std::shared_ptr<const YamlDocument> document, std::vector<Diagnostic>& faults)
      : document_(std::move(document)), faults_(faults) {}

  ModelSyntax read_model() {
    const YamlNode& root = document_->root;
    ModelSyntax model;
    model.document = document_;
    if (!root.is_map()) {
      fault(root, fmt::format("a model file is a map; found {}", describe(root)), "it begins with: shardplan: 1");
      return model;
    }
    if (const YamlNode* levels = root.find("levels"); levels != nullptr && root.find("device") != nullptr) {
      fault(*levels, "this file describes a cluster, not a model",
            fmt::format("plan MODEL --cluster {}", document_->file.str()));
      throw InputError(faults_);
    }
    check_model_keys(*document_, root, file_keys(), "", faults_);
    const YamlNode* version = root.find("shardplan");
    if (!version) {
      fault(root, "the key 'shardplan' is missing", "the first line says the format's version: shardplan: 1");
    } else if (version->text != "1") {
      fault(*version, fmt::format("format version {}; this program reads 1", describe(*version)), "");
    }
    model.name = document_->file;
    if (const YamlNode* name = root.find("model"); name != nullptr && is_text(*name, "model")) {
      if (has_control(name->text)) {
        fault(*name, "model: a name is one line without control characters", "");
      } else {
        model.name = name->text;
      }
    }
    model.dtype = read_dtype(root.find("dtype"), "dtype");
    if (const YamlNode* autocast = root.find("autocast")) {
      const auto dtype = autocast->is_scalar() ? data_type_value(autocast->text) : std::nullopt;
      if (dtype == DataType::kF16 || dtype == DataType::kBF16) {
        model.autocast = {*dtype, document_->place(*autocast)};
      } else {
        fault(*autocast, fmt::format("autocast is {}; expected f16 or bf16", describe(*autocast)), "");
      }
    }
    if (const YamlNode* fp8 = root.find("fp8")) model.fp8 = read_words(*fp8, "fp8", WordForm::kPattern);
    if (const YamlNode* narrow = root.find("int8_weights"))
      model.int8_weights = read_words(*narrow, "int8_weights", WordForm::kPattern);
    model.body = read_body(root, "");
    if (const YamlNode* loss = root.find("loss")) {
      if (is_text(*loss, "loss")) model.loss = word(*loss);
    }
    if (const YamlNode* cluster = root.find("cluster")) {
      if (is_text(*cluster, "cluster")) model.cluster = word(*cluster);
    }
    if (const YamlNode* mode = root.find("mode")) {
      const auto found = choice_value(*mode, {"graph", "pynative", "GRAPH_MODE", "PYNATIVE_MODE"});
      if (found) {
        model.is_pynative = {found->starts_with("py") || found->starts_with("PY"), document_->place(*mode)};
      } else {
        fault(*mode, fmt::format("mode is {}; expected graph or pynative", describe(*mode)), "");
      }
    }
    for_each_entry(root.find("blocks"), "blocks", [&](const YamlEntry& entry) {
      if (!check_name(entry.key, "a block's name")) return;
      if (!entry.value.is_map()) {
        fault(entry.value, fmt::format("block {} is {}; expected a map", entry.key.text, describe(entry.value)), "");
        return;
      }
      check_keys(*document_, entry.value, key_names(block_keys()), entry.key.text, faults_);
      BlockSyntax block = read_body(entry.value, entry.key.text + ".");
      block.name = word(entry.key);
      block.scope_name = entry.key.text;
      model.blocks.push_back(std::move(block));
    });
    check_has_operators(root, model);
    for_each_entry(root.find("strategies"), "strategies", [&](const YamlEntry& entry) {
      if (!entry.value.is_map()) {
        fault(entry.value, fmt::format("strategies: {} is {}; expected a map", entry.key.text, describe(entry.value)),
              "as in: {in_strategy: [[1, 8], [8, 1]]}");
        return;
      }
      check_keys(*document_, entry.value, key_names(settings_keys()), entry.key.text, faults_);
      model.strategies.push_back({word(entry.key), read_settings(*document_, entry.value, entry.key.text, faults_)});
    });
    for_each_entry(root.find("custom_operators"), "custom_operators",
                   [&](const YamlEntry& entry) { read_custom_operator(entry, model); });
    model.training = root.find("training");
    model.parallel = root.find("parallel");
    return model;
  }

  BlockSyntax read_body(const YamlNode& node, const std::string& prefix) {
    BlockSyntax body;
    body.document = document_;
    prefix_ = prefix;
    for_each_entry(node.find("dims"), prefix + "dims", [&](const YamlEntry& entry) { read_dim(entry, body); });
    const auto read_tensors = [&](const char* key, const KeySpecs& keys, std::vector<TensorSyntax>& tensors) {
      for_each_entry(node.find(key), prefix + key, [&](const YamlEntry& entry) {
        if (!check_name(entry.key, "a tensor's name")) return;
        tensors.push_back(read_tensor(entry, keys));
      });
    };
    read_tensors("inputs", input_keys(), body.inputs);
    read_tensors("parameters", parameter_keys(), body.parameters);
    for_each_entry(node.find("constants"), prefix + "constants", [&](const YamlEntry& entry) {
      if (!check_name(entry.key, "a tensor's name")) return;
      body.constants.push_back(read_constant(entry));
    });
    for_each_entry(node.find("operators"), prefix + "operators", [&](const YamlEntry& entry) {
      if (!check_name(entry.key, "an operator's name")) return;
      body.operators.push_back(read_operator(entry));
    });
    if (const YamlNode* outputs = node.find("outputs"))
      body.outputs = read_words(*outputs, prefix + "outputs", WordForm::kName);
    check_one_name_space(body);
    return body;
  }

 private:
  /// A file without operators would plan as a model that computes nothing.
  void check_has_operators(const YamlNode& root, const ModelSyntax& model) {
    const BlockSyntax& body = model.body;
    const bool has_any = !model.blocks.empty() || !body.inputs.empty() || !body.parameters.empty();
    if (!has_any && !faults_.empty()) return;  // it may be no model at all
    if (!body.operators.empty() || (root.find("operators") && !root.find("operators")->is_map())) return;
    const std::string use = model.blocks.empty() ? "y: {op: ReLU, in: x}"
                                                 : fmt::format("y: {{block: {}, in: x}}", model.blocks[0].name.text);
    fault(root,
          model.blocks.empty() ? "the file has no operators" : "the file has blocks and no operators that use them",
          fmt::format("as in: operators: {{{}}}", use));
  }

  void fault(const YamlNode& node, std::string message, std::string hint) {
    faults_.push_back({document_->place(node), std::move(message), std::move(hint)});
  }
  Word word(const YamlNode& node) const { return {node.text, document_->place(node)}; }

  bool is_text(const YamlNode& node, std::string_view where) {
    if (node.is_scalar() && !node.text.empty()) return true;
    fault(node, fmt::format("{} is {}; expected a word", where, describe(node)), "");
    return false;
  }

  bool check_name(const YamlNode& key, std::string_view what) {
    if (is_name(key.text)) return true;
    fault(key, fmt::format("'{}' is not {}", key.text, what), "letters, digits and '_', not beginning with a digit");
    return false;
  }

  template <class Visit>
  void for_each_entry(const YamlNode* node, const std::string& where, Visit visit) {
    if (!node) return;
    if (!node->is_map()) {
      fault(*node, fmt::format("{} is {}; expected a map", where, describe(*node)), "");
      return;
    }
    for (const YamlEntry& entry : node->entries) visit(entry);
  }

  std::optional<DataType> read_dtype(const YamlNode* node, const std::string& where) {
    if (!node) return std::nullopt;
    const std::optional<DataType> dtype = node->is_scalar() ? data_type_value(node->text) : std::nullopt;
    if (!dtype) {
      fault(*node,
            fmt::format("{} is {}; expected f64, f32, f16, bf16, f8e4m3, i64, i32, i8, u8 or bool", where,
                        describe(*node)),
            "");
    }
    return dtype;
  }

  bool read_flag(const YamlNode& map, const char* key, bool standard, const std::string& where) {
    const YamlNode* node = map.find(key);
    if (!node) return standard;
    const std::optional<bool> flag = flag_value(*node);
    if (!flag) fault(*node, fmt::format("{}: {} is {}; expected true or false", where, key, describe(*node)), "");
    return flag.value_or(standard);
  }

  std::optional<PlacedExpression> read_expression(const YamlNode& node, const std::string& where) {
    if (!node.is_scalar()) {
      fault(node, fmt::format("{} is {}; expected a number or an expression of dims", where, describe(node)), "");
      return std::nullopt;
    }
    try {
      return PlacedExpression{Expression::parse(node.text), document_->place(node)};
    } catch (const InputError& error) {
      fault(node, fmt::format("{}: {}", where, error.diagnostics()[0].message), "");
      return std::nullopt;
    }
  }

  std::optional<ShapeSyntax> read_shape(const YamlNode& node, const std::string& where) {
    if (const std::optional<YamlNode> tuple = bracket_list(node)) return read_shape(*tuple, where);
    if (!node.is_sequence()) {
      fault(node, fmt::format("{} is {}; expected a list, as in [B, 4*H]", where, describe(node)), "");
      return std::nullopt;
    }
    ShapeSyntax shape;
    shape.place = document_->place(node);
    bool is_good = true;
    for (const YamlNode& item : node.items) {
      if (item.text == "..." && prefix_.starts_with("nn.") && shape.dims.empty()) {
        shape.has_prefix = true;
        continue;
      }
      std::optional<PlacedExpression> dim = read_expression(item, where);
      if (dim) {
        shape.dims.push_back(std::move(*dim));
      } else {
        is_good = false;
      }
    }
    return is_good ? std::optional(std::move(shape)) : std::nullopt;
  }

  enum class WordForm {
    kName,          // of a tensor
    kNameOrNumber,  // also an expression
    kPattern,       // a name in which '*' stands for any one part
  };

  /// One word or a list of them.
  std::vector<Word> read_words(const YamlNode& node, const std::string& where, WordForm form) {
    std::vector<Word> words;
    const auto add = [&](const YamlNode& item) {
      if (item.is_scalar() && (form == WordForm::kName ? is_path(item.text) : !item.text.empty())) {
        words.push_back(word(item));
      } else {
        const char* const what = form == WordForm::kNameOrNumber ? "tensor's name or number" : "name";
        fault(item, fmt::format("{}: {} is not a {}", where, describe(item), what), "");
      }
    };
    if (node.is_sequence()) {
      for (const YamlNode& item : node.items) add(item);
    } else {
      add(node);
    }
    return words;
  }

  std::optional<std::int64_t> read_pad(const YamlNode& node, const std::string& where) {
    const std::optional<PlacedExpression> expression = read_expression(node, where);
    if (!expression) return std::nullopt;
    const std::optional<std::int64_t> value = expression->expression.literal();
    if (value && *value >= 1 && *value <= kMostPad) return value;
    fault(node, fmt::format("{} is {}; expected a whole number from 1 to {}", where, describe(node), kMostPad), "");
    return std::nullopt;
  }

  void read_dim(const YamlEntry& entry, BlockSyntax& body) {
    if (!check_name(entry.key, "a dim's name")) return;
    BlockDim dim;
    dim.name = word(entry.key);
    if (!prefix_.empty() && entry.value.text == "inferred") {
      dim.kind = BlockDim::Kind::kInferred;
    } else if (!prefix_.empty() && entry.value.text == "given") {
      dim.kind = BlockDim::Kind::kGiven;
    } else {
      const std::string where = prefix_ + "dims: " + entry.key.text;
      const YamlNode* size = &entry.value;
      if (prefix_.empty() && size->is_map()) {
        check_keys(*document_, *size, key_names(dim_keys()), where, faults_);
        if (const YamlNode* pad = size->find("pad")) dim.pad = read_pad(*pad, where + ": pad");
        size = size->find("size");
        if (size == nullptr) fault(entry.value, fmt::format("{} has no size", where), "{size: 50257, pad: 128}");
      }
      std::optional<PlacedExpression> expression;
      if (size != nullptr) expression = read_expression(*size, where);
      // A dim that cannot be read stays known as a name, so that its uses are not faults as well.
      dim.expression = expression ? std::move(expression->expression) : Expression::parse("1");
    }
    body.dims.push_back(std::move(dim));
  }

  TensorSyntax read_tensor(const YamlEntry& entry, const KeySpecs& keys) {
    TensorSyntax tensor;
    tensor.name = word(entry.key);
    const std::string where = prefix_ + entry.key.text;
    const YamlNode& node = entry.value;
    if (!node.is_map()) {
      tensor.shape = read_shape(node, where);
      return tensor;
    }
    check_keys(*document_, node, key_names(keys), where, faults_);
    if (const YamlNode* shape = node.find("shape")) {
      tensor.shape = read_shape(*shape, where);
    } else {
      fault(node, fmt::format("{} has no shape", where), "");
    }
    tensor.dtype = read_dtype(node.find("dtype"), where + ": dtype");
    tensor.layerwise_parallel = read_flag(node, "layerwise_parallel", false, where);
    if (const YamlNode* begin = node.find("begin")) tensor.begin = read_shape(*begin, where + ": begin");
    YamlNode said;
    said.kind = YamlNode::Kind::kMap;
    for (const YamlEntry& own : node.entries) {
      if (takes(keys, own.key.text)) said.entries.push_back(own);
    }
    tensor.settings = read_settings(*document_, said, where, faults_);
    return tensor;
  }

  static bool takes(const KeySpecs& keys, const std::string& name) {
    return std::any_of(keys.begin(), keys.end(), [&](const KeySpec& key) { return key.name == name; });
  }

  TensorSyntax read_constant(const YamlEntry& entry) {
    TensorSyntax constant;
    constant.name = word(entry.key);
    const std::string where = prefix_ + entry.key.text;
    const YamlNode& node = entry.value;
    if (node.is_scalar()) {
      constant.value = read_expression(node, where);
      return constant;
    }
    if (!node.is_map()) {
      fault(node, fmt::format("{} is {}; expected a number or {{shape, dtype, fill}}", where, describe(node)), "");
      return constant;
    }
    check_keys(*document_, node, key_names(constant_keys()), where, faults_);
    constant.dtype = read_dtype(node.find("dtype"), where + ": dtype");
    if (const YamlNode* shape = node.find("shape")) {
      constant.shape = read_shape(*shape, where);
    } else {
      fault(node, fmt::format("{} has no shape", where), "");
    }
    const YamlNode* fill = node.find("fill");
    const std::string& text = fill ? fill->text : "";
    if (text == "iota" || text == "causal") {
      constant.fill = text == "iota" ? Fill::Kind::kIota : Fill::Kind::kCausal;
    } else if (text == "zeros" || text == "ones") {
      constant.value = PlacedExpression{Expression::parse(text == "ones" ? "1" : "0"), document_->place(*fill)};
    } else if (!fill || !fill->is_scalar() || is_name(text)) {
      fault(fill ? *fill : node,
            fmt::format("{}: fill is {}; expected zeros, ones, iota, causal or a number", where,
                        fill ? describe(*fill) : "missing"),
            "");
    } else {
      constant.value = read_expression(*fill, where + ": fill");
    }
    return constant;
  }

  /// A line that makes no sense keeps its name, so that what reads it is no fault as well; its type is then empty.
  OperatorSyntax read_operator(const YamlEntry& entry) {
    OperatorSyntax op;
    op.name = word(entry.key);
    const std::string where = prefix_ + entry.key.text;
    const YamlNode& node = entry.value;
    if (!node.is_map()) {
      fault(node, fmt::format("{} is {}; expected a map", where, describe(node)), kOperatorForms);
      return op;
    }
    const YamlNode* type = node.find("op");
    const YamlNode* block = node.find("block");
    if (!type && !block) fault(entry.key, fmt::format("{} has neither op nor block", where), kOperatorForms);
    if (type && block) fault(*block, fmt::format("{} has both op and block; expected one", where), "");
    op.is_block = block != nullptr;
    const YamlNode* called = type && block ? nullptr : block ? block : type;
    if (called && is_text(*called, where + (block ? ": block" : ": op"))) op.type = word(*called);
    if (!op.is_block) op.type.text.erase(0, op.type.text.rfind('.') + 1);  // ops.MatMul, nn.ReLU
    op.settings = read_settings(*document_, node, where, faults_);
    const std::vector<std::string> known = key_names(op.is_block ? call_keys() : operator_keys());
    for (const YamlEntry& item : node.entries) {
      const std::string& key = item.key.text;
      if (key == "in") {
        op.in = read_words(item.value, where, WordForm::kNameOrNumber);
        op.in_place = document_->place(item.value);
      } else if (key == "out" && !op.is_block) {
        op.out = read_words(item.value, where + ": out", WordForm::kName);
        for (const Word& name : op.out) {
          if (!is_name(name.text))
            faults_.push_back({name.place, fmt::format("'{}' is not a tensor's name", name.text), ""});
        }
      } else if (key == "ranks") {
        op.ranks = read_shape(item.value, where + ": ranks");
      } else if (key == "repeat" && op.is_block) {
        op.repeat = read_expression(item.value, where + ": repeat");
      } else if (key == "share" && op.is_block) {
        if (is_text(item.value, where + ": share")) op.share = word(item.value);
      } else if (key == "shape" || std::find(known.begin(), known.end(), key) == known.end()) {
        op.attributes.push_back({word(item.key), &item.value});
      }
    }
    return op;
  }

  void read_custom_operator(const YamlEntry& entry, ModelSyntax& model) {
    CustomOperatorSyntax custom;
    custom.name = word(entry.key);
    const std::string where = "custom_operators: " + entry.key.text;
    const YamlNode& node = entry.value;
    const YamlNode* rule = node.find("rule");
    if (!check_name(entry.key, "an operator's name")) return;
    if (!node.is_map() || !rule || !is_text(*rule, where + ": rule")) {
      if (!rule) fault(entry.key, fmt::format("{} has no rule", where), "as in: {rule: \"b s h, h f -> b s f\"}");
      return;
    }
    check_keys(*document_, node, key_names(custom_operator_keys()), where, faults_);
    custom.rule = word(*rule);
    for_each_entry(node.find("factors"), where + ": factors", [&](const YamlEntry& factor) {
      if (is_text(factor.value, where + ": " + factor.key.text)) {
        custom.factors.push_back({word(factor.key), word(factor.value)});
      }
    });
    if (const YamlNode* flops = node.find("flops")) custom.flops = read_expression(*flops, where + ": flops");
    model.custom_operators.push_back(std::move(custom));
  }

  /// Inputs, constants, parameters, operators and named results of one body share one name space.
  void check_one_name_space(const BlockSyntax& body) {
    std::map<std::string, SourcePlace> seen;
    const auto add = [&](const Word& name) {
      const auto [at, is_new] = seen.emplace(name.text, name.place);
      if (is_new || at->second == name.place) return;
      faults_.push_back({name.place, fmt::format("the name '{}' is taken by line {}", name.text, at->second.line),
                         "inputs, constants, parameters, operators and results share one name space"});
    };
    for (const TensorSyntax& tensor : body.inputs) add(tensor.name);
    for (const TensorSyntax& tensor : body.constants) add(tensor.name);
    for (const TensorSyntax& tensor : body.parameters) add(tensor.name);
    for (const OperatorSyntax& op : body.operators) add(op.name);
    for (const OperatorSyntax& op : body.operators) {
      for (const Word& result : op.out) {
        if (op.out.size() > 1 || result.text != op.name.text) add(result);
      }
    }
  }

  std::shared_ptr<const YamlDocument> document_;
  std::vector<Diagnostic>& faults_;
  std::string prefix_;  // "layer." inside blocks, for messages
};

}  // namespace

ModelSyntax read_model_syntax(const std::string& text, const std::string& file, std::vector<Diagnostic>& faults) {
  auto document = std::make_shared<const YamlDocument>(parse_yaml(text, file, faults));
  return SyntaxReader(std::move(document), faults).read_model();
}

BlockSyntax read_block_syntax(const std::string& text, const std::string& name, std::vector<Diagnostic>& faults) {
  auto document = std::make_shared<const YamlDocument>(parse_yaml(text, name, faults));
  SyntaxReader reader(document, faults);
  BlockSyntax block = reader.read_body(document->root, name + ".");
  block.name.text = name;
  block.scope_name = name.substr(name.find('.') + 1);
  block.is_built_in = true;
  return block;
}

}  // namespace shardplan
