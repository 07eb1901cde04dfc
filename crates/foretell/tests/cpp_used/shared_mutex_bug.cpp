#include <cassert>
#include <mutex>
#include <shared_mutex>
#include <thread>
std::shared_mutex m; int hits = 0;
int get() { std::shared_lock l(m); return hits; }
void put(int v) { std::unique_lock l(m); hits = v; }
int main() {
  std::thread a([] { put(get() + 1); });
  std::thread b([] { put(get() + 1); });
  a.join(); b.join();
  assert(get() == 2);
}
