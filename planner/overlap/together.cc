// Everything is one bit per pair, and 64 pairs at a time: the communications that wait for each operator are the
// transpose of the operators that each communication waits for. A communication is over before those that wait for any
// operator that waits for it.
#include "planner/overlap/together.h"

#include <algorithm>
#include <array>
#include <functional>

namespace shardplan {
namespace {

constexpr std::size_t kWord = 64;

class BitMatrix {
 public:
  BitMatrix(std::size_t rows, std::size_t columns)
      : rows_(rows), words_((columns + kWord - 1) / kWord), columns_(columns), bits_(rows * words_, 0) {}

  std::span<std::uint64_t> row(std::size_t i) { return std::span(bits_).subspan(i * words_, words_); }
  std::span<const std::uint64_t> row(std::size_t i) const { return std::span(bits_).subspan(i * words_, words_); }
  bool is_set(std::size_t i, std::size_t j) const { return (bits_[i * words_ + j / kWord] >> j % kWord & 1) != 0; }
  void set(std::size_t i, std::size_t j) { bits_[i * words_ + j / kWord] |= std::uint64_t{1} << j % kWord; }

  BitMatrix transposed() const {
    BitMatrix result(columns_, rows_);
    std::array<std::uint64_t, kWord> block{};
    for (std::size_t i = 0; i < rows_; i += kWord) {
      const std::size_t height = std::min(kWord, rows_ - i);
      for (std::size_t word = 0; word < words_; ++word) {
        std::uint64_t any = 0;
        for (std::size_t k = 0; k < height; ++k) any |= block[k] = bits_[(i + k) * words_ + word];
        if (any == 0) continue;
        std::fill(block.begin() + static_cast<std::ptrdiff_t>(height), block.end(), 0);
        transpose(block);
        const std::size_t width = std::min(kWord, columns_ - word * kWord);
        for (std::size_t k = 0; k < width; ++k) result.bits_[(word * kWord + k) * result.words_ + i / kWord] = block[k];
      }
    }
    return result;
  }

 private:
  /// Of a block of 64 x 64: exchanges its upper right quarter with its lower left one, then does the same in each
  /// quarter, in all of them at once.
  static void transpose(std::array<std::uint64_t, kWord>& block) {
    std::uint64_t low = 0xffff'ffff;  // the lower half of each part
    for (std::size_t half = kWord / 2; half > 0; half /= 2, low ^= low << half) {
      for (std::size_t k = 0; k < kWord; k = (k + half + 1) & ~half) {
        const std::uint64_t swapped = (block[k] >> half ^ block[k + half]) & low;
        block[k] ^= swapped << half;
        block[k + half] ^= swapped;
      }
    }
  }

  std::size_t rows_, words_, columns_;
  std::vector<std::uint64_t> bits_;
};

}  // namespace

std::vector<OperatorSet> together(std::span<const PlacedCommunication> communications, std::size_t num_groups,
                                  std::span<const std::pair<std::size_t, std::size_t>> known,
                                  std::size_t num_operators) {
  const std::size_t count = communications.size();
  BitMatrix before(count, num_operators);
  for (std::size_t i = 0; i < count; ++i) std::ranges::copy(communications[i].before->words(), before.row(i).begin());
  const BitMatrix waiting = before.transposed();  // by operator: the communications that wait for it
  BitMatrix later(count, count);
  for (const auto& [earlier, one] : known) later.set(earlier, one);
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<std::uint64_t> row = later.row(i);
    for (const OperatorId op : communications[i].waiting) {
      std::ranges::transform(row, waiting.row(op.value()), row.begin(), std::bit_or());
    }
    later.set(i, i);
  }
  const BitMatrix earlier = later.transposed();
  BitMatrix meeting(num_groups, count);  // the communications that some member may run together with
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<std::uint64_t> row = meeting.row(communications[i].group);
    for (std::size_t word = 0; word < row.size(); ++word) row[word] |= ~(later.row(i)[word] | earlier.row(i)[word]);
  }
  std::vector<OperatorSet> result(num_groups, OperatorSet(num_groups));
  for (std::size_t group = 0; group < num_groups; ++group) {
    for (std::size_t i = 0; i < count; ++i) {
      if (meeting.is_set(group, i)) result[group].insert(OperatorId(communications[i].group));
    }
  }
  return result;
}

}  // namespace shardplan
