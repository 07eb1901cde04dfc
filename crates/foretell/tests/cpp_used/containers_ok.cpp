// Containers of several kinds under one lock.
#include <cassert>
#include <deque>
#include <list>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_set>
struct Store {
  std::mutex m;
  std::deque<std::string> recent;
  std::set<int> ids;
  std::unordered_set<std::string> names;
  std::list<int> order;
  void add(int id, std::string name) {
    std::lock_guard l(m);
    if (!ids.insert(id).second) return;
    names.insert(name);
    recent.push_front(std::move(name));
    if (recent.size() > 2) recent.pop_back();
    order.push_back(id);
  }
};
int main() {
  Store s;
  std::thread a([&] { s.add(1, "one"); s.add(2, "two"); });
  std::thread b([&] { s.add(2, "two"); });
  a.join(); b.join();
  assert(s.ids.size() == 2 && s.names.size() == 2 && s.order.size() == 2 && s.recent.size() == 2);
}
