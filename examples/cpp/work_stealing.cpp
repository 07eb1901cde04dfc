// A deque of work: its owner takes from the bottom, thieves steal from the top. For the last item the two
// race for it, and only the thief uses compare-and-swap.
#include <array>
#include <atomic>
#include <cassert>
#include <cstdio>
#include <optional>
#include <thread>

class Deque {
 public:
  void push(int item) {
    long bottom = bottom_.load();
    items_[bottom % Size].store(item);
    bottom_.store(bottom + 1);
  }

  std::optional<int> take() {
    long bottom = bottom_.load() - 1;
    bottom_.store(bottom);
    long top = top_.load();
    if (top > bottom) {
      bottom_.store(bottom + 1);
      return std::nullopt;
    }
    return items_[bottom % Size].load();  // BUG: the last item without compare-and-swap
  }

  std::optional<int> steal() {
    long top = top_.load();
    if (top >= bottom_.load()) return std::nullopt;
    int item = items_[top % Size].load();
    if (!top_.compare_exchange_strong(top, top + 1)) return std::nullopt;
    return item;
  }

 private:
  static constexpr int Size = 4;
  std::atomic<long> top_{0};
  std::atomic<long> bottom_{0};
  std::array<std::atomic<int>, Size> items_{};
};

int main() {
  Deque deque;
  std::atomic<int> done{0};
  deque.push(5);
  std::thread owner([&] {
    if (auto item = deque.take()) done += *item;
  });
  std::thread thief([&] {
    if (auto item = deque.steal()) done += *item;
  });
  owner.join();
  thief.join();
  assert(done == 5);
  std::printf("done %d\n", done.load());
}
