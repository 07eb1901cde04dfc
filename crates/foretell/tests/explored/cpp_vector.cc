// Threads add to a vector under a lock, and one that found it empty does not.
#include <mutex>
#include <thread>
#include <vector>
#include "explored.h"

static std::mutex lock;
static std::vector<int> items;
static int skipped;

static void add(int item) {
  std::lock_guard<std::mutex> guard(lock);
  items.push_back(item);
}
static void take() {
  std::lock_guard<std::mutex> guard(lock);
  if (items.empty()) skipped = 1;
  else items.pop_back();
}

int main() {
  items.reserve(4);
  std::thread a(add, 1), b(add, 2), c(take);
  a.join();
  b.join();
  c.join();
  long state = skipped;
  for (int item : items) state = state * 10 + item;
  END_STATE(state);
}
