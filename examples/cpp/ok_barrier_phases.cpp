// Correct: two workers compute in phases. A barrier separates writing a cell from reading the other's; the
// last to arrive counts the phases.
#include <array>
#include <cassert>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

class Barrier {
 public:
  explicit Barrier(int parties) : parties_(parties) {}

  void arrive_and_wait() {
    std::unique_lock lock(mutex_);
    int phase = completed_;
    if (++arrived_ == parties_) {
      arrived_ = 0;
      completed_++;
      all_here_.notify_all();
    } else {
      all_here_.wait(lock, [&] { return completed_ != phase; });
    }
  }

  int completed() {
    std::lock_guard lock(mutex_);
    return completed_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_here_;
  const int parties_;
  int arrived_ = 0;
  int completed_ = 0;
};

class Grid {
 public:
  void run(int worker) {
    for (int phase = 0; phase < Phases; phase++) {
      write(worker);
      barrier_.arrive_and_wait();
      read(worker);
      barrier_.arrive_and_wait();
    }
  }

  int completed() { return barrier_.completed(); }

  int total() const {
    int total = 0;
    for (int cell : cells_) total += cell;
    return total;
  }

 private:
  static constexpr int Workers = 2;
  static constexpr int Phases = 1;

  void write(int worker) { cells_[worker] = neighbours_[worker] + worker + 1; }

  void read(int worker) { neighbours_[worker] = cells_[(worker + 1) % Workers]; }

  std::array<int, Workers> cells_{};
  std::array<int, Workers> neighbours_{};
  Barrier barrier_{Workers};
};

int main() {
  Grid grid;
  {
    std::jthread first([&grid] { grid.run(0); });
    std::jthread second([&grid] { grid.run(1); });
  }
  assert(grid.total() == 3);
  assert(grid.completed() == 2);
  std::printf("total %d\n", grid.total());
}
