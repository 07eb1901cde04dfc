// Upgrade from a shared to an exclusive lock without looking again.
#include <cassert>
#include <shared_mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <mutex>
class Registry {
  std::shared_mutex m_;
  std::unordered_map<std::string, int> ids_;
  int next_ = 0;
public:
  int id(const std::string &name) {
    {
      std::shared_lock l(m_);
      if (auto at = ids_.find(name); at != ids_.end()) return at->second;
    }
    std::unique_lock l(m_);
    return ids_[name] = next_++;
  }
};
int main() {
  Registry r;
  int x = 0, y = 0;
  std::thread a([&] { x = r.id("node"); });
  std::thread b([&] { y = r.id("node"); });
  a.join(); b.join();
  assert(x == y);
}
