// The check and the computation are two critical sections.
#include <cassert>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
class Config {
  mutable std::mutex m_;
  std::optional<std::string> name_;
  int computed_ = 0;
  bool has() const { std::lock_guard lock(m_); return name_.has_value(); }
public:
  std::string name() {
    if (!has()) {
      std::string made = std::string("server-") + "one-of-many-machines";
      std::lock_guard lock(m_);
      name_ = made;
      ++computed_;
    }
    std::lock_guard lock(m_);
    return *name_;
  }
  int computed() const { std::lock_guard lock(m_); return computed_; }
};
int main() {
  Config c;
  std::thread a([&] { c.name(); });
  std::thread b([&] { c.name(); });
  a.join(); b.join();
  assert(c.computed() == 1);
}
