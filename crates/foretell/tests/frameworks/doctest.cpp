#include "counter.hpp"
#include <doctest/doctest.h>

TEST_CASE("locked") { CHECK(added_by_two(&Counter::add) == 2); }
TEST_CASE("torn, twice") { REQUIRE(added_by_two(&Counter::add_torn) == 2); }
TEST_CASE("skipped" * doctest::skip()) { REQUIRE(1 == 2); }
