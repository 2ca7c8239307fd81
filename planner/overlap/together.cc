// Everything is one bit per pair, handled 64 pairs at a time. The communications that wait for each operator are the
// transpose of the operators that each communication waits for; a communication is over before those begin that wait
// for any operator that waits for it. So that no matrix of all pairs is held, pairs are compared block by block: each
// communication of a block with those of this and later blocks, in both directions.
#include "planner/overlap/together.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>

#include "base/side_by_side.h"

namespace shardplan {
namespace {

constexpr std::size_t kWord = 64;
constexpr std::size_t kBlock = 16 * kWord;
constexpr std::size_t kBlocksAtOnce = 4;  // threads

using Words = std::span<const std::uint64_t>;

void add(std::span<std::uint64_t> to, Words words) { std::ranges::transform(to, words, to.begin(), std::bit_or()); }

class BitMatrix {
 public:
  BitMatrix(std::size_t rows, std::size_t columns)
      : rows_(rows), words_((columns + kWord - 1) / kWord), columns_(columns), bits_(rows * words_, 0) {}

  /// The matrix of `columns` rows whose columns are the `rows` bit sets that `row(i)` returns.
  template <class Row>
  static BitMatrix transposed(std::size_t rows, std::size_t columns, const Row& row) {
    BitMatrix result(columns, rows);
    std::array<Words, kWord> sets;
    std::array<std::uint64_t, kWord> block{};
    for (std::size_t i = 0; i < rows; i += kWord) {
      const std::size_t height = std::min(kWord, rows - i);
      for (std::size_t k = 0; k < height; ++k) sets[k] = row(i + k);
      for (std::size_t word = 0; word * kWord < columns; ++word) {
        std::uint64_t any = 0;
        for (std::size_t k = 0; k < height; ++k) any |= block[k] = sets[k][word];
        if (any == 0) continue;
        std::fill(block.begin() + static_cast<std::ptrdiff_t>(height), block.end(), 0);
        transpose(block);
        const std::size_t width = std::min(kWord, columns - word * kWord);
        for (std::size_t k = 0; k < width; ++k) result.bits_[(word * kWord + k) * result.words_ + i / kWord] = block[k];
      }
    }
    return result;
  }
  BitMatrix transposed() const {
    return transposed(rows_, columns_, [&](std::size_t i) { return row(i); });
  }

  std::span<std::uint64_t> row(std::size_t i) { return std::span(bits_).subspan(i * words_, words_); }
  Words row(std::size_t i) const { return std::span(bits_).subspan(i * words_, words_); }
  void set(std::size_t i, std::size_t j) { bits_[i * words_ + j / kWord] |= std::uint64_t{1} << j % kWord; }
  void add(const BitMatrix& other) { shardplan::add(bits_, other.bits_); }

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

/// Compares pairs of communications. What it is made from must outlive it.
class Pairs {
 public:
  Pairs(std::span<const PlacedCommunication> communications, std::span<const std::pair<std::size_t, std::size_t>> known,
        std::size_t num_operators)
      : communications_(communications),
        known_(known),
        waiting_(BitMatrix::transposed(communications.size(), num_operators,
                                       [&](std::size_t i) { return Words(communications[i].before->words()); })) {}

  /// Adds to the rows of the groups of a block, which begins at a multiple of 64: the communications, from the block's
  /// first one on, that some member may run together with.
  void add_block(std::size_t begin, BitMatrix& by_group) const {
    const std::size_t count = communications_.size() - begin, size = std::min(kBlock, count), first = begin / kWord;
    BitMatrix later(size, count), of_block_later(count, size);  // the columns: later than the row
    const auto add_waiting = [&](std::size_t i, std::span<std::uint64_t> row) {
      for (const OperatorId op : communications_[begin + i].waiting) {
        add(row, waiting_.row(op.value()).subspan(first, row.size()));
      }
    };
    for (std::size_t i = 0; i < size; ++i) add_waiting(i, later.row(i));
    for (std::size_t i = 0; i < count; ++i) add_waiting(i, of_block_later.row(i));
    for (const auto& [earlier, one] : known_) {
      if (earlier < begin || one < begin) continue;
      if (earlier < begin + size) later.set(earlier - begin, one - begin);
      if (one < begin + size) of_block_later.set(earlier - begin, one - begin);
    }
    const BitMatrix earlier = of_block_later.transposed();
    for (std::size_t i = 0; i < size; ++i) {
      later.set(i, i);
      const std::span<std::uint64_t> row = by_group.row(communications_[begin + i].group).subspan(first);
      for (std::size_t word = 0; word < row.size(); ++word) row[word] |= ~(later.row(i)[word] | earlier.row(i)[word]);
    }
  }

 private:
  std::span<const PlacedCommunication> communications_;
  std::span<const std::pair<std::size_t, std::size_t>> known_;
  BitMatrix waiting_;  // by operator: the communications that wait for it
};

}  // namespace

std::vector<OperatorSet> together(std::span<const PlacedCommunication> communications, std::size_t num_groups,
                                  std::span<const std::pair<std::size_t, std::size_t>> known,
                                  std::size_t num_operators) {
  const std::size_t count = communications.size(), threads = num_processors(kBlocksAtOnce);
  std::vector<BitMatrix> met(threads, BitMatrix(num_groups, count));
  {
    const Pairs pairs(communications, known, num_operators);
    side_by_side(threads, (count + kBlock - 1) / kBlock,
                 [&](std::size_t thread, std::size_t block) { pairs.add_block(block * kBlock, met[thread]); });
  }
  for (std::size_t thread = 1; thread < threads; ++thread) met.front().add(met[thread]);
  BitMatrix groups(num_groups, num_groups);
  side_by_side(threads, num_groups, [&](std::size_t, std::size_t group) {
    const Words row = met.front().row(group);
    for (std::size_t word = 0; word < row.size(); ++word) {
      const std::size_t left = count - word * kWord;  // bits after the last communication are undefined
      std::uint64_t bits = left < kWord ? row[word] & ((std::uint64_t{1} << left) - 1) : row[word];
      for (; bits != 0; bits &= bits - 1) {
        const auto bit = static_cast<std::size_t>(std::countr_zero(bits));
        groups.set(group, communications[word * kWord + bit].group);
      }
    }
  });
  groups.add(groups.transposed());
  std::vector<OperatorSet> result;
  for (std::size_t group = 0; group < num_groups; ++group) result.emplace_back(groups.row(group));
  return result;
}

}  // namespace shardplan
