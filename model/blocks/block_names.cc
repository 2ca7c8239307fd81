#include "model/blocks/block_names.h"

#include <algorithm>
#include <map>
#include <queue>

#include "model/blocks/built_in_blocks.h"
#include "operators/catalogue.h"

// Names are resolved before anything has a type, so that a misspelt name is reported once, where it stands, and not as
// a consequence of shapes. The same table orders the operators (Kahn's algorithm; the file's order breaks ties) and
// finds what nobody reads: a name that is declared and not used is more often a mistake than a wish.

namespace shardplan {
namespace {

class NameResolver {
 public:
  NameResolver(const BlockSyntax& block, const std::string& label,
               const std::function<bool(const OperatorSyntax&, const std::string&)>& reads_parameter,
               const BlockSyntax* file, std::vector<Diagnostic>& faults)
      : block_(block), label_(label), reads_parameter_(reads_parameter), file_(file), faults_(faults) {}

  BlockNames resolve(const Word* loss) {
    const std::size_t first_fault = faults_.size();
    fill_table();
    for (const OperatorSyntax& op : block_.operators) {
      std::vector<NameSource> operands;
      for (const Word& word : op.in) operands.push_back(source_of(word, label_ + op.name.text));
      names_.operands.push_back(std::move(operands));
    }
    for (const OperatorSyntax& op : block_.operators) {
      if (op.share) check_share(op);
    }
    if (loss) names_.loss = result_source(*loss, label_ + "loss");
    if (block_.outputs) {
      for (const Word& word : *block_.outputs) {
        const NameSource source = result_source(word, label_ + "outputs");
        if (source.kind != NameSource::Kind::kUnknown) add_output(source, word.text, word.place);
      }
    }
    sort();
    find_unused();
    names_.is_good = faults_.size() == first_fault;
    return std::move(names_);
  }

 private:
  struct Entry {
    NameSource source;
    std::string what;  // "parameter, line 5"
  };

  void fault(const SourcePlace& place, std::string message, std::string hint = "") {
    faults_.push_back({place, std::move(message), std::move(hint)});
  }

  void fill_table() {
    const auto add = [&](const Word& name, NameSource::Kind kind, std::size_t index, std::optional<std::size_t> result,
                         const char* what) {
      table_.emplace(name.text, Entry{{kind, index, result, {}}, fmt::format("{}, line {}", what, name.place.line)});
    };
    for (std::size_t i = 0; i < block_.inputs.size(); ++i) {
      add(block_.inputs[i].name, NameSource::Kind::kInput, i, {}, "input");
    }
    for (std::size_t i = 0; i < block_.constants.size(); ++i) {
      add(block_.constants[i].name, NameSource::Kind::kConstant, i, {}, "constant");
    }
    for (std::size_t i = 0; i < block_.parameters.size(); ++i) {
      add(block_.parameters[i].name, NameSource::Kind::kParameter, i, {}, "parameter");
    }
    for (std::size_t i = 0; i < block_.operators.size(); ++i) {
      const OperatorSyntax& op = block_.operators[i];
      // In `split: {out: [q, k, v]}` the results are q, k and v; `split` itself names none of them.
      if (op.out.empty()) add(op.name, NameSource::Kind::kOperator, i, {}, op.is_block ? "block" : "operator");
      for (std::size_t k = 0; k < op.out.size(); ++k) add(op.out[k], NameSource::Kind::kOperator, i, k, "result");
    }
  }

