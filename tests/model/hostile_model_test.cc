#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "base/yaml.h"
#include "model/read_model.h"

namespace shardplan {
namespace {

/// Reads a text and checks only how it ends: with a model, or with errors that name a place.
bool ends_well(const std::string& text) {
  try {
    read_model_text(text, "m.yaml");
    return true;
  } catch (const InputError& error) {
    return !error.diagnostics().empty();
  }
}

TEST(HostileModelTest, ExplodingTextsAreRefused) {
  // A block of a block of a block ..., each ten times as large as the one before.
  std::string nested =
      "shardplan: 1\ninputs: {x: [4]}\nblocks:\n  b0: {inputs: {x: [4]}, operators: {a: {op: ReLU, in: x}}}\n";
  for (int i = 1; i < 30; ++i) {
    nested +=
        fmt::format("  b{}: {{inputs: {{x: [4]}}, operators: {{a: {{block: b{}, in: x, repeat: 10}}}}}}\n", i, i - 1);
  }
  EXPECT_TRUE(ends_well(nested + "operators: {a: {block: b4, in: x}}\n"));
  EXPECT_TRUE(ends_well(nested + "operators: {a: {block: b29, in: x}}\n"));

  // Each use doubles the shape, so that no two are equal.
  EXPECT_TRUE(ends_well(R"(shardplan: 1
inputs: {x: [4]}
blocks: {b: {dims: {N: inferred}, inputs: {x: [N]}, operators: {a: {op: Concat, in: [x, x]}}}}
operators: {a: {block: b, in: x, repeat: 100000}}
)"));

  // Nested blocks, deeper than any stack should be.
  std::string deep =
      "shardplan: 1\ninputs: {x: [4]}\nblocks:\n  b0: {inputs: {x: [4]}, operators: {a: {op: ReLU, in: x}}}\n";
  for (int i = 1; i < 3000; ++i) {
    deep += fmt::format("  b{}: {{inputs: {{x: [4]}}, operators: {{a: {{block: b{}, in: x}}}}}}\n", i, i - 1);
  }
  EXPECT_TRUE(ends_well(deep + "operators: {a: {block: b2999, in: x}}\n"));

  // Dims that depend on each other in a long chain, and a long cycle of operators.
  std::string chain = "shardplan: 1\ndims:\n  d0: 1\n";
  for (int i = 1; i < 3000; ++i) chain += fmt::format("  d{}: d{}\n", i, i - 1);
  EXPECT_TRUE(ends_well(chain + "inputs: {x: [d2999]}\noperators: {a: {op: ReLU, in: x}}\n"));
  std::string cycle = "shardplan: 1\noperators:\n  a0: {op: ReLU, in: a2999}\n";
  for (int i = 1; i < 3000; ++i) cycle += fmt::format("  a{}: {{op: ReLU, in: a{}}}\n", i, i - 1);
  EXPECT_TRUE(ends_well(cycle));

  // Nearly everything is misspelt.
  std::string misspelt = "shardplan: 1\ninputs: {x: [4]}\noperators:\n";
  for (int i = 0; i < 3000; ++i)
    misspelt += fmt::format("  some_operator_{}: {{op: ReLU, in: some_operatro_{}}}\n", i, i + 1);
  EXPECT_TRUE(ends_well(misspelt));
}

TEST(HostileModelTest, BinaryTextsAreRefused) {
  EXPECT_TRUE(ends_well(std::string("shardplan: 1\n\0\x01\x02\xff\xfe", 18)));
  EXPECT_TRUE(ends_well("\xff\xfe\x00\x00"));
  EXPECT_TRUE(ends_well("model: \"\\u0000\\uD800\"\nshardplan: 1"));
  EXPECT_TRUE(ends_well("%YAML 9.9\n---\nshardplan: 1\n"));
  EXPECT_TRUE(ends_well("shardplan: 1\noperators: {a: {op: ReLU, in: '" + std::string(100000, '.') + "'}}"));
}

/// One random change of a text: characters or lines deleted, doubled, swapped, or replaced by something that has a
/// meaning in YAML.
std::string mutate(std::string text, Random& random) {
  static const std::vector<std::string> pieces = {
      "{",  "}",   "[",     "]",           ": ", ",",       "\n",       "  ",          "- ",        "null", "0",
      "-1", "1e9", "given", "B*B",         "*",  "&a",      "'",        "repeat: 9, ", "#",         "x",    "in: ",
      "()", "/0",  "op: ",  "99999999999", "\t", "block: ", "inferred", ".",           "strategy: "};
  const auto at = [&] { return static_cast<std::size_t>(random.below(text.size() + 1)); };
  switch (random.below(5)) {
    case 0: {
      const std::size_t begin = at();
      text.erase(begin, random.below(20));
      break;
    }
    case 1: {
      const std::size_t begin = at();
      text.insert(at(), text.substr(begin, random.below(60)));
      break;
    }
    case 2:
      text.insert(at(), pieces[random.below(pieces.size())]);
      break;
    case 3: {
      const std::size_t begin = std::min(at(), text.size() - 1);
      const std::string& piece = pieces[random.below(pieces.size())];
      text.replace(begin, piece.size(), piece);
      break;
    }
    default: {  // one name instead of another
      const std::size_t from = text.find_first_of("abcdefghij", at());
      const std::size_t to = text.find_first_of("klmnopqrst", at());
      if (from != std::string::npos && to != std::string::npos) text[from] = text[to];
    }
  }
  return text.empty() ? "x" : text;
}

TEST(HostileModelTest, MutatedFilesNeverCrash) {
  std::vector<std::string> texts;
  for (const char* name : {"mlp", "basic-blocks-net2", "lenet"}) {
    texts.push_back(read_text_file(fmt::format("configs/{}.yaml", name)));
  }
  Random random(20261121);
  for (int i = 0; i < 600; ++i) {
    std::string text = texts[random.below(texts.size())];
    const std::uint64_t changes = 1 + random.below(4);
    for (std::uint64_t k = 0; k < changes; ++k) text = mutate(std::move(text), random);
    EXPECT_TRUE(ends_well(text)) << "case " << i;
  }
}

}  // namespace
}  // namespace shardplan
