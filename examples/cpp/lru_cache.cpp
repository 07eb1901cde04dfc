// A cache that forgets what was used longest ago. `touch` finds the entry under the lock and moves it to
// the front in a second critical section; meanwhile it may have been forgotten.
#include <cassert>
#include <cstdio>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

class LruCache {
 public:
  explicit LruCache(std::size_t capacity) : capacity_(capacity) {}

  void put(int key, int value) {
    std::lock_guard lock(mutex_);
    entries_.emplace_front(key, value);
    if (entries_.size() > capacity_) entries_.pop_back();
  }

  bool touch(int key) {
    if (!contains(key)) return false;
    to_front(key);
    return true;
  }

 private:
  using Entry = std::pair<int, int>;

  std::list<Entry>::iterator find(int key) {
    auto at = entries_.begin();
    while (at != entries_.end() && at->first != key) ++at;
    return at;
  }

  bool contains(int key) {
    std::lock_guard lock(mutex_);
    return find(key) != entries_.end();
  }

  void to_front(int key) {
    std::lock_guard lock(mutex_);
    auto at = find(key);
    assert(at != entries_.end());  // BUG: it was forgotten meanwhile
    entries_.splice(entries_.begin(), entries_, at);
  }

  std::mutex mutex_;
  std::size_t capacity_;
  std::list<Entry> entries_;
};

int main() {
  LruCache cache(1);
  cache.put(1, 10);
  std::thread reader([&cache] { cache.touch(1); });
  std::thread writer([&cache] { cache.put(2, 20); });
  reader.join();
  writer.join();
  std::puts("used");
}
