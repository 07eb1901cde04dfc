#include <cassert>
#include <mutex>
#include <thread>
std::mutex m; int total = 0;
struct Counter { int n = 0; ~Counter() { std::lock_guard g(m); total += n; } };
thread_local Counter counter;
int main() {
  std::thread a([] { counter.n += 1; }), b([] { counter.n += 2; });
  a.join(); b.join(); std::lock_guard g(m); assert(total == 3);
}