  NameSource source_of(const Word& word, const std::string& where) {
    const std::size_t dot = word.text.find('.');
    const std::string head = word.text.substr(0, dot);
    if (!is_name(head)) return {NameSource::Kind::kNumber, 0, {}, {}};
    const auto found = table_.find(head);
    if (found == table_.end()) {
      // "1/sqrt(D)" begins with a digit; "D*2" is no name either.
      if (word.text.find_first_of("+-*/() ") != std::string::npos) return {NameSource::Kind::kNumber, 0, {}, {}};
      std::vector<std::string> known;
      for (const auto& [name, entry] : table_) known.push_back(name);
      if (const std::string of_file = tensor_of_file(head); !of_file.empty()) {
        fault(word.place, fmt::format("{}: no tensor '{}' here, only in the file ({})", where, head, of_file),
              fmt::format("declare it under the inputs of {} and pass it to each use", block_.name.text));
        return {};
      }
      // A file in which nearly everything is wrong needs no suggestions, and they would take long.
      const std::string nearest = faults_.size() < 200 ? nearest_name(head, known) : std::string();
      std::string hint;
      for (const OperatorSyntax& op : block_.operators) {
        if (op.name.text == head) hint = fmt::format("the results of {} are called {}", head, list_of(op.out));
      }
      fault(word.place,
            fmt::format("{}: no tensor '{}' here{}", where, head,
                        nearest.empty() || !hint.empty()
                            ? ""
                            : fmt::format("; did you mean '{}' ({})?", nearest, table_.at(nearest).what)),
            hint);
      return {};
    }
    NameSource source = found->second.source;
    if (dot != std::string::npos) {
      source.rest = word.text.substr(dot + 1);
      if (source.kind != NameSource::Kind::kOperator || source.result) {
        fault(word.place, fmt::format("{}: '{}' is a tensor ({}) and has no parts", where, head, found->second.what));
        return {};
      }
    }
    return source;
  }

  /// "constant, line 5" if a block misses a name that the file has: it sees only its own inputs.
  std::string tensor_of_file(const std::string& name) const {
    if (file_ == nullptr) return {};
    const auto find = [&](const std::vector<TensorSyntax>& tensors, const char* what) {
      const auto has_name = [&](const TensorSyntax& tensor) { return tensor.name.text == name; };
      const auto found = std::ranges::find_if(tensors, has_name);
      return found == tensors.end() ? std::string() : fmt::format("{}, line {}", what, found->name.place.line);
    };
    std::string found = find(file_->inputs, "input");
    if (found.empty()) found = find(file_->constants, "constant");
    return found.empty() ? find(file_->parameters, "parameter") : found;
  }

  /// The parameters that a use of a block shares are another use's own, or those of the first copy of a repeat.
  void check_share(const OperatorSyntax& op) {
    const std::string where = fmt::format("{}{}: share", label_, op.name.text);
    const auto found = std::find_if(block_.operators.begin(), block_.operators.end(), [&](const OperatorSyntax& other) {
      return other.is_block && other.name.text == op.share->text;
    });
    if (found == block_.operators.end()) {
      std::vector<std::string> known;
      for (const OperatorSyntax& other : block_.operators) {
        if (other.is_block && other.type.text == op.type.text) known.push_back(other.name.text);
      }
      const std::string nearest = nearest_name(op.share->text, known);
      fault(op.share->place, fmt::format("{}: no use of a block is called '{}' here{}", where, op.share->text,
                                         nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)));
      return;
    }
    const OperatorSyntax& owner = *found;
    if (owner.type.text != op.type.text) {
      fault(op.share->place, fmt::format("{}: {} is {}, this is {}; only uses of one block share parameters", where,
                                         owner.name.text, owner.type.text, op.type.text));
    } else if (&owner == &op && !op.repeat) {
      fault(op.share->place,
            fmt::format("{}: names itself; only the copies of a repeat share among themselves", where));
    } else if (owner.repeat.has_value() != op.repeat.has_value()) {
      fault(op.share->place,
            fmt::format("{}: only one of {} and {} is repeated", where, owner.name.text, op.name.text));
    } else if (&owner != &op && owner.share && owner.share->text != owner.name.text) {
      fault(op.share->place,
            fmt::format("{}: {} shares the parameters of {} itself", where, owner.name.text, owner.share->text),
            fmt::format("share: {}", owner.share->text));
    } else if (&owner != &op) {
      check_keys_of_shared(op, owner);
    }
  }

  /// What is said of parameters beside a use that has none of its own would have no effect.
  void check_keys_of_shared(const OperatorSyntax& op, const OperatorSyntax& owner) {
    const auto refuse = [&](const auto& field, const char* key) {
      if (!field) return;
      fault(field->place,
            fmt::format("{}{}: {} is of parameters, and those of {} belong to {}", label_, op.name.text, key,
                        op.name.text, owner.name.text),
            fmt::format("give it to {}; it then holds for every use that shares them", owner.name.text));
    };
    refuse(op.settings.requires_grad, "requires_grad");
    refuse(op.settings.comm_fusion, "comm_fusion");
    refuse(op.settings.gradient_dtype, "gradient_dtype");
    refuse(op.settings.state_dtype, "state_dtype");
  }

