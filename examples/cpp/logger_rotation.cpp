// A logger that begins a new file when the current one is full. The size is looked at without holding the
// lock until the line is written: two writers both find room for one line.
#include <cassert>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

class Logger {
 public:
  explicit Logger(int most) : most_(most) { files_.emplace_back(); }

  void log(int line) {
    if (is_full()) rotate();
    append(line);
  }

  int largest() {
    std::lock_guard lock(mutex_);
    int largest = 0;
    for (const auto &file : files_)
      if (static_cast<int>(file.size()) > largest) largest = static_cast<int>(file.size());
    return largest;
  }

 private:
  bool is_full() {
    std::lock_guard lock(mutex_);
    return static_cast<int>(files_.back().size()) >= most_;
  }

  void rotate() {
    std::lock_guard lock(mutex_);
    files_.emplace_back();
  }

  void append(int line) {
    std::lock_guard lock(mutex_);
    files_.back().push_back(line);
  }

  std::mutex mutex_;
  int most_;
  std::vector<std::vector<int>> files_;
};

int main() {
  Logger logger(1);
  std::thread first([&logger] { logger.log(1); });
  std::thread second([&logger] { logger.log(2); });
  first.join();
  second.join();
  assert(logger.largest() <= 1);  // BUG: more lines than a file may have
  std::puts("rotated");
}
