#include <assert.h>
#include <omp.h>
static int mine;
#pragma omp threadprivate(mine)
int main(void) { int bad = 0;
#pragma omp parallel num_threads(2)
  mine = omp_get_thread_num() + 1;
#pragma omp parallel num_threads(2)
  { int x; if (mine != omp_get_thread_num() + 1) {
#pragma omp atomic write
    bad = 1; }
#pragma omp single copyprivate(x)
    x = 1;
#pragma omp barrier
#pragma omp master
    x = 5;
  }
  assert(!bad && mine == 1); return 0; }
