#include "model/syntax/attribute_reader.h"

#include "model/syntax/bracket_text.h"
#include "model/syntax/scalar_values.h"

namespace shardplan {
namespace {

class AttributeReader {
 public:
  AttributeReader(const YamlDocument& document, DimScope& dims, const std::string& where)
      : document_(document), dims_(dims), where_(where) {}

  Attribute read(const YamlNode& node, AttributeKind kind) {
    switch (kind) {
      case AttributeKind::kFlag:
        if (const std::optional<bool> flag = flag_value(node)) return *flag;
        refuse(node, "true or false");
      case AttributeKind::kText:
        if (!node.is_scalar()) refuse(node, "a word");
        if (const std::optional<DataType> type = data_type_value(node.text)) return std::string(to_string(*type));
        return node.text;
      case AttributeKind::kNumber:
        return evaluate(node, "a number", &DimScope::real);
      case AttributeKind::kInteger:
        return whole(node, "a whole number");
      case AttributeKind::kList:
        break;
    }
    std::vector<std::int64_t> list;
    if (const std::optional<YamlNode> tuple = bracket_list(node)) return read(*tuple, kind);
    if (!node.is_sequence()) return std::vector{whole(node, "a list of whole numbers")};
    for (const YamlNode& item : node.items) list.push_back(whole(item, "a list of whole numbers"));
    return list;
  }

 private:
  [[noreturn]] void refuse(const YamlNode& node, const char* wanted) const {
    throw InputError(document_.place(node), "{} is {}; expected {}", where_, describe(node), wanted);
  }

  template <class Number>
  Number evaluate(const YamlNode& node, const char* wanted, Number (DimScope::*compute)(const Expression&)) {
    if (!node.is_scalar()) refuse(node, wanted);
    try {
      return (dims_.*compute)(Expression::parse(node.text));
    } catch (const InputError& error) {
      throw InputError(document_.place(node), "{}: {}", where_, error.diagnostics()[0].message);
    }
  }

  std::int64_t whole(const YamlNode& node, const char* wanted) { return evaluate(node, wanted, &DimScope::whole); }

  const YamlDocument& document_;
  DimScope& dims_;
  const std::string& where_;
};

}  // namespace

Attribute read_attribute(const YamlDocument& document, const YamlNode& node, AttributeKind kind, DimScope& dims,
                         const std::string& where) {
  return AttributeReader(document, dims, where).read(node, kind);
}

}  // namespace shardplan
