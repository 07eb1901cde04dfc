// Callbacks are copied out under the lock and called outside; one is removed and its object destroyed.
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
struct View {
  int *last = new int(0);
  ~View() { delete last; last = nullptr; }
  void show(int v) { assert(last != nullptr); *last = v; }
};
int main() {
  Bus bus;
  auto view = std::make_unique<View>();
  View *raw = view.get();
  int id = bus.add([raw](int v) { raw->show(v); });
  std::thread p([&] { bus.publish(5); });
  bus.remove(id);
  view.reset();
  p.join();
}
