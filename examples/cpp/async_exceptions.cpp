// Tasks that count how many of them are at work. One throws before it counts itself out; the exception
// arrives at its future as it should, and the counter stays too high.
#include <atomic>
#include <cassert>
#include <cstdio>
#include <future>
#include <mutex>
#include <stdexcept>

class Meter {
 public:
  void begin() {
    std::lock_guard lock(mutex_);
    active_++;
  }
  void end() {
    std::lock_guard lock(mutex_);
    active_--;
  }
  int active() {
    std::lock_guard lock(mutex_);
    return active_;
  }

 private:
  std::mutex mutex_;
  int active_ = 0;
};

static int work(Meter &meter) {
  meter.begin();
  if (meter.active() > 1) throw std::runtime_error("too many at work");  // BUG: it is not counted out
  meter.end();
  return 1;
}

int main() {
  Meter meter;
  auto first = std::async(std::launch::async, [&meter] { return work(meter); });
  auto second = std::async(std::launch::async, [&meter] { return work(meter); });
  int done = 0;
  for (auto *result : {&first, &second}) {
    try {
      done += result->get();
    } catch (const std::runtime_error &) {
    }
  }
  assert(meter.active() == 0);
  std::printf("done %d\n", done);
}
