#include "model/blocks/block_names.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace shardplan {
namespace {

struct Resolved {
  BlockNames names;
  BlockSyntax block;
  std::string faults;
};
Resolved resolve(const std::string& body, const std::function<bool(const std::string&)>& is_parameter = {}) {
  std::vector<Diagnostic> faults;
  Resolved resolved;
  resolved.block = read_block_syntax(body, "layer", faults);
  EXPECT_TRUE(faults.empty()) << faults.front().message;
  resolved.names = resolve_names(
      resolved.block, nullptr, "layer.",
      [&](const OperatorSyntax&, const std::string& rest) { return is_parameter && is_parameter(rest); }, faults);
  for (const Diagnostic& fault : faults) resolved.faults += fault.message + "\n";
  EXPECT_EQ(resolved.names.is_good, faults.empty());
  return resolved;
}

TEST(BlockNamesTest, SaysWhatEachNameStandsFor) {
  const Resolved found = resolve(R"(
inputs: {x: [B, H]}
parameters: {w: [H, H]}
constants: {c: 2}
operators:
  fc:    {block: nn.Dense, in: x, out_channels: H}
  split: {op: Split, in: fc, axis: 1, output_num: 2, out: [left, right]}
  y:     {op: Mul, in: [left, right]}
  z:     {op: MatMul, in: [y, fc.weight]}
  a:     {op: Mul, in: [z, 1/sqrt(H)]}
  b:     {op: Mul, in: [a, c]}
  d:     {op: MatMul, in: [b, w]}
)",
                                 [](const std::string& rest) { return rest == "weight"; });
  ASSERT_EQ(found.faults, "");
  using Kind = NameSource::Kind;
  const auto source = [&](std::size_t op, std::size_t operand) { return found.names.operands[op][operand]; };
  EXPECT_EQ(source(0, 0).kind, Kind::kInput);
  EXPECT_EQ(source(2, 0).kind, Kind::kOperator);
  EXPECT_EQ(source(2, 0).index, 1u);
  EXPECT_EQ(source(2, 0).result, 0u);
  EXPECT_EQ(source(2, 1).result, 1u);
  EXPECT_EQ(source(3, 1).kind, Kind::kOperator);
  EXPECT_EQ(source(3, 1).index, 0u);
  EXPECT_EQ(source(3, 1).rest, "weight");
  EXPECT_EQ(source(4, 1).kind, Kind::kNumber);
  EXPECT_EQ(source(5, 1).kind, Kind::kConstant);
  EXPECT_EQ(source(6, 1).kind, Kind::kParameter);
  EXPECT_EQ(found.names.output_names, std::vector<std::string>{"d"});  // what nothing reads
  EXPECT_EQ(found.names.outputs[0].index, 6u);
}

// Compared with repeatedly taking the first operator of the file whose operands are all available.
TEST(BlockNamesTest, OrderIsThatOfTheFileAsFarAsResultsAllow) {
  constexpr std::uint64_t kSeed = 61;
  Random random(kSeed);
  for (int round = 0; round < 100; ++round) {
    const std::size_t count = 2 + random.below(12);
    std::vector<std::size_t> place(count);  // of each operator in the file; operators read results of lower numbers
    std::vector<std::size_t> number(count);
    for (std::size_t i = 0; i < count; ++i) number[i] = i;
    for (std::size_t i = count; i-- > 1;) std::swap(number[i], number[random.below(i + 1)]);
    for (std::size_t i = 0; i < count; ++i) place[number[i]] = i;
    std::vector<std::vector<std::size_t>> reads(count);  // by place in the file
    std::vector<bool> is_read(count);
    std::vector<std::string> lines(count);
    for (std::size_t i = 0; i < count; ++i) {
      std::string operands;
      for (std::size_t k = 0; k < 2; ++k) {
        const std::size_t from = random.below(i + 1);
        operands += (k == 0 ? "" : ", ") + (from == i ? std::string("x") : "n" + std::to_string(from));
        if (from < i) reads[place[i]].push_back(place[from]), is_read[from] = true;
      }
      lines[place[i]] = "  n" + std::to_string(i) + ": {op: Add, in: [" + operands + "]}\n";
    }
    std::string body = "inputs: {x: [4]}\noperators:\n";
    std::string outputs;
    for (std::size_t i = 0; i < count; ++i) {
      body += lines[i];
      if (!is_read[i]) outputs += (outputs.empty() ? "n" : ", n") + std::to_string(i);
    }
    if (body.find("x]") == std::string::npos && body.find("[x") == std::string::npos) continue;
    const Resolved found = resolve(body + "outputs: [" + outputs + "]\n");
    ASSERT_EQ(found.faults, "") << body;
    std::vector<std::size_t> expected;
    std::vector<bool> is_done(count);
    while (expected.size() < count) {
      std::size_t next = 0;
      for (bool is_ready = false; !is_ready; next += is_ready ? 0 : 1) {
        is_ready = !is_done[next];
        for (const std::size_t from : reads[next]) is_ready = is_ready && is_done[from];
      }
      is_done[next] = true;
      expected.push_back(next);
    }
    EXPECT_EQ(found.names.order, expected) << body << "seed " << kSeed;
  }
}

