#include <cassert>
#include <mutex>
#include <shared_mutex>
#include <thread>
std::shared_mutex m; int a = 0, b = 0;
int main() {
  std::thread w([] { std::unique_lock l(m); a++; b++; });
  std::thread r([] { std::shared_lock l(m); assert(a == b); });
  { std::shared_lock l(m); assert(a == b); }
  w.join(); r.join();
}
