// The result of wait_for is not looked at.
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
using namespace std::chrono_literals;
int main() {
  std::mutex m;
  std::condition_variable c;
  std::unique_ptr<int> result;
  std::thread worker([&] {
    std::this_thread::sleep_for(5ms);
    { std::lock_guard l(m); result = std::make_unique<int>(42); }
    c.notify_one();
  });
  {
    std::unique_lock l(m);
    c.wait_for(l, 10ms, [&] { return result != nullptr; });
    assert(result != nullptr);
  }
  worker.join();
}
