#include "counter.hpp"
#include <gtest/gtest.h>

TEST(Counter, Locked) { EXPECT_EQ(added_by_two(&Counter::add), 2); }
TEST(Counter, Torn) { EXPECT_EQ(added_by_two(&Counter::add_torn), 2); }
TEST(Counter, DISABLED_Wrong) { EXPECT_EQ(1, 2); }
