#include <cassert>
#include <vector>
#include <atomic>
int main() { std::vector<int> v{1,2,3,4}; std::atomic<int> sum{0};
#pragma omp parallel num_threads(2)
  { int mine = 0;
#pragma omp for
    for (int i = 0; i < 4; i++) mine += v[i];
    int t = sum; t += mine; sum = t;
  }
  assert(sum == 10); }
