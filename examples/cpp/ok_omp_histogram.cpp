// A histogram with OpenMP: each thread counts into bins of its own, which are added up under a critical section;
// one of them looks at the sum when all are past the barrier.
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdio>
#include <vector>

namespace {

using Bins = std::array<int, 3>;

class Histogram {
 public:
  void count(const std::vector<int> &values, int threads) {
    const int size = static_cast<int>(values.size());
#pragma omp parallel num_threads(threads)
    {
      Bins mine{};
#pragma omp for nowait
      for (int i = 0; i < size; i++) mine[bin(values[i])]++;
      add(mine);
#pragma omp barrier
#pragma omp single
      complete_ = total() == size;
    }
  }

  int operator[](int bin) const { return bins_[bin]; }
  bool complete() const { return complete_; }

 private:
  static int bin(int value) { return value < 10 ? 0 : value < 100 ? 1 : 2; }

  void add(const Bins &mine) {
#pragma omp critical(bins)
    for (std::size_t i = 0; i < mine.size(); i++) bins_[i] += mine[i];
  }

  int total() const {
    int sum = 0;
    for (int count : bins_) sum += count;
    return sum;
  }

  Bins bins_{};
  bool complete_ = false;
};

}  // namespace

int main() {
  Histogram histogram;
  histogram.count({1, 20, 300, 4, 50}, 2);
  assert(histogram.complete());
  assert(histogram[0] == 2 && histogram[1] == 2 && histogram[2] == 1);
  std::printf("%d %d %d\n", histogram[0], histogram[1], histogram[2]);
}
