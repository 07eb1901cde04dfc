/* Three philosophers and three forks; the lower one first. No deadlock. */
#include <assert.h>
#include <pthread.h>

enum { N = 3 };
pthread_mutex_t fork_[N] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                           PTHREAD_MUTEX_INITIALIZER};
int meals[N];

void *philosopher(void *arg) {
  int me = (int)(long)arg;
  int a = me, b = (me + 1) % N;
  int first = a < b ? a : b, second = a < b ? b : a;
  pthread_mutex_lock(&fork_[first]);
  pthread_mutex_lock(&fork_[second]);
  meals[me]++;
  pthread_mutex_unlock(&fork_[second]);
  pthread_mutex_unlock(&fork_[first]);
  return 0;
}

int main(void) {
  pthread_t t[N];
  for (long i = 0; i < N; i++)
    pthread_create(&t[i], 0, philosopher, (void *)i);
  for (int i = 0; i < N; i++)
    pthread_join(t[i], 0);
  assert(meals[0] + meals[1] + meals[2] == N);
  return 0;
}
