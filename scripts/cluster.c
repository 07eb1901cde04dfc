// What scripts/cluster.sh and the tests of --resume explore: four readers of a flag, each of which decides by
// it, and a bug that only some orders of them and the writer show.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_int flag, early, sum;
static void *reader(void *number) {
  int bit = 1 << (long)number;
  if (atomic_load(&flag)) atomic_fetch_add(&sum, bit);
  else atomic_fetch_add(&early, bit);
  return 0;
}
static void *writer(void *unused) {
  atomic_store(&flag, 1);
  return unused;
}
int main(void) {
  pthread_t threads[5];
  for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, reader, (void *)i);
  pthread_create(&threads[4], 0, writer, 0);
  for (int i = 0; i < 5; i++) pthread_join(threads[i], 0);
  assert(atomic_load(&early) != 5);
  return 0;
}
