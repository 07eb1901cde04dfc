/* A reader takes a pair only if nobody wrote meanwhile. Unsafe. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>


atomic_uint sequence;
atomic_int left, right;
void *writer(void *arg) {  left = 1; right = 1; sequence++; return 0; }
void *reader(void *arg) {
  unsigned before = sequence;
  if (before & 1) return 0;
  int l = left, r = right;
  if (sequence == before) assert(l == r);
  return 0;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, writer, 0);
  pthread_create(&b, 0, reader, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);

  return 0;
}
