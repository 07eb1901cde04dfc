// Workers start together and report when they are done.
#include <array>
#include <atomic>
#include <cassert>
#include <latch>
#include <thread>
int main() {
  std::latch start(1), done(2);
  std::array<int, 2> results{};
  std::atomic<int> running{0};
  auto work = [&](int n) { start.wait(); running++; results[n] = n + 1; done.count_down(); };
  std::jthread a(work, 0), b(work, 1);
  assert(running == 0);
  start.count_down();
  done.wait();
  assert(results[0] + results[1] == 3 && running == 2);
}
