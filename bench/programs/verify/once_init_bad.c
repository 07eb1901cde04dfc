/* Both threads make sure that a table is there. Unsafe. */
#include <assert.h>
#include <pthread.h>


pthread_once_t once = PTHREAD_ONCE_INIT;
int table, runs;
void init(void) { runs++; table = 42; }
int a_sees, b_sees;
void *one(void *arg) { if (!table) init(); a_sees = table; return 0; }
void *two(void *arg) { if (!table) init(); b_sees = table; return 0; }
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, one, 0);
  pthread_create(&b, 0, two, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(runs == 1 && a_sees == 42 && b_sees == 42);
  return 0;
}
