// Threads, mutexes, conditions, atomics, exceptions, local statics, thread-locals and futures of C++.
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

class Cache {
  std::mutex lock;
  std::map<int, std::string> entries;

public:
  std::string get(int key) {
    std::lock_guard<std::mutex> guard(lock);
    auto found = entries.find(key);
    if (found != entries.end())
      return found->second;
    if (key == 7)
      throw std::runtime_error("seven");
    return entries[key] = "entry " + std::to_string(key);
  }
};

static Cache &cache() {
  static Cache only;
  return only;
}

static std::atomic<int> total{0};
static std::mutex lock;
static std::condition_variable ready;
static bool started = false;
thread_local int mine = 0;

static void worker() {
  {
    std::unique_lock<std::mutex> guard(lock);
    ready.wait(guard, [] { return started; });
  }
  for (int key = 0; key < 8; key++) {
    try {
      mine += static_cast<int>(cache().get(key).size());
    } catch (const std::exception &) {
      mine += 100;
    }
  }
  total.fetch_add(mine);
}

int main() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++)
    threads.emplace_back(worker);
  {
    std::lock_guard<std::mutex> guard(lock);
    started = true;
  }
  ready.notify_all();
  for (auto &thread : threads)
    thread.join();
  auto later = std::async(std::launch::async, [] { return 5; });
  return total == 4 * (7 * 7 + 100) && later.get() == 5 ? 0 : 3;
}
