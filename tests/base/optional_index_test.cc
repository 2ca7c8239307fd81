#include "base/optional_index.h"

#include <gtest/gtest.h>

#include <optional>

#include "base/index.h"

namespace shardplan {
namespace {

using Place = Index<struct PlaceTag>;

TEST(OptionalIndexTest, IsAnIndexOrNothing) {
  OptionalIndex<Place> place;
  EXPECT_FALSE(place.has_value());
  EXPECT_EQ(place, std::nullopt);
  EXPECT_EQ(place.value_or(Place(7)), Place(7));
  place = Place(0);
  ASSERT_TRUE(place);
  EXPECT_EQ(*place, Place(0));
  EXPECT_EQ(place->value(), 0U);
  EXPECT_EQ(place.value_or(Place(7)), Place(0));
  place.reset();
  EXPECT_FALSE(place);
  EXPECT_EQ(sizeof(place), sizeof(Place));
}

TEST(OptionalIndexTest, IsWhatAnOptionalIs) {
  const std::optional<Place> third = Place(3), none;
  EXPECT_EQ(OptionalIndex<Place>(third), third);
  EXPECT_EQ(OptionalIndex<Place>(third), Place(3));
  EXPECT_NE(OptionalIndex<Place>(third), Place(4));
  EXPECT_NE(OptionalIndex<Place>(third), none);
  EXPECT_EQ(std::optional<Place>(OptionalIndex<Place>(third)), third);
  EXPECT_EQ(std::optional<Place>(OptionalIndex<Place>(none)), none);
}

}  // namespace
}  // namespace shardplan
