// A lazily computed value in std::optional, under a lock.
#include <cassert>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
class Config {
  mutable std::mutex m_;
  mutable std::optional<std::string> name_;
  mutable int computed_ = 0;
public:
  std::string name() const {
    std::lock_guard lock(m_);
    if (!name_) { name_ = std::string("server-") + "one-of-many-machines"; ++computed_; }
    return *name_;
  }
  int computed() const { std::lock_guard lock(m_); return computed_; }
};
int main() {
  Config c;
  std::thread a([&] { assert(c.name().size() == 27); });
  std::thread b([&] { assert(c.name() == "server-one-of-many-machines"); });
  a.join(); b.join();
  assert(c.computed() == 1);
}