  NameSource result_source(const Word& word, const std::string& where) {
    const NameSource source = source_of(word, where);
    if (source.kind == NameSource::Kind::kUnknown || source.kind == NameSource::Kind::kOperator) return source;
    fault(word.place, fmt::format("{}: '{}' is not a result of an operator", where, word.text));
    return {};
  }

  static std::string list_of(const std::vector<Word>& words) {
    std::string text;
    for (const Word& word : words) text += (text.empty() ? "" : ", ") + word.text;
    return text;
  }

  void add_output(const NameSource& source, const std::string& name, const SourcePlace& place) {
    names_.outputs.push_back(source);
    names_.output_names.push_back(name);
    names_.output_places.push_back(place);
  }

  /// Kahn's algorithm; of the operators that are ready, the first in the file.
  void sort() {
    const std::size_t count = block_.operators.size();
    std::vector<std::vector<std::size_t>> readers(count);
    std::vector<std::size_t> num_missing(count);
    for (std::size_t i = 0; i < count; ++i) {
      for (const NameSource& source : names_.operands[i]) {
        if (source.kind != NameSource::Kind::kOperator) continue;
        readers[source.index].push_back(i);
        ++num_missing[i];
      }
    }
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    for (std::size_t i = 0; i < count; ++i) {
      if (num_missing[i] == 0) ready.push(i);
    }
    while (!ready.empty()) {
      const std::size_t i = ready.top();
      ready.pop();
      names_.order.push_back(i);
      for (const std::size_t reader : readers[i]) {
        if (--num_missing[reader] == 0) ready.push(reader);
      }
    }
    if (names_.order.size() < count) report_cycle(num_missing);
  }

