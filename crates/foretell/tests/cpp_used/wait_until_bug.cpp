// The end of the wait is not always in time.
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
using namespace std::chrono_literals;
int main() {
  std::mutex m;
  std::condition_variable c;
  bool done = false;
  std::thread worker([&] {
    { std::lock_guard l(m); done = true; }
    c.notify_one();
  });
  {
    std::unique_lock l(m);
    bool in_time = c.wait_until(l, std::chrono::steady_clock::now() + 10ms, [&] { return done; });
    assert(in_time);
  }
  worker.join();
}
