#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/blocks/block_template.h"
#include "model/blocks/file_context.h"

namespace shardplan {

/// Types the blocks of one file. Keeps what it has typed, so that a block is worked through once for each set of input
/// types, however often it is used.
class TemplateLibrary {
 public:
  /// Operations are interned in `builder`; it, `model` and `faults` must outlive the library.
  TemplateLibrary(const ModelSyntax& model, FileNumbers numbers, TemplateOptions options, OperatorGraphBuilder& builder,
                  std::vector<Diagnostic>& faults);
  TemplateLibrary(const TemplateLibrary&) = delete;
  TemplateLibrary& operator=(const TemplateLibrary&) = delete;

  /// The file itself; null if there were faults. `unchecked` receives operators that are wrong and keep others from
  /// being checked.
  const BlockTemplate* file_template(std::vector<std::string>& unchecked);
  /// With what the templates have used so far.
  const FileNumbers& numbers() const { return file_.numbers; }

 private:
  struct Key {
    const BlockSyntax* block = nullptr;
    std::vector<TensorType> inputs;
    std::vector<std::int64_t> given;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };

  const BlockTemplate* template_of(BlockUse use, BlockFaults& caller);
  bool may_enter(const BlockUse& use, BlockFaults& caller);
  void shorten_faults(const BlockUse& use, const BlockFaults& caller, std::size_t first_fault);

  FileContext file_;
  std::map<const BlockSyntax*, BlockNames> names_;
  std::unordered_map<Key, std::unique_ptr<BlockTemplate>, KeyHash> templates_;  // null: faults; never iterated over
  std::set<const BlockSyntax*> reported_;  // the file's blocks whose faults have been reported once
  std::vector<std::string> active_;        // blocks being typed, outermost first
};

}  // namespace shardplan
