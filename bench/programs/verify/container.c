/* A structure is found by a member, as lists of Linux have it. Safe. */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

struct list_head { struct list_head *next, *prev; };
#define container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))
struct device { int id; struct list_head list; pthread_mutex_t lock; int users; };
struct device dev = {.id = 7, .lock = PTHREAD_MUTEX_INITIALIZER};
void *open_it(void *arg) {
  struct list_head *l = arg;
  struct device *d = container_of(l, struct device, list);
  pthread_mutex_lock(&d->lock); d->users++; pthread_mutex_unlock(&d->lock);
  return 0;
}
int main(void) {
  pthread_t a, b;
  dev.list.next = dev.list.prev = &dev.list;
  pthread_create(&a, 0, open_it, &dev.list);
  pthread_create(&b, 0, open_it, dev.list.next);
  pthread_join(a, 0); pthread_join(b, 0);
  assert(dev.users == 2 && dev.id == 7);
  return 0;
}
