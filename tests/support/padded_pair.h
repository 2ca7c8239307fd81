#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "model/read_model.h"

namespace shardplan {

/// One text of a model at two sizes, as graph/pad.h takes them.
struct PaddedPair {
  OperatorGraph real;
  OperatorGraph padded;
};
inline PaddedPair padded_pair(const std::string& body, const std::map<std::string, std::int64_t>& real,
                              const std::map<std::string, std::int64_t>& padded) {
  std::string dims;
  for (const auto& [name, size] : real) dims += (dims.empty() ? "" : ", ") + name + ": " + std::to_string(size);
  const std::string text = "shardplan: 1\nmodel: pair\ndims: {" + dims + "}\n" + body;
  return {read_model_text(text, "pair.yaml").graph, read_model_text(text, "pair.yaml", {padded, {}}).graph};
}

}  // namespace shardplan
