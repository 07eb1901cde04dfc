#include <cassert>
#include <mutex>
#include <thread>
#include <stop_token>
std::mutex m; int served = 0; bool told = false;
int main() {
  std::jthread worker([](std::stop_token stop) { std::stop_callback cb(stop, [] { std::lock_guard g(m); told = true; }); std::lock_guard g(m); ++served; });
  worker.request_stop();
  worker.join();
  assert(served == 1);
}
