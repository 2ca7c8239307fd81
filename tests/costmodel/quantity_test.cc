#include "costmodel/cluster/quantity.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

TEST(QuantityTest, ReadsUnitsExactly) {
  EXPECT_EQ(parse_time("5 us"), 5'000'000);
  EXPECT_EQ(parse_time("0.001ns"), 1);
  EXPECT_EQ(parse_time("2.5 s"), 2'500'000'000'000);
  EXPECT_EQ(parse_time("1 ms"), 1'000'000'000);
  EXPECT_EQ(parse_bytes("32 GiB"), std::int64_t{32} << 30);
  EXPECT_EQ(parse_bytes("16GiB"), std::int64_t{16} << 30);
  EXPECT_EQ(parse_bytes("1.5 KB"), 1500);
  EXPECT_EQ(parse_bytes("0.5 TiB"), std::int64_t{1} << 39);
  EXPECT_EQ(parse_bytes("0 B"), 0);
  EXPECT_EQ(parse_bytes("1.95 GiB"), 2'093'796'556);
  EXPECT_EQ(parse_byte_rate("1.2 TB/s"), 1'200'000'000'000);
  EXPECT_EQ(parse_byte_rate("100 Gb/s"), 12'500'000'000);
  EXPECT_EQ(parse_byte_rate("8 b/s"), 1);
  EXPECT_EQ(parse_operation_rate("19.5 TFLOP/s"), 19'500'000'000'000);
  EXPECT_EQ(parse_operation_rate("2 PFLOP/s"), 2'000'000'000'000'000);
  EXPECT_EQ(parse_share("0.775"), 775'000);
  EXPECT_EQ(parse_share("1"), 1'000'000);
}

TEST(QuantityTest, RefusesWhatIsNotExactOrHasNoUnit) {
  EXPECT_EQ(error_of([] { parse_bytes("32"); }),
            "error: '32' has no unit; expected B, KB, MB, GB, TB, KiB, MiB, GiB or TiB, as in 32 GiB");
  EXPECT_EQ(error_of([] { parse_time("5 min"); }),
            "error: '5 min' has the unknown unit 'min'; expected ns, us, ms or s");
  EXPECT_EQ(error_of([] { parse_time("0.0001 ns"); }), "error: '0.0001 ns' is not a whole number of picoseconds");
  EXPECT_EQ(error_of([] { parse_byte_rate("4 b/s"); }), "error: '4 b/s' is not a whole number of bytes per second");
  EXPECT_EQ(error_of([] { parse_bytes("9000000000 GiB"); }), "error: '9000000000 GiB' is too large");
  for (const char* text :
       {"", "GiB", "-1 B", "1e3 B", ".5 B", "5. B", "1.2.3 B", "99999999999999999999 B", " 1 B", "1,5 B"}) {
    EXPECT_NE(error_of([&] { parse_bytes(text); }), "no error") << text;
  }
  EXPECT_EQ(error_of([] { parse_bytes("1.5 B"); }), "error: '1.5 B' is not a whole number of bytes");
  for (const char* text : {"0", "1.1", "-0.5", "50 %", "0.1234567", "", "x"}) {
    EXPECT_NE(error_of([&] { parse_share(text); }), "no error") << text;
  }
}

TEST(QuantityTest, WritesWhatReadsBack) {
  EXPECT_EQ(write_bytes(std::int64_t{32} << 30), "32 GiB");
  EXPECT_EQ(write_byte_rate(12'500'000'000), "12.5 GB/s");
  EXPECT_EQ(write_time(5'000'000), "5 us");
  EXPECT_EQ(write_share(775'000), "0.775");
  Random random(1);
  for (int round = 0; round < 2000; ++round) {
    const auto value = static_cast<std::int64_t>(random.next() >> (2 + random.below(62)));
    EXPECT_EQ(parse_time(write_time(value)), value);
    EXPECT_EQ(parse_bytes(write_bytes(value)), value);
    EXPECT_EQ(parse_byte_rate(write_byte_rate(value)), value);
    const auto share = static_cast<std::int64_t>(1 + random.below(1'000'000));
    EXPECT_EQ(parse_share(write_share(share)), share);
  }
}

TEST(QuantityTest, NamesTheUnitsThatItReads) {
  const struct {
    Quantity quantity;
    std::int64_t (*parse)(std::string_view);
  } cases[] = {{Quantity::kTime, parse_time},
               {Quantity::kBytes, parse_bytes},
               {Quantity::kByteRate, parse_byte_rate},
               {Quantity::kOperationRate, parse_operation_rate}};
  for (const auto& [quantity, parse] : cases) {
    const std::vector<std::string> units = unit_names(quantity);
    EXPECT_FALSE(units.empty());
    for (const std::string& unit : units) EXPECT_GT(parse("8 " + unit), 0) << unit;
  }
}

}  // namespace
}  // namespace shardplan
