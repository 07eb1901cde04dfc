// Correct: stages of a computation, each of which waits for the future of the one before it. A stage that
// fails hands its exception on.
#include <cassert>
#include <cstdio>
#include <exception>
#include <future>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

class Chain {
 public:
  explicit Chain(std::future<int> first) : last_(std::move(first)) {}

  ~Chain() {
    for (auto &thread : threads_) thread.join();
  }

  template <typename Stage>
  Chain &then(Stage stage) {
    std::promise<int> promise;
    std::future<int> result = promise.get_future();
    threads_.emplace_back(
        [before = std::move(last_), promise = std::move(promise), stage]() mutable {
          try {
            promise.set_value(stage(before.get()));
          } catch (...) {
            promise.set_exception(std::current_exception());
          }
        });
    last_ = std::move(result);
    return *this;
  }

  int get() { return last_.get(); }

 private:
  std::future<int> last_;
  std::vector<std::thread> threads_;
};

static int checked(int value) {
  if (value > 100) throw std::out_of_range("too large");
  return value + 1;
}

int main() {
  std::promise<int> start;
  Chain chain(start.get_future());
  chain.then([](int value) { return checked(2 * value); });
  start.set_value(20);
  int result = chain.get();
  assert(result == 41);
  std::printf("result %d\n", result);
}
