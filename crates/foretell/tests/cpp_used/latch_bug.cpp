// The latch counts one worker too few.
#include <array>
#include <cassert>
#include <latch>
#include <thread>
int main() {
  std::latch done(1);
  std::array<int, 2> results{};
  auto work = [&](int n) { results[n] = n + 1; done.count_down(); };
  std::jthread a([&] { results[0] = 1; }), b(work, 1);
  done.wait();
  assert(results[0] + results[1] == 3);
}
