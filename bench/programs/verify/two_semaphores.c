/* Two threads alternate by semaphores. Safe. */
extern void abort(void);
extern void __assert_fail(const char *, const char *, unsigned int, const char *) __attribute__((__nothrow__, __leaf__, __noreturn__));
void reach_error(void) {
  __assert_fail("0", "f.c", 1, "reach_error");
}
#include <pthread.h>
#include <semaphore.h>
sem_t a, b;
int n;
static void *w(void *x) {
  for (int i = 0; i < 3; i++) {
    sem_wait(&a);
    n = n * 2;
    sem_post(&b);
  }
  return 0;
}
int main(void) {
  pthread_t t;
  sem_init(&a, 0, 0);
  sem_init(&b, 0, 1);
  n = 1;
  pthread_create(&t, 0, w, 0);
  for (int i = 0; i < 3; i++) {
    sem_wait(&b);
    n++;
    sem_post(&a);
  }
  pthread_join(t, 0);
  if (n != 22) reach_error();
  return 0;
}
