// std::call_once, and a static variable of a function.
#include <atomic>
#include <mutex>
#include <thread>
#include "explored.h"

static std::once_flag once;
static std::atomic<int> made{0};

struct Table {
  int value;
  Table() : value(3) { made += 10; }
};

static int use() {
  std::call_once(once, [] { made++; });
  static Table table;
  return table.value;
}
static int seen[2];

int main() {
  std::thread a([] { seen[0] = use(); }), b([] { seen[1] = use(); });
  a.join();
  b.join();
  END_STATE(made * 100 + seen[0] * 10 + seen[1]);
}
