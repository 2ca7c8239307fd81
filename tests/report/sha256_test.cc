#include "report/plan_file/sha256.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

TEST(Sha256Test, HashesAsTheStandardSays) {
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256(std::string(64, 'a')), "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}

}  // namespace
}  // namespace shardplan
