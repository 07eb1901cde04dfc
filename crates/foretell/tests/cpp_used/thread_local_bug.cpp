#include <cassert>
#include <mutex>
#include <thread>
std::mutex m; int total = 0;
int get() { std::lock_guard g(m); return total; }
void set(int v) { std::lock_guard g(m); total = v; }
struct Counter { int n = 0; ~Counter() { set(get() + n); } };
thread_local Counter counter;
int main() {
  std::thread a([] { counter.n += 1; }), b([] { counter.n += 2; });
  a.join(); b.join(); assert(get() == 3);
}
