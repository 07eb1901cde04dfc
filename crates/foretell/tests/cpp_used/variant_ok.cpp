// Messages as a variant, visited by a consumer.
#include <cassert>
#include <condition_variable>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <variant>
struct Add { int amount; };
struct Say { std::string text; };
struct Stop {};
using Message = std::variant<Add, Say, Stop>;
template <class... F> struct Overloaded : F... { using F::operator()...; };
class Inbox {
  std::mutex m_;
  std::condition_variable c_;
  std::queue<Message> q_;
public:
  void send(Message m) {
    { std::lock_guard l(m_); q_.push(std::move(m)); }
    c_.notify_one();
  }
  Message take() {
    std::unique_lock l(m_);
    c_.wait(l, [&] { return !q_.empty(); });
    Message m = std::move(q_.front());
    q_.pop();
    return m;
  }
};
int main() {
  Inbox in;
  int total = 0, said = 0;
  std::thread consumer([&] {
    for (bool go = true; go;)
      std::visit(Overloaded{[&](const Add &a) { total += a.amount; },
                            [&](const Say &s) { said += (int)s.text.size(); },
                            [&](const Stop &) { go = false; }}, in.take());
  });
  in.send(Add{3});
  in.send(Say{"hello"});
  in.send(Stop{});
  consumer.join();
  assert(total == 3 && said == 5);
}
