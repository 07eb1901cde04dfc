// Correct: a pool of one worker, which waits for jobs.
#include <condition_variable>
#include <mutex>
#include <thread>
#include "explored.h"

static std::mutex lock;
static std::condition_variable changed;
static int jobs, done;
static bool closed;

static void work() {
  for (;;) {
    std::unique_lock<std::mutex> guard(lock);
    changed.wait(guard, [] { return jobs > 0 || closed; });
    if (jobs == 0) return;
    jobs--;
    done++;
  }
}

int main() {
  std::thread worker(work);
  for (int i = 0; i < 2; i++) {
    std::lock_guard<std::mutex> guard(lock);
    jobs++;
    changed.notify_one();
  }
  {
    std::lock_guard<std::mutex> guard(lock);
    closed = true;
    changed.notify_all();
  }
  worker.join();
  END_STATE(done * 10 + jobs);
}
