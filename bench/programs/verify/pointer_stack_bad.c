/* The new top is stored without a look at the old one. Unsafe. */
extern void abort(void);
extern void __assert_fail(const char *, const char *, unsigned int, const char *) __attribute__((__nothrow__, __leaf__, __noreturn__));
void reach_error(void) {
  __assert_fail("0", "f.c", 1, "reach_error");
}
#include <stdatomic.h>
#include <pthread.h>
#include <stdlib.h>
struct n {
  struct n *next;
  int v;
};
_Atomic(struct n *) top;
static void *push(void *x) {
  struct n *n = malloc(sizeof *n);
  if (!n) abort();
  n->v = 1;
  struct n *o = atomic_load(&top);
  n->next = o;
  atomic_store(&top, n);
  return 0;
}
int main(void) {
  pthread_t t, u;
  pthread_create(&t, 0, push, 0);
  pthread_create(&u, 0, push, 0);
  pthread_join(t, 0);
  pthread_join(u, 0);
  int s = 0;
  for (struct n *p = atomic_load(&top); p; p = p->next) s += p->v;
  if (s != 2) reach_error();
  return 0;
}
