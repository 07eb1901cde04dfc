// What the tests in this folder test: a counter with a correct and a wrong way to add.
#pragma once
#include <mutex>
#include <thread>

class Counter {
public:
  void add(int part) {
    std::lock_guard<std::mutex> guard(mutex_);
    value_ += part;
  }

  // Between the two locks another thread may add.
  void add_torn(int part) {
    int before = value();
    std::lock_guard<std::mutex> guard(mutex_);
    value_ = before + part;
  }

  int value() {
    std::lock_guard<std::mutex> guard(mutex_);
    return value_;
  }

private:
  std::mutex mutex_;
  int value_ = 0;
};

// What the counter says after two threads have each added one.
inline int added_by_two(void (Counter::*add)(int)) {
  Counter counter;
  std::thread other([&] { (counter.*add)(1); });
  (counter.*add)(1);
  other.join();
  return counter.value();
}
