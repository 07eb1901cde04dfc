// Correct: a queue is polled under its mutex.
#include <mutex>
#include <thread>
#include <vector>
#include "explored.h"

static std::mutex lock;
static std::vector<int> queue;
static int sum = 1;

static void take() {
  ROUNDS(2);
  for (;;) {
    {
      std::lock_guard<std::mutex> guard(lock);
      if (!queue.empty()) {
        sum = sum * 3 + queue.back();
        queue.pop_back();
        return;
      }
    }
    NEXT_ROUND();
    std::this_thread::yield();
  }
}

int main() {
  std::thread taker(take);
  std::thread giver([] {
    std::lock_guard<std::mutex> guard(lock);
    queue.push_back(1);
  });
  taker.join();
  giver.join();
  END_STATE(sum);
  return 0;
}
