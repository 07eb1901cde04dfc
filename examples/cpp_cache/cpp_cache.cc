// Mozilla's property cache (js_FlushPropertyCache): `table` and `empty` belong together. A flush
// clears the table and sets `empty`, a fill stores an entry and clears `empty`; each access is
// locked, the two are not: after a fill between the flush's halves, a full cache calls itself empty.
#include <array>
#include <cassert>
#include <cstdio>
#include <mutex>
#include <thread>

class PropertyCache {
 public:
  void fill(int key, int value) {
    set_entry(key, value);
    set_empty(false);
  }

  void flush() {
    for (int key = 0; key < Size; key++) set_entry(key, 0);
    set_empty(true);  // BUG: flag
  }

  bool consistent() const {
    bool any = false;
    for (int entry : table_) any = any || entry != 0;
    return any != empty_;
  }

 private:
  static constexpr int Size = 2;

  void set_entry(int key, int value);
  void set_empty(bool empty);

  std::mutex lock_;
  std::array<int, Size> table_{};
  bool empty_ = true;
};

void PropertyCache::set_entry(int key, int value) {
  std::lock_guard<std::mutex> hold(lock_);
  table_[key] = value;
}

void PropertyCache::set_empty(bool empty) {
  std::lock_guard<std::mutex> hold(lock_);
  empty_ = empty;
}

int main() {
  PropertyCache cache;
  std::thread interpreter([&cache] { cache.fill(1, 42); });
  std::thread collector([&cache] { cache.flush(); });
  interpreter.join();
  collector.join();
  std::puts("cache checked");
  assert(cache.consistent());  // BUG: assertion
}
