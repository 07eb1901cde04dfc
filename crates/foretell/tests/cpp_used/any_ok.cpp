// Settings of any type under a lock with readers.
#include <any>
#include <cassert>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
class Settings {
  mutable std::shared_mutex m_;
  std::map<std::string, std::any, std::less<>> all_;
public:
  template <class T> void set(const std::string &k, T v) { std::unique_lock l(m_); all_[k] = std::move(v); }
  template <class T> T get(std::string_view k, T otherwise) const {
    std::shared_lock l(m_);
    auto at = all_.find(k);
    return at == all_.end() ? otherwise : std::any_cast<T>(at->second);
  }
};
int main() {
  Settings s;
  s.set("port", 80);
  std::thread w([&] { s.set("port", 8080); });
  std::thread r([&] { int p = s.get("port", 0); assert(p == 80 || p == 8080); });
  w.join(); r.join();
  assert(s.get("port", 0) == 8080);
}
