// Correct: a pool of two workers that run what they are given; the destructor waits for all of it.
#include <cassert>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

class Pool {
 public:
  explicit Pool(int workers) {
    for (int i = 0; i < workers; i++) threads_.emplace_back([this] { work(); });
  }
  ~Pool() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
    for (std::thread &thread : threads_) thread.join();
  }
  void run(std::function<void()> job) {
    {
      std::lock_guard lock(mutex_);
      jobs_.push(std::move(job));
    }
    changed_.notify_one();
  }

 private:
  void work() {
    for (;;) {
      std::function<void()> job;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return closed_ || !jobs_.empty(); });
        if (jobs_.empty()) return;
        job = std::move(jobs_.front());
        jobs_.pop();
      }
      job();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::queue<std::function<void()>> jobs_;
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

int main() {
  std::mutex mutex;
  int sum = 0;
  {
    Pool pool(2);
    for (int i = 1; i <= 2; i++)
      pool.run([&mutex, &sum, i] {
        std::lock_guard lock(mutex);
        sum += i;
      });
  }
  assert(sum == 3);
  std::printf("sum %d\n", sum);
}
