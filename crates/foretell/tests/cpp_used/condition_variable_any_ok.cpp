#include <cassert>
#include <condition_variable>
#include <mutex>
#include <thread>
std::mutex m; std::condition_variable_any c; int items = 0;
int main() {
  int took = 0;
  { std::jthread a([&](std::stop_token s) { std::unique_lock l(m); if (c.wait(l, s, [] { return items > 0; })) { --items; took = 1; } });
    { std::lock_guard g(m); items = 1; } c.notify_one(); }
  assert(took + items == 1);
}
