#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/yaml.h"
#include "model/syntax/model_keys.h"

namespace shardplan {

/// Reads the options of one section of a model file, "parallel" or "training". Each value is asked for by its key; one
/// that is wrong is a fault, and the caller's default holds.
class OptionReader {
 public:
  /// Adds a fault for a section that is no map, and for each key that is not in `keys`. All must outlive the reader.
  OptionReader(const YamlDocument& document, const YamlNode& node, const char* section, const KeySpecs& keys,
               std::vector<Diagnostic>& faults);

  /// Null if the section does not have the key.
  const YamlNode* find(const char* key) const { return node_.find(key); }
  SourcePlace place(const YamlNode& node) const { return document_.place(node); }

  void fault(const YamlNode& node, std::string message, std::string hint = "") const;
  /// "parallel: level is '5'; expected a whole number from 0 to 2".
  void refuse(const YamlNode& node, const std::string& key, const std::string& expected) const;

  /// One of the key's choices.
  std::optional<std::string> choice(const char* key) const;
  void flag(const char* key, bool& value) const;
  void number(const char* key, double& value, double low, double high) const;
  std::optional<std::int64_t> whole(const char* key, std::int64_t low, std::int64_t high) const;
  std::optional<std::int64_t> whole(const YamlNode& node, const std::string& key, std::int64_t low,
                                    std::int64_t high) const;
  std::string text(const char* key) const;
  /// One name or a list of names.
  std::vector<std::string> names(const char* key) const;

 private:
  const YamlDocument& document_;
  const YamlNode& node_;
  const std::string section_;
  const KeySpecs& keys_;
  std::vector<Diagnostic>& faults_;
};

}  // namespace shardplan
