// Correct: a pool of connections that are given back by the destructor of who took them. Whether one is free
// is asked in the critical section that takes it; who finds none waits.
#include <cassert>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

struct Connection {
  int number;
  int queries = 0;
};

class ConnectionPool {
 public:
  class Lease {
   public:
    Lease(ConnectionPool &pool, std::unique_ptr<Connection> connection)
        : pool_(pool), connection_(std::move(connection)) {}
    Lease(const Lease &) = delete;
    ~Lease() { pool_.give_back(std::move(connection_)); }
    Connection *operator->() { return connection_.get(); }

   private:
    ConnectionPool &pool_;
    std::unique_ptr<Connection> connection_;
  };

  explicit ConnectionPool(int size) {
    for (int i = 0; i < size; i++) free_.push_back(std::make_unique<Connection>(Connection{i}));
  }

  Lease take() {
    std::unique_lock lock(mutex_);
    available_.wait(lock, [this] { return !free_.empty(); });
    auto connection = std::move(free_.back());
    free_.pop_back();
    return Lease(*this, std::move(connection));
  }

  int queries() {
    std::lock_guard lock(mutex_);
    int queries = 0;
    for (const auto &connection : free_) queries += connection->queries;
    return queries;
  }

 private:
  void give_back(std::unique_ptr<Connection> connection) {
    {
      std::lock_guard lock(mutex_);
      free_.push_back(std::move(connection));
    }
    available_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable available_;
  std::vector<std::unique_ptr<Connection>> free_;
};

int main() {
  ConnectionPool pool(1);
  auto client = [&pool] { pool.take()->queries++; };
  std::thread first(client);
  std::thread second(client);
  first.join();
  second.join();
  assert(pool.queries() == 2);
  std::printf("queries %d\n", pool.queries());
}
