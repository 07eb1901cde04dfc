#include <assert.h>
int x;
int main(void) {
#pragma omp parallel num_threads(2)
#pragma omp single
  {
#pragma omp task depend(out : x)
    x = 1;
#pragma omp task depend(inout : x)
    x *= 3;
  }
  assert(x == 3); return 0; }
