#include <cassert>
#include <thread>
#include <stop_token>
int served = 0; bool asked = false;
int main() {
  std::jthread worker([](std::stop_token stop) { while (!stop.stop_requested()) { served = served + 1; std::this_thread::yield(); } });
  worker.request_stop();
  worker.join();
  assert(served == 0 || asked == false);
  assert(served < 2);
}