TEST(BlockNamesTest, FindsCyclesAndWhatNobodyReads) {
  const auto faults = [](const std::string& operators) {
    return resolve("inputs: {x: [4], y: [4]}\noperators:\n" + operators).faults;
  };
  EXPECT_EQ(faults("  a: {op: Add, in: [x, y]}\n"), "");
  EXPECT_EQ(faults("  a: {op: ReLU, in: x}\n"), "layer.y: no operator reads this input\n");
  EXPECT_EQ(faults("  a: {op: ReLU}\n"), "");  // the missing input, found where types are, may be any
  EXPECT_EQ(faults("  a: {op: Range, limit: 4}\n  b: {op: Add, in: [x, a]}\n"),
            "layer.y: no operator reads this input\n");
  EXPECT_EQ(faults("  a: {op: Add, in: [x, yy]}\n"),
            "layer.a: no tensor 'yy' here; did you mean 'y' (input, line 1)?\n");
  EXPECT_EQ(faults("  a: {op: Add, in: [x, y]}\n  b: {op: Add, in: [a, c]}\n  c: {op: Add, in: [x, d]}\n"
                   "  d: {op: Add, in: [b, x]}\n  e: {op: ReLU, in: d}\n"),
            "layer.b waits for its own result: b <- c <- d <- b\n");
  EXPECT_EQ(faults("  a: {op: Add, in: [x, y]}\n  b: {op: ReLU, in: a}\n  c: {op: ReLU, in: a}\n"),
            "block layer has 2 results that nobody uses: b, c\n");
  EXPECT_EQ(faults("  a: {op: Add, in: [x, y]}\n  b: {op: ReLU, in: a}\noutputs: [a]\n"), "layer.b feeds no output\n");
  EXPECT_EQ(faults("  a: {op: Add, in: [x, y.weight]}\n"),
            "layer.a: 'y' is a tensor (input, line 1) and has no parts\n");
  EXPECT_EQ(faults("  a: {op: Add, in: [x, y]}\noutputs: [x]\n"),
            "layer.outputs: 'x' is not a result of an operator\n");
}

TEST(BlockNamesTest, OnlyUsesOfOneBlockShareParameters) {
  const auto faults = [](const std::string& lines) {
    return resolve("inputs: {x: [4, 4]}\noperators:\n  a: {block: nn.Dense, in: x, out_channels: 4}\n" + lines).faults;
  };
  EXPECT_EQ(faults("  b: {block: nn.Dense, in: a, out_channels: 4, share: a}\n"), "");
  EXPECT_EQ(faults("  b: {block: nn.Dense, in: a, out_channels: 4, share: aa}\n"),
            "layer.b: share: no use of a block is called 'aa' here; did you mean 'a'?\n");
  EXPECT_EQ(faults("  b: {block: nn.LayerNorm, in: a, share: a}\n"),
            "layer.b: share: a is nn.Dense, this is nn.LayerNorm; only uses of one block share parameters\n");
  EXPECT_EQ(faults("  b: {block: nn.Dense, in: a, out_channels: 4, share: b}\n"),
            "layer.b: share: names itself; only the copies of a repeat share among themselves\n");
}

TEST(BlockNamesTest, WhatIsSaidOfParametersStandsWhereTheyAre) {
  const auto faults = [](const std::string& key) {
    return resolve(
               "inputs: {x: [4, 4]}\noperators:\n  a: {block: nn.Dense, in: x, out_channels: 4}\n"
               "  b: {block: nn.Dense, in: a, out_channels: 4, share: a, " +
               key + "}\n")
        .faults;
  };
  for (const std::string key :
       {"requires_grad: false", "state_dtype: bf16", "gradient_dtype: bf16", "comm_fusion: 2"}) {
    EXPECT_EQ(faults(key),
              "layer.b: " + key.substr(0, key.find(':')) + " is of parameters, and those of b belong to a\n");
  }
  EXPECT_EQ(faults("recompute: true"), "");
  EXPECT_EQ(resolve("inputs: {x: [4, 4]}\noperators:\n"
                    "  a: {block: nn.Dense, in: x, out_channels: 4, repeat: 2, share: a, requires_grad: false}\n")
                .faults,
            "");
}

TEST(BlockNamesTest, ABlockSeesNoTensorsOfTheFile) {
  std::vector<Diagnostic> faults;
  const BlockSyntax file = read_block_syntax("inputs: {mask: [4]}\nconstants: {cos: 2}\n", "", faults);
  const BlockSyntax block = read_block_syntax(
      "inputs: {x: [4]}\noperators:\n  a: {op: Mul, in: [x, cos]}\n  y: {op: Add, in: [a, mask]}\n", "layer", faults);
  ASSERT_TRUE(faults.empty());
  resolve_names(
      block, nullptr, "layer.", [](const OperatorSyntax&, const std::string&) { return false; }, faults, &file);
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_EQ(faults[0].message, "layer.a: no tensor 'cos' here, only in the file (constant, line 2)");
  EXPECT_EQ(faults[0].hint, "declare it under the inputs of layer and pass it to each use");
  EXPECT_EQ(faults[1].message, "layer.y: no tensor 'mask' here, only in the file (input, line 1)");
}

}  // namespace
}  // namespace shardplan
