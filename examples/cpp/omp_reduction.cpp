// The mean and the largest of some measurements with OpenMP. Instead of `reduction` each thread adds up its own
// part and puts it into the result at the end; the largest is looked at before the critical section, to spare
// the lock where nothing is to be done.
#include <cassert>
#include <cstddef>
#include <cstdio>
#include <utility>
#include <vector>

namespace {

struct Summary {
  long sum = 0;
  int largest = 0;
  int count = 0;
};

class Measurements {
 public:
  explicit Measurements(std::vector<int> values) : values_(std::move(values)) {}

  Summary summarise(int threads) const {
    Summary all;
#pragma omp parallel num_threads(threads)
    {
      Summary mine = part();
#pragma omp atomic
      all.count += mine.count;
#pragma omp critical(sum)
      all.sum += mine.sum;
      int largest;
#pragma omp atomic read
      largest = all.largest;
      if (mine.largest > largest) {  // BUG: another thread may put in a larger one meanwhile
#pragma omp atomic write
        all.largest = mine.largest;
      }
    }
    return all;
  }

 private:
  Summary part() const {
    Summary mine;
#pragma omp for
    for (std::size_t i = 0; i < values_.size(); i++) {
      mine.sum += values_[i];
      mine.count++;
      if (values_[i] > mine.largest) mine.largest = values_[i];
    }
    return mine;
  }

  std::vector<int> values_;
};

}  // namespace

int main() {
  Measurements measurements({3, 9, 4, 7});
  Summary summary = measurements.summarise(2);
  assert(summary.sum == 23 && summary.count == 4);
  assert(summary.largest == 9);
  std::printf("%d values, the largest is %d\n", summary.count, summary.largest);
}
