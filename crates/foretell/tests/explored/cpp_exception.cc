// What a thread catches depends on what another did.
#include <atomic>
#include <stdexcept>
#include <thread>
#include "explored.h"

static std::atomic<int> limit{1};
static int result;

static void check(int value) {
  if (value > limit) throw std::runtime_error("too large");
}
static void work() {
  try {
    check(2);
    result += 1;
    check(1);
    result += 2;
  } catch (const std::exception &) {
    result += 10;
  }
}

int main() {
  std::thread a(work), b([] { limit = 2; });
  a.join();
  b.join();
  END_STATE(result);
}