  /// Walks from an operator that is never ready to one that it waits for, until it meets one again.
  void report_cycle(const std::vector<std::size_t>& num_missing) {
    std::size_t at = 0;
    while (num_missing[at] == 0) ++at;
    std::vector<std::size_t> path;
    bool by_parameter = false;
    while (std::find(path.begin(), path.end(), at) == path.end()) {
      path.push_back(at);
      for (const NameSource& source : names_.operands[at]) {
        if (source.kind != NameSource::Kind::kOperator || num_missing[source.index] == 0) continue;
        by_parameter = by_parameter || is_parameter(source);
        at = source.index;
        break;
      }
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), at));
    const std::size_t first = *std::min_element(path.begin(), path.end());
    std::rotate(path.begin(), std::find(path.begin(), path.end(), first), path.end());
    std::string names;
    for (std::size_t i = 0; i < path.size() && i < 8; ++i) {
      names += (i == 0 ? "" : " <- ") + block_.operators[path[i]].name.text;
    }
    if (path.size() > 8) names += fmt::format(" <- ({} more)", path.size() - 8);
    fault(block_.operators[first].name.place,
          fmt::format("{}{} waits for its own result: {} <- {}", label_, block_.operators[first].name.text, names,
                      block_.operators[first].name.text),
          by_parameter
              ? "a parameter that is used before its block: declare it under parameters and pass it as an input"
              : "");
  }

  bool is_parameter(const NameSource& source) const {
    if (source.kind != NameSource::Kind::kOperator) return false;
    const OperatorSyntax& op = block_.operators[source.index];
    return op.is_block && !source.rest.empty() && reads_parameter_(op, source.rest);
  }

  void find_unused() {
    const std::size_t count = block_.operators.size();
    std::vector<bool> is_read(count);
    for (const std::vector<NameSource>& operands : names_.operands) {
      for (const NameSource& source : operands) {
        if (source.kind == NameSource::Kind::kOperator && !is_parameter(source)) is_read[source.index] = true;
      }
    }
    const bool is_block = !block_.name.text.empty();
    if (!block_.outputs && (is_block || !names_.loss)) default_outputs(is_read);

    // What the outputs need, backwards.
    std::vector<bool> is_needed(count);
    std::vector<std::size_t> open;
    const auto need = [&](const NameSource& source) {
      if (source.kind != NameSource::Kind::kOperator || is_needed[source.index]) return;
      is_needed[source.index] = true;
      open.push_back(source.index);
    };
    for (const NameSource& output : names_.outputs) need(output);
    if (names_.loss) need(*names_.loss);
    if (open.empty()) return;  // the outputs are faults already
    std::vector<bool> input_used(block_.inputs.size());
    std::vector<bool> constant_used(block_.constants.size());
    std::vector<bool> parameter_used(block_.parameters.size());
    while (!open.empty()) {
      const std::size_t at = open.back();
      open.pop_back();
      for (const NameSource& source : names_.operands[at]) {
        if (!is_parameter(source)) need(source);
      }
    }
    // A tensor that an unneeded operator reads counts as used: that operator is the fault.
    bool is_complete = std::none_of(block_.operators.begin(), block_.operators.end(), lacks_inputs);
    for (const std::vector<NameSource>& operands : names_.operands) {
      for (const NameSource& source : operands) {
        if (source.kind == NameSource::Kind::kInput) input_used[source.index] = true;
        if (source.kind == NameSource::Kind::kConstant) constant_used[source.index] = true;
        if (source.kind == NameSource::Kind::kParameter) parameter_used[source.index] = true;
        if (source.kind == NameSource::Kind::kUnknown) is_complete = false;
      }
    }
    if (!is_complete) return;  // a misspelt name, or one in a line that makes no sense, may have been meant
    const auto report = [&](const std::vector<TensorSyntax>& tensors, const std::vector<bool>& used, const char* what) {
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (!used[i])
          fault(tensors[i].name.place,
                fmt::format("{}{}: no operator reads this {}", label_, tensors[i].name.text, what));
      }
    };
    report(block_.inputs, input_used, "input");
    report(block_.parameters, parameter_used, "parameter");
    report(block_.constants, constant_used, "constant");
    for (std::size_t i = 0; i < count; ++i) {
      if (is_needed[i]) continue;
      const Word& name = block_.operators[i].name;
      fault(name.place, fmt::format("{}{} feeds no output", label_, name.text),
            block_.outputs ? "use its result, or name it in outputs"
                           : "use its result, or name it in outputs beside the loss");
    }
  }

  /// Whether what a line reads is missing, so that it might be anything.
  static bool lacks_inputs(const OperatorSyntax& op) {
    if (op.type.text.empty()) return true;
    if (!op.in.empty()) return false;
    if (op.is_block) return op.in_place.line > 0 || find_built_in_block(op.type.text) != nullptr;  // `in: []`, or no in
    const OperatorType* type = find_operator_type(op.type.text);
    return type == nullptr || type->signature.operands.size() > type->signature.num_optional;
  }

  void default_outputs(const std::vector<bool>& is_read) {
    for (std::size_t i = 0; i < block_.operators.size(); ++i) {
      if (is_read[i]) continue;
      const OperatorSyntax& op = block_.operators[i];
      NameSource source{NameSource::Kind::kOperator, i, {}, {}};
      if (op.out.empty()) add_output(source, op.name.text, op.name.place);
      for (std::size_t k = 0; k < op.out.size(); ++k) {
        source.result = k;
        add_output(source, op.out[k].text, op.out[k].place);
      }
    }
    if (block_.name.text.empty() || names_.outputs.size() == 1 || names_.order.size() < block_.operators.size()) return;
    std::string results;
    for (const std::string& name : names_.output_names) results += (results.empty() ? "" : ", ") + name;
    fault(block_.name.place,
          names_.outputs.empty() ? fmt::format("block {} has no result", block_.name.text)
                                 : fmt::format("block {} has {} results that nobody uses: {}", block_.name.text,
                                               names_.outputs.size(), results),
          names_.outputs.empty() ? "" : "name the block's results: outputs: [...]");
  }

  const BlockSyntax& block_;
  const std::string& label_;
  const std::function<bool(const OperatorSyntax&, const std::string&)>& reads_parameter_;
  const BlockSyntax* file_;
  std::vector<Diagnostic>& faults_;
  std::map<std::string, Entry> table_;
  BlockNames names_;
};

}  // namespace

BlockNames resolve_names(
    const BlockSyntax& block, const Word* loss, const std::string& label,
    const std::function<bool(const OperatorSyntax& call, const std::string& rest)>& reads_parameter,
    std::vector<Diagnostic>& faults, const BlockSyntax* file) {
  return NameResolver(block, label, reads_parameter, file, faults).resolve(loss);
}

}  // namespace shardplan
