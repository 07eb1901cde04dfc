/* The last one to put an object frees it, with __sync functions. Safe. */
extern void abort(void);
extern void __assert_fail(const char *, const char *, unsigned int, const char *) __attribute__((__nothrow__, __leaf__, __noreturn__));
void reach_error(void) {
  __assert_fail("0", "f.c", 1, "reach_error");
}
#include <pthread.h>
typedef unsigned char u8;
typedef struct {
  int counter;
} atomic_t;
static inline void atomic_inc(atomic_t *v) {
  __sync_add_and_fetch(&v->counter, 1);
}
static inline int atomic_dec_and_test(atomic_t *v) {
  return __sync_sub_and_fetch(&v->counter, 1) == 0;
}
static atomic_t ref = { 1 };
static int freed;
static void put(void) {
  if (atomic_dec_and_test(&ref)) {
    if (freed) reach_error();
    freed = 1;
  }
}
static void *w(void *a) {
  put();
  return 0;
}
int main(void) {
  pthread_t t;
  atomic_inc(&ref);
  pthread_create(&t, 0, w, 0);
  put();
  pthread_join(t, 0);
  if (!freed) reach_error();
  return 0;
}
