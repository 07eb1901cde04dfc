/* A queue from which its owner takes at one end and a thief at the other. Safe. */
#include <assert.h>
#include <pthread.h>

typedef struct { pthread_mutex_t cs; long head, tail; int elems[4]; } queue;
queue q; int taken[2];
void put(int e) { pthread_mutex_lock(&q.cs); q.elems[q.tail & 3] = e; q.tail++; pthread_mutex_unlock(&q.cs); }
_Bool pop(int *r) { _Bool got = 0; pthread_mutex_lock(&q.cs); if (q.head < q.tail) { q.tail--; *r = q.elems[q.tail & 3]; got = 1; } pthread_mutex_unlock(&q.cs); return got; }
_Bool steal(int *r) { _Bool got = 0; pthread_mutex_lock(&q.cs); if (q.head < q.tail) { *r = q.elems[q.head & 3]; q.head++; got = 1; } pthread_mutex_unlock(&q.cs); return got; }
void use(int *r) { __atomic_fetch_add(r, 1, __ATOMIC_SEQ_CST); assert(*r == 1); }
void *stealer(void *arg) { int r; if (steal(&r)) use(&taken[r]); return 0; }
int main(void) {
  pthread_t t;
  pthread_mutex_init(&q.cs, NULL);
  pthread_create(&t, NULL, stealer, NULL);
  int r;
  put(0); put(1);
  if (pop(&r)) use(&taken[r]);
  pthread_join(t, NULL);
  return 0;
}
