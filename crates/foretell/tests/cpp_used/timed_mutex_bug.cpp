#include <cassert>
#include <chrono>
#include <mutex>
#include <thread>
using namespace std::chrono_literals;
std::recursive_timed_mutex m; int n = 0;
int main() {
  std::thread a([] { if (m.try_lock_for(10ms)) { n++; m.unlock(); } });
  m.lock(); n++; m.unlock();
  a.join();
  assert(n == 2);
}
