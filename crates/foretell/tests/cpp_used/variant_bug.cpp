// A variant that one thread visits while another changes what it holds, through two locked calls.
#include <cassert>
#include <mutex>
#include <string>
#include <thread>
#include <variant>
class State {
  mutable std::mutex m_;
  std::variant<int, std::string> v_ = 7;
public:
  bool is_number() const { std::lock_guard l(m_); return std::holds_alternative<int>(v_); }
  int number() const { std::lock_guard l(m_); return std::get<int>(v_); }
  void fail(std::string why) { std::lock_guard l(m_); v_ = std::move(why); }
};
int main() {
  State s;
  std::thread reader([&] { if (s.is_number()) assert(s.number() == 7); });
  std::thread writer([&] { s.fail("disk full"); });
  reader.join(); writer.join();
}
