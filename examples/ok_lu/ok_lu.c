/* Correct: LU decomposition in the manner of SPLASH-2: rows are dealt out in turn, and a barrier
 * stands between the steps of the elimination. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, LARGEST = 96 };

static double matrix[LARGEST][LARGEST];
static int size = 6;
static int next_number;
static pthread_mutex_t number_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t step_end;

static int take_number(void) {
  pthread_mutex_lock(&number_lock);
  int mine = next_number++;
  pthread_mutex_unlock(&number_lock);
  return mine;
}

static void eliminate(int row, int pivot) {
  double factor = matrix[row][pivot] / matrix[pivot][pivot];
  matrix[row][pivot] = factor;
  for (int column = pivot + 1; column < size; column++) {
    matrix[row][column] -= factor * matrix[pivot][column];
  }
}

static void *worker(void *unused) {
  int me = take_number();
  for (int pivot = 0; pivot < size - 1; pivot++) {
    for (int row = pivot + 1; row < size; row++) {
      if (row % THREADS == me) eliminate(row, pivot);
    }
    pthread_barrier_wait(&step_end);
  }
  return unused;
}

int main(int count, char **arguments) {
  pthread_t threads[THREADS];
  if (count > 1) size = atoi(arguments[1]);
  if (size < 1 || size > LARGEST) return 2;
  for (int i = 0; i < size; i++) {
    for (int j = 0; j < size; j++) matrix[i][j] = i == j ? size : 1.0 / (1 + i + j);
  }
  pthread_barrier_init(&step_end, NULL, THREADS);
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, worker, NULL);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  double determinant = 1;
  for (int i = 0; i < size; i++) determinant *= matrix[i][i] / size;
  printf("determinant %.6f\n", determinant);
  return 0;
}
