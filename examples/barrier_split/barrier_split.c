/* A split-phase barrier: `arrive` says "my part is written", `await` waits for everybody's. One
 * worker reads its neighbour's part after it has arrived and before it has awaited. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

enum { WORKERS = 2, CELLS = 4 };

static struct {
  pthread_mutex_t lock;
  pthread_cond_t complete;
  int arrived;
} barrier = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

static int edges[WORKERS];
static int seen[WORKERS];

static void barrier_arrive(void) {
  pthread_mutex_lock(&barrier.lock);
  if (++barrier.arrived == WORKERS) pthread_cond_broadcast(&barrier.complete);
  pthread_mutex_unlock(&barrier.lock);
}

static void barrier_await(void) {
  pthread_mutex_lock(&barrier.lock);
  while (barrier.arrived < WORKERS) pthread_cond_wait(&barrier.complete, &barrier.lock);
  pthread_mutex_unlock(&barrier.lock);
}

static int edge_of(int first) {
  int sum = 0;
  for (int i = 0; i < CELLS; i++) sum += first + i;
  return sum;
}

static void *left(void *unused) {
  edges[0] = edge_of(1); /* BUG: definition */
  barrier_arrive();
  barrier_await();
  seen[0] = edges[1];
  return unused;
}

static void *right(void *unused) {
  edges[1] = edge_of(5);
  barrier_arrive();
  seen[1] = edges[0]; /* BUG: use */
  barrier_await();
  return unused;
}

int main(void) {
  pthread_t threads[WORKERS];
  pthread_create(&threads[0], NULL, left, NULL);
  pthread_create(&threads[1], NULL, right, NULL);
  for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
  printf("edges %d %d\n", edges[0], edges[1]);
  assert(seen[0] == edges[1] && seen[1] == edges[0]); /* BUG: assertion */
  return 0;
}
