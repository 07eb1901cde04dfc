// Correct: the property cache of cpp_cache with one lock over what belongs together.
#include <array>
#include <cassert>
#include <cstdio>
#include <mutex>
#include <thread>

class PropertyCache {
 public:
  void fill(int key, int value);
  void flush();
  bool consistent();

 private:
  static constexpr int Size = 2;

  std::mutex lock_;
  std::array<int, Size> table_{};
  bool empty_ = true;
};

void PropertyCache::fill(int key, int value) {
  std::lock_guard<std::mutex> hold(lock_);
  table_[key] = value;
  empty_ = false;
}

void PropertyCache::flush() {
  std::lock_guard<std::mutex> hold(lock_);
  table_.fill(0);
  empty_ = true;
}

bool PropertyCache::consistent() {
  std::lock_guard<std::mutex> hold(lock_);
  bool any = false;
  for (int entry : table_) any = any || entry != 0;
  return any != empty_;
}

int main() {
  PropertyCache cache;
  std::thread interpreter([&cache] { cache.fill(1, 42); });
  std::thread collector([&cache] { cache.flush(); });
  interpreter.join();
  collector.join();
  std::puts("cache checked");
  assert(cache.consistent());
}
