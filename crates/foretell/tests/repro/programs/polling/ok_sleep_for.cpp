// Correct: a queue is polled under its mutex, with a sleep between two looks.
#include <cassert>
#include <chrono>
#include <mutex>
#include <queue>
#include <thread>

static std::mutex lock;
static std::queue<int> queue;
static int got;

static void take() {
  for (;;) {
    {
      std::lock_guard<std::mutex> guard(lock);
      if (!queue.empty()) {
        got = queue.front();
        queue.pop();
        return;
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

int main() {
  std::thread taker(take);
  std::thread giver([] {
    std::lock_guard<std::mutex> guard(lock);
    queue.push(7);
  });
  taker.join();
  giver.join();
  assert(got == 7);
}
