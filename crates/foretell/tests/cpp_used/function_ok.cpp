// The same with weak pointers.
#include <cassert>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>
class Bus {
  std::mutex m_;
  std::map<int, std::function<void(int)>> subscribers_;
  int next_ = 0;
public:
  int add(std::function<void(int)> f) { std::lock_guard l(m_); subscribers_[next_] = std::move(f); return next_++; }
  void remove(int id) { std::lock_guard l(m_); subscribers_.erase(id); }
  void publish(int v) {
    std::vector<std::function<void(int)>> copy;
    { std::lock_guard l(m_); for (auto &[id, f] : subscribers_) copy.push_back(f); }
    for (auto &f : copy) f(v);
  }
};
struct View { int last = 0; void show(int v) { last = v; } };
int main() {
  Bus bus;
  auto view = std::make_shared<View>();
  int id = bus.add([weak = std::weak_ptr(view)](int v) { if (auto s = weak.lock()) s->show(v); });
  std::thread p([&] { bus.publish(5); });
  bus.remove(id);
  view.reset();
  p.join();
}
