// A thread pool fills a cache. Lookup and insertion each hold the lock, but between the two another
// worker may have inserted the same key: both make a value, and two callers hold different ones.
#include <condition_variable>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <queue>
#include <string>
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
      stop_ = true;
    }
    changed_.notify_all();
    for (auto &thread : threads_) thread.join();
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
        changed_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
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
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

class Cache {
 public:
  std::shared_ptr<int> get(const std::string &key) {
    if (auto known = find(key)) return known;
    auto made = std::make_shared<int>(42);
    insert(key, made);
    return made;
  }

 private:
  std::shared_ptr<int> find(const std::string &key) {
    std::lock_guard lock(mutex_);
    auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : found->second;
  }

  void insert(const std::string &key, std::shared_ptr<int> value) {
    std::lock_guard lock(mutex_);
    entries_[key] = std::move(value);
  }

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<int>> entries_;
};

int main() {
  Cache cache;
  std::shared_ptr<int> results[2];
  {
    Pool pool(2);
    for (int i = 0; i < 2; i++)
      pool.run([&cache, &results, i] { results[i] = cache.get("key"); });
  }
  if (results[0] != results[1]) {
    std::cerr << "two values for one key\n";
    return 1;
  }
  std::cout << "one value for one key\n";
}
