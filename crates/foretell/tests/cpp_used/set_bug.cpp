// find and erase are two critical sections.
#include <cassert>
#include <mutex>
#include <set>
#include <thread>
class Seats {
  std::mutex m_;
  std::set<int> free_{7};
public:
  bool is_free(int n) { std::lock_guard l(m_); return free_.count(n) > 0; }
  void take(int n) { std::lock_guard l(m_); auto removed = free_.erase(n); assert(removed == 1); }
};
int main() {
  Seats s;
  auto book = [&] { if (s.is_free(7)) s.take(7); };
  std::thread a(book), b(book);
  a.join(); b.join();
}
