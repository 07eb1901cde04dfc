// A bounded queue with two condition variables. The consumer looks once whether there is something
// instead of again after each wait: another consumer may have been there first.
#include <cassert>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

class BoundedQueue {
 public:
  void put(int item) {
    std::unique_lock lock(mutex_);
    not_full_.wait(lock, [this] { return count_ < Capacity; });
    items_[(first_ + count_++) % Capacity] = item;
    not_empty_.notify_all();
  }

  int take() {
    std::unique_lock lock(mutex_);
    if (count_ == 0) not_empty_.wait(lock);
    assert(count_ > 0);  // BUG: nothing is there
    int item = items_[first_];
    first_ = (first_ + 1) % Capacity;
    count_--;
    not_full_.notify_one();
    return item;
  }

 private:
  static constexpr int Capacity = 1;
  std::mutex mutex_;
  std::condition_variable not_full_;
  std::condition_variable not_empty_;
  int items_[Capacity] = {};
  int first_ = 0;
  int count_ = 0;
};

int main() {
  BoundedQueue queue;
  int sum[2] = {};
  std::thread producer([&] {
    queue.put(1);
    queue.put(2);
  });
  std::thread first([&] { sum[0] = queue.take(); });
  std::thread second([&] { sum[1] = queue.take(); });
  producer.join();
  first.join();
  second.join();
  std::printf("sum %d\n", sum[0] + sum[1]);
}
