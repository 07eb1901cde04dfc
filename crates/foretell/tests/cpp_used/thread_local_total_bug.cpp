// A thread-local buffer is flushed into a shared total in two steps.
#include <atomic>
#include <cassert>
#include <thread>
std::atomic<long> total{0};
struct Buffer {
  long pending = 0;
  void add(long n) { pending += n; }
  ~Buffer() { total = total + pending; }
};
thread_local Buffer buffer;
int main() {
  std::thread a([] { buffer.add(1); buffer.add(2); });
  std::thread b([] { buffer.add(4); });
  a.join(); b.join();
  assert(total == 7);
}
