// A singleton that is made when it is first asked for. The pointer is atomic and the second look is
// made without the lock that the first thread holds: two threads make one each.
#include <atomic>
#include <cassert>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

class Settings {
 public:
  static Settings &instance() {
    Settings *known = instance_.load();
    if (known == nullptr) {
      auto made = std::make_unique<Settings>();
      std::lock_guard lock(mutex_);
      known = made.release();
      instance_.store(known);  // BUG: nobody looked again
    }
    return *known;
  }

  static void forget() { delete instance_.exchange(nullptr); }

  void set_level(int level) { level_.store(level); }
  int level() const { return level_.load(); }

 private:
  static std::atomic<Settings *> instance_;
  static std::mutex mutex_;
  std::atomic<int> level_{0};
};

std::atomic<Settings *> Settings::instance_;
std::mutex Settings::mutex_;

static Settings *look() { return &Settings::instance(); }

int main() {
  Settings *seen[2] = {};
  std::thread first([&seen] { seen[0] = look(); });
  std::thread second([&seen] { seen[1] = look(); });
  first.join();
  second.join();
  seen[0]->set_level(3);
  assert(seen[1]->level() == 3);
  if (seen[0] != seen[1]) delete seen[0];
  Settings::forget();
  std::puts("one level");
}
