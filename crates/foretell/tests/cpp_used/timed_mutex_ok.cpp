#include <cassert>
#include <chrono>
#include <mutex>
#include <thread>
using namespace std::chrono_literals;
std::timed_mutex m; int n = 0, late = 0;
int main() {
  std::thread a([] { if (m.try_lock_for(10ms)) { n++; m.unlock(); } else late = 1; });
  m.lock(); n++; m.unlock();
  a.join();
  assert(n + late == 2);
}
