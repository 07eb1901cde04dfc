#include <cassert>
#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <thread>
using namespace std::chrono_literals;
std::shared_timed_mutex m; int n = 0;
int main() {
  std::thread a([] { std::shared_lock l(m, 10ms); if (l) assert(n >= 0); else assert(n == 1); });
  { std::unique_lock l(m); n = 1; n = 2; }
  a.join();
}
