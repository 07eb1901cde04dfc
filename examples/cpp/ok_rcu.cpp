// Correct: a configuration that is read often and replaced seldom. Readers hold a copy of the pointer;
// a writer makes a new configuration and puts it in place of the old one.
#include <cassert>
#include <cstdio>
#include <memory>
#include <mutex>
#include <thread>

struct Configuration {
  int width;
  int height;
};

class Store {
 public:
  Store() : current_(std::make_shared<Configuration>(Configuration{1, 1})) {}

  std::shared_ptr<const Configuration> read() const {
    std::lock_guard lock(mutex_);
    return current_;
  }

  template <typename Change>
  void update(Change change) {
    std::lock_guard lock(writers_);
    auto next = std::make_shared<Configuration>(*read());
    change(*next);
    std::lock_guard publish(mutex_);
    current_ = std::move(next);
  }

 private:
  mutable std::mutex mutex_;
  std::mutex writers_;
  std::shared_ptr<Configuration> current_;
};

int main() {
  Store store;
  std::thread writer([&store] {
    store.update([](Configuration &c) {
      c.width *= 2;
      c.height *= 2;
    });
  });
  std::thread reader([&store] {
    auto seen = store.read();
    assert(seen->width == seen->height);
  });
  writer.join();
  reader.join();
  assert(store.read()->width == 2);
  std::puts("consistent");
}
