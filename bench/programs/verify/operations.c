/* A table of operations is called by a thread. Safe. */
#include <assert.h>
#include <pthread.h>

struct ops { int (*probe)(int); void (*remove)(void); };
int state; pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int my_probe(int x) { pthread_mutex_lock(&m); state += x; pthread_mutex_unlock(&m); return 0; }
static void my_remove(void) { pthread_mutex_lock(&m); state--; pthread_mutex_unlock(&m); }
static const struct ops my_ops = { .probe = my_probe, .remove = my_remove };
void *work(void *arg) { const struct ops *o = arg; if (o->probe(2) == 0) o->remove(); return 0; }
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, work, (void *)&my_ops);
  pthread_create(&b, 0, work, (void *)&my_ops);
  pthread_join(a, 0); pthread_join(b, 0);
  assert(state == 2);
  return 0;
}
