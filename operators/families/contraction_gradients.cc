#include <algorithm>

#include "operators/building/gradient_support.h"
#include "operators/families/contraction.h"

namespace shardplan {
namespace {

/// Adds an Einsum by letters. Indices of the result that no term has are put in as repetitions.
TensorId einsum(GradientBuilder& builder, const std::vector<std::string>& terms, const std::vector<TensorId>& operands,
                const std::string& result, const Shape& shape) {
  std::string letters;
  Shape with_ones;
  for (std::size_t d = 0; d < result.size(); ++d) {
    const bool is_known =
        std::ranges::any_of(terms, [&](const std::string& term) { return term.find(result[d]) != std::string::npos; });
    if (is_known) letters += result[d];
    with_ones.push_back(is_known ? shape[d] : 1);
  }
  const std::string left = terms.size() == 1 ? terms[0] : terms[0] + "," + terms[1];
  const TensorId sum = add_one(builder, "Einsum", operands, {{"equation", left + "->" + letters}});
  return broadcast_to(builder, reshape_to(builder, sum, with_ones), shape);
}

/// The batch dimensions of an operand as letters, without those of size 1 that are broadcast; the view without them.
struct Lettered {
  std::string letters;
  Shape shape;
};
Lettered letter(const Shape& operand, const Shape& result, char row, char column) {
  Lettered lettered;
  const std::size_t skipped = result.size() - operand.size();
  for (std::size_t d = 0; d < operand.size(); ++d) {
    const bool is_batch = d + 2 < operand.size();
    if (is_batch && operand[d] != result[skipped + d]) continue;
    lettered.letters += is_batch ? static_cast<char>('A' + skipped + d) : d + 2 == operand.size() ? row : column;
    lettered.shape.push_back(operand[d]);
  }
  return lettered;
}

}  // namespace

/// A matmul again where no batch dimension has to be added up, else an Einsum, so that no sum over the batch is held
/// unreduced.
Gradients matmul_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  const TensorId dy = *request.result_gradients[0];
  const Operation& operation = request.operation;
  const bool ta = operation.flag("transpose_a");
  const bool tb = operation.flag("transpose_b");
  const Shape& y = operation.results[0].shape;
  const auto matmul = [&](TensorId left, TensorId right, bool transpose_left, bool transpose_right) {
    return add_one(builder, operation.type->name, {left, right},
                   {{"transpose_a", transpose_left}, {"transpose_b", transpose_right}});
  };
  for (std::size_t i = 0; i < 2; ++i) {
    if (!request.needed[i]) continue;
    const Shape& own = operation.operands[i].shape;
    const TensorId other = request.operands[1 - i];
    const bool has_all_batches = own.size() == y.size() && std::equal(own.begin(), own.end() - 2, y.begin());
    if (has_all_batches && i == 0) {
      gradients[0] = ta ? matmul(other, dy, tb, true) : matmul(dy, other, false, !tb);
    } else if (has_all_batches) {
      gradients[1] = tb ? matmul(dy, other, true, ta) : matmul(other, dy, !ta, false);
    } else {
      const auto [row, column] =
          i == 0 ? (ta ? std::pair('k', 'm') : std::pair('m', 'k')) : (tb ? std::pair('n', 'k') : std::pair('k', 'n'));
      const auto [other_row, other_column] =
          i == 1 ? (ta ? std::pair('k', 'm') : std::pair('m', 'k')) : (tb ? std::pair('n', 'k') : std::pair('k', 'n'));
      const Lettered target = letter(own, y, row, column);
      const Lettered partner = letter(operation.operands[1 - i].shape, y, other_row, other_column);
      const Lettered gradient = letter(y, y, 'm', 'n');
      const TensorId sum = einsum(builder, {gradient.letters, partner.letters},
                                  {dy, reshape_to(builder, other, partner.shape)}, target.letters, target.shape);
      gradients[i] = reshape_to(builder, sum, own);
    }
  }
  return gradients;
}

Gradients einsum_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  const TensorId dy = *request.result_gradients[0];
  std::string equation;
  for (const char c : request.operation.text("equation")) {
    if (c != ' ') equation += c;
  }
  const std::size_t arrow = equation.find("->");
  const std::string result = equation.substr(arrow + 2);
  std::vector<std::string> terms = {equation.substr(0, arrow)};
  if (const std::size_t comma = terms[0].find(','); comma != std::string::npos) {
    terms = {terms[0].substr(0, comma), terms[0].substr(comma + 1)};
  }
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (!request.needed[i]) continue;
    std::vector<std::string> factors = {result};
    std::vector<TensorId> operands = {dy};
    if (terms.size() == 2) {
      factors.push_back(terms[1 - i]);
      operands.push_back(request.operands[1 - i]);
    }
    gradients[i] = einsum(builder, factors, operands, terms[i], request.operation.operands[i].shape);
  }
  return gradients;
}

}  // namespace shardplan
