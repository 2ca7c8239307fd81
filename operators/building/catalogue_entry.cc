#include "operators/building/catalogue_entry.h"

namespace shardplan {
namespace {

std::vector<std::string> split_names(std::string_view text) {
  std::vector<std::string> names;
  std::string name;
  for (const char c : text) {
    if (c == ',') names.push_back(std::move(name));
    if (c == ',') name.clear();
    if (c != ',' && c != ' ') name += c;
  }
  if (!name.empty()) names.push_back(std::move(name));
  return names;
}

AttributeSpec pad_mode() { return text("pad_mode", "valid", "valid, same or pad"); }
AttributeSpec pad() {
  return list("pad", std::vector<std::int64_t>{0}, "of pad_mode pad: one number, or top, bottom, left, right");
}
AttributeSpec pair(std::string name) {
  return list(std::move(name), std::vector<std::int64_t>{1}, "one number, or height, width");
}

}  // namespace

AttributeSpec flag(std::string name, bool standard, std::string meaning) {
  return {std::move(name), AttributeKind::kFlag, standard, std::move(meaning)};
}

AttributeSpec integer(std::string name, std::optional<std::int64_t> standard, std::string meaning) {
  return {std::move(name), AttributeKind::kInteger, standard, std::move(meaning)};
}

AttributeSpec number(std::string name, std::optional<double> standard, std::string meaning) {
  return {std::move(name), AttributeKind::kNumber, standard, std::move(meaning)};
}

AttributeSpec text(std::string name, std::optional<std::string> standard, std::string meaning) {
  return {std::move(name), AttributeKind::kText, standard, std::move(meaning)};
}

AttributeSpec list(std::string name, std::optional<std::vector<std::int64_t>> standard, std::string meaning) {
  return {std::move(name), AttributeKind::kList, standard, std::move(meaning)};
}

AttributeSpec softmax_axis() { return integer("axis", -1, "the normalised dimension"); }

AttributeSpec epsilon(double standard) { return number("epsilon", standard, "added to the variance"); }

AttributeSpec loss_reduction() { return text("reduction", "mean", "of the rows' losses: mean, sum or none"); }

std::vector<AttributeSpec> norm_attributes() {
  return {integer("begin_norm_axis", -1, "first normalised dimension"),
          integer("begin_params_axis", -1, "first dimension of gamma and beta"), epsilon(1e-5)};
}

std::vector<AttributeSpec> convolution_attributes(std::string size) {
  std::vector<AttributeSpec> attributes = {pad_mode(), pad(), pair("stride"), pair("dilation"),
                                           integer("group", 1, "channels are convolved within groups")};
  if (!size.empty()) attributes.push_back(list(std::move(size), std::nullopt, "height, width"));
  return attributes;
}

std::vector<AttributeSpec> pool_attributes(std::string size) {
  std::vector<AttributeSpec> attributes = {pair("kernel_size"), pair("strides"), pad_mode(), pad()};
  if (!size.empty()) attributes.push_back(list(std::move(size), std::nullopt, "height, width"));
  return attributes;
}

OperatorType define(std::string name, std::string_view signature, std::vector<AttributeSpec> attributes, Infer infer,
                    Rule rule, Kernel kernel, Gradient gradient, double flops_per_point, std::string rule_text,
                    std::string partial_text, std::string notes) {
  const std::size_t arrow = signature.find("->");
  OperatorType type;
  type.name = std::move(name);
  type.operand_names = split_names(signature.substr(0, arrow));
  type.result_names = split_names(signature.substr(arrow + 2));
  type.attributes = std::move(attributes);
  type.infer = infer;
  type.rule = rule;
  type.kernel = kernel;
  type.flops_per_point = flops_per_point;
  type.gradient = gradient;
  type.rule_text = std::move(rule_text);
  type.partial_text = std::move(partial_text);
  type.notes = std::move(notes);
  return type;
}

OperatorType contraction(OperatorType type, double (*whole_flops)(const Operation&)) {
  type.work = WorkKind::kContraction;
  type.whole_flops = whole_flops;
  return type;
}

OperatorType view(OperatorType type) {
  type.work = WorkKind::kView;
  return type;
}

OperatorType in_phases(Phases (*phases)(const Operation&), OperatorType type) {
  type.phases = phases;
  return type;
}

}  // namespace shardplan
