// A pool of connections. Whether one is free is asked in one critical section and the connection taken
// in another: two clients that both saw the last free one both take it.
#include <cassert>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

struct Connection {
  int number;
  int queries = 0;
};

class ConnectionPool {
 public:
  explicit ConnectionPool(int size) {
    for (int i = 0; i < size; i++) free_.push_back(std::make_unique<Connection>(Connection{i}));
  }

  bool available() {
    std::lock_guard lock(mutex_);
    return !free_.empty();
  }

  std::unique_ptr<Connection> take() {
    std::lock_guard lock(mutex_);
    assert(!free_.empty());  // BUG: somebody else took it
    auto connection = std::move(free_.back());
    free_.pop_back();
    return connection;
  }

  void give_back(std::unique_ptr<Connection> connection) {
    std::lock_guard lock(mutex_);
    free_.push_back(std::move(connection));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Connection>> free_;
};

static void client(ConnectionPool &pool) {
  if (!pool.available()) return;
  auto connection = pool.take();
  connection->queries++;
  pool.give_back(std::move(connection));
}

int main() {
  ConnectionPool pool(1);
  std::thread first(client, std::ref(pool));
  std::thread second(client, std::ref(pool));
  first.join();
  second.join();
  std::puts("served");
}
