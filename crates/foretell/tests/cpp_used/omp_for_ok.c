#include <assert.h>
int main(void) { int sum = 0, c = 0;
#pragma omp parallel for num_threads(2) reduction(+ : sum)
  for (int i = 0; i < 4; i++) sum += i;
#pragma omp parallel num_threads(2)
  {
#pragma omp critical
    c++;
#pragma omp barrier
#pragma omp single
    c += 10;
  }
  assert(sum == 6 && c == 12); return 0; }
