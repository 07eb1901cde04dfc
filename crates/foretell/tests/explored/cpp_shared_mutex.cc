// A shared mutex: a reader sees all of a change or nothing.
#include <mutex>
#include <shared_mutex>
#include <thread>
#include "explored.h"

static std::shared_mutex lock;
static int x, y, seen;

static void write() {
  std::unique_lock<std::shared_mutex> guard(lock);
  x = 1;
  y = 1;
}
static void read() {
  std::shared_lock<std::shared_mutex> guard(lock);
  seen = x * 10 + y;
}

int main() {
  std::thread a(write), b(read);
  a.join();
  b.join();
  END_STATE(seen);
}
