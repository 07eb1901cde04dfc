// A shared result is set by whoever is first; both may be.
#include <atomic>
#include <cassert>
#include <future>
#include <thread>
int main() {
  std::promise<int> p;
  auto f = p.get_future();
  std::atomic<bool> is_set{false};
  auto offer = [&](int v) { if (!is_set) { is_set = true; p.set_value(v); } };
  std::thread a(offer, 1), b(offer, 2);
  int got = f.get();
  a.join(); b.join();
  assert(got == 1 || got == 2);
}
