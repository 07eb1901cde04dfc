/* LU decomposition in blocks, as SPLASH-2's kernel does it: threads share the columns of blocks and
   meet at a barrier after each diagonal block. */
#include <pthread.h>
#include <stdlib.h>

enum { N = 48, BLOCK = 16, THREADS = 2 };

static double a[N][N];
static pthread_barrier_t barrier;

/* Divides and subtracts within a block of rows and columns, below the pivot. */
static void update(int pivot, int row, int column) {
  for (int i = row; i < row + BLOCK; i++) {
    if (i <= pivot)
      continue;
    double factor = a[i][pivot];
    for (int j = column; j < column + BLOCK; j++)
      if (j > pivot)
        a[i][j] -= factor * a[pivot][j];
  }
}

static void *worker(void *argument) {
  int me = (int)(long)argument;
  for (int pivot = 0; pivot < N; pivot++) {
    if (me == 0)
      for (int i = pivot + 1; i < N; i++)
        a[i][pivot] /= a[pivot][pivot];
    pthread_barrier_wait(&barrier);
    for (int row = 0; row < N; row += BLOCK)
      for (int column = 0; column < N; column += BLOCK)
        if ((row + column) / BLOCK % THREADS == me && row + BLOCK > pivot && column + BLOCK > pivot)
          update(pivot, row, column);
    pthread_barrier_wait(&barrier);
  }
  return 0;
}

int main(void) {
  pthread_t threads[THREADS];
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      a[i][j] = i == j ? N : 1.0 / (1 + i + j);
  pthread_barrier_init(&barrier, 0, THREADS);
  for (long i = 0; i < THREADS; i++)
    pthread_create(&threads[i], 0, worker, (void *)i);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], 0);
  return a[N - 1][N - 1] > 0 ? 0 : 1;
}
