/* A message is copied as bytes under a lock. Safe. */
extern void abort(void);
extern void __assert_fail(const char *, const char *, unsigned int, const char *) __attribute__((__nothrow__, __leaf__, __noreturn__));
void reach_error(void) {
  __assert_fail("0", "f.c", 1, "reach_error");
}
#include <pthread.h>
#include <string.h>
#include <stdlib.h>
struct msg {
  int kind;
  char body[12];
};
struct msg box;
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
int have;
static void *w(void *a) {
  struct msg x;
  memset(&x, 0, sizeof x);
  x.kind = 2;
  strcpy(x.body, "hello");
  pthread_mutex_lock(&m);
  memcpy(&box, &x, sizeof x);
  have = 1;
  pthread_mutex_unlock(&m);
  return 0;
}
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, w, 0);
  pthread_mutex_lock(&m);
  if (have && (box.kind != 2 || strlen(box.body) != 5)) reach_error();
  pthread_mutex_unlock(&m);
  pthread_join(t, 0);
  return 0;
}
