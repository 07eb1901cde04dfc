#include <cassert>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <thread>
std::shared_mutex m; std::condition_variable_any c; bool ready = false;
int main() {
  std::thread a([] { std::unique_lock l(m); if (!ready) c.wait(l); });
  { ready = true; c.notify_one(); }
  a.join();
}
