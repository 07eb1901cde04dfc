#include <assert.h>
int main(void) { int sum = 0;
#pragma omp parallel for num_threads(2)
  for (int i = 0; i < 4; i++) { int v; 
#pragma omp atomic read
 v = sum;
#pragma omp atomic write
 sum = v + i; }
  assert(sum == 6); return 0; }
