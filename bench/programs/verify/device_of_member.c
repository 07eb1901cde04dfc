/* A callback comes from a member to its structure, in two ways. Safe. */
extern void abort(void);
extern void __assert_fail(const char *, const char *, unsigned int, const char *) __attribute__((__nothrow__, __leaf__, __noreturn__));
void reach_error(void) {
  __assert_fail("0", "f.c", 1, "reach_error");
}
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
struct device {
  int id;
};
struct data {
  pthread_mutex_t lock;
  struct device dev;
  int n;
};
#define container_of(p, t, m) ((t *)((char *)(p) - offsetof(t, m)))
#define old_container_of(p, t, m) ({ const typeof(((t *)0)->m) *__m = (p); (t *)((char *)__m - (unsigned long)&((t *)0)->m); })
static void *cb(void *a) {
  struct device *d = a;
  struct data *x = container_of(d, struct data, dev);
  struct data *y = old_container_of(d, struct data, dev);
  pthread_mutex_lock(&x->lock);
  y->n++;
  pthread_mutex_unlock(&x->lock);
  return 0;
}
int main(void) {
  struct data *d = malloc(sizeof *d);
  if (!d) return 0;
  pthread_mutex_init(&d->lock, 0);
  d->n = 0;
  pthread_t a, b;
  pthread_create(&a, 0, cb, &d->dev);
  pthread_create(&b, 0, cb, &d->dev);
  pthread_join(a, 0);
  pthread_join(b, 0);
  if (d->n != 2) reach_error();
  pthread_mutex_destroy(&d->lock);
  free(d);
  return 0;
}
