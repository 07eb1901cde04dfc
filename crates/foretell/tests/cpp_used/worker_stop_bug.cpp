// stop_ is set without the lock, between a worker's look and its wait.
#include <atomic>
#include <cassert>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
class Worker {
  std::mutex m_;
  std::condition_variable c_;
  std::queue<std::function<void()>> q_;
  std::atomic<bool> stop_{false};
  std::thread t_;
public:
  Worker() : t_([this] {
    for (;;) {
      std::unique_lock l(m_);
      while (!stop_ && q_.empty()) c_.wait(l);
      if (q_.empty()) return;
      auto f = std::move(q_.front());
      q_.pop();
      l.unlock();
      f();
    }
  }) {}
  void add(std::function<void()> f) { { std::lock_guard l(m_); q_.push(std::move(f)); } c_.notify_one(); }
  ~Worker() { stop_ = true; c_.notify_one(); t_.join(); }
};
int main() {
  int done = 0;
  { Worker w; w.add([&] { done++; }); }
  assert(done == 1);
}
