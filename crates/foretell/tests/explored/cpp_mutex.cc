// Guards of C++, and a decision in between.
#include <mutex>
#include <thread>
#include "explored.h"

static std::mutex lock;
static int value;

static void add(int summand) {
  int seen;
  {
    std::lock_guard<std::mutex> guard(lock);
    seen = value;
  }
  std::lock_guard<std::mutex> guard(lock);
  value = seen + summand;
}

int main() {
  std::thread a(add, 1), b(add, 2);
  a.join();
  b.join();
  END_STATE(value);
}
