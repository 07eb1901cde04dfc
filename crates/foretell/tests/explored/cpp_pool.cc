// Two workers of a pool run what they are given; who runs what is left to them.
#include <condition_variable>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
#include "explored.h"

static std::mutex lock;
static std::condition_variable changed;
static std::queue<std::function<void(int)>> jobs;
static bool closed;
static int who;

static void work(int worker) {
  for (;;) {
    std::function<void(int)> job;
    {
      std::unique_lock<std::mutex> guard(lock);
      changed.wait(guard, [] { return closed || !jobs.empty(); });
      if (jobs.empty()) return;
      job = std::move(jobs.front());
      jobs.pop();
    }
    job(worker);
  }
}

int main() {
  std::thread first(work, 1), second(work, 2);
  {
    std::lock_guard<std::mutex> guard(lock);
    jobs.push([](int worker) { who = worker; });
    closed = true;
  }
  changed.notify_all();
  first.join();
  second.join();
  END_STATE(who);
}
