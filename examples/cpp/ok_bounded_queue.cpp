// Correct: a bounded queue with two condition variables; each side looks again after it has waited.
#include <array>
#include <cassert>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

template <typename Item, std::size_t Capacity>
class BoundedQueue {
 public:
  void put(Item item) {
    std::unique_lock lock(mutex_);
    not_full_.wait(lock, [this] { return count_ < Capacity; });
    items_[(first_ + count_++) % Capacity] = std::move(item);
    lock.unlock();
    not_empty_.notify_one();
  }

  Item take() {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [this] { return count_ > 0; });
    Item item = std::move(items_[first_]);
    first_ = (first_ + 1) % Capacity;
    count_--;
    lock.unlock();
    not_full_.notify_one();
    return item;
  }

 private:
  std::mutex mutex_;
  std::condition_variable not_full_;
  std::condition_variable not_empty_;
  std::array<Item, Capacity> items_{};
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

int main() {
  BoundedQueue<int, 1> queue;
  int sum = 0;
  std::thread producer([&queue] {
    for (int i = 1; i <= 2; i++) queue.put(i);
  });
  std::thread consumer([&queue, &sum] {
    for (int i = 0; i < 2; i++) sum += queue.take();
  });
  producer.join();
  consumer.join();
  assert(sum == 3);
  std::printf("sum %d\n", sum);
}
