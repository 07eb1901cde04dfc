#include <assert.h>
int x, y;
int main(void) {
#pragma omp parallel num_threads(2)
#pragma omp single
  {
#pragma omp task
    { y = x; x = y + 1; }
#pragma omp task
    { int t = x; x = t + 1; }
#pragma omp taskwait
  }
  assert(x == 2); return 0; }
