#include "counter.hpp"
#include <catch2/catch.hpp>

TEST_CASE("locked") { CHECK(added_by_two(&Counter::add) == 2); }
TEST_CASE("torn, [twice]") { REQUIRE(added_by_two(&Counter::add_torn) == 2); }
TEST_CASE("hidden", "[.]") { REQUIRE(1 == 2); }
