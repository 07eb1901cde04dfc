/* Results come through pthread_join. Unsafe. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>


struct job { int from, to; };
void *work(void *arg) {
  struct job *job = arg;
  int *sum = malloc(sizeof *sum);
  *sum = 0;
  for (int i = job->from; i < job->to; i++) *sum += i;
  return sum;
}
int main(void) {
  pthread_t t[2];
  struct job jobs[2] = {{0, 4}, {4, 8}};
  int total = 0;
  for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, work, &jobs[0]);
  for (int i = 0; i < 2; i++) {
    void *sum;
    pthread_join(t[i], &sum);
    total += *(int *)sum;
    free(sum);
  }
  assert(total == 28);
  return 0;
}
