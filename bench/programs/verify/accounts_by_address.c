/* Two locks of an array of structures, the lower address first. Safe. */
extern void abort(void);
extern void __assert_fail(const char *, const char *, unsigned int, const char *) __attribute__((__nothrow__, __leaf__, __noreturn__));
void reach_error(void) {
  __assert_fail("0", "f.c", 1, "reach_error");
}
#include <pthread.h>
#include <string.h>
struct acc {
  char name[8];
  int bal;
  pthread_mutex_t l;
}
accs[2] = { { "a", 10, PTHREAD_MUTEX_INITIALIZER }, { "b", 10, PTHREAD_MUTEX_INITIALIZER } };
struct acc *idx[2] = { &accs[0], &accs[1] };
static void move(struct acc *f, struct acc *t, int n) {
  struct acc *a = f < t ? f : t, *b = f < t ? t : f;
  pthread_mutex_lock(&a->l);
  pthread_mutex_lock(&b->l);
  f->bal -= n;
  t->bal += n;
  pthread_mutex_unlock(&b->l);
  pthread_mutex_unlock(&a->l);
}
static void *w(void *x) {
  move(idx[1], idx[0], 3);
  return 0;
}
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, w, 0);
  move(idx[0], idx[1], 5);
  pthread_join(t, 0);
  if (accs[0].bal + accs[1].bal != 20 || strcmp(accs[0].name, "a")) reach_error();
  return 0;
}
