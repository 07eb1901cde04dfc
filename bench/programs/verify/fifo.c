/* A queue of one writer and one reader with volatile indices. Safe. */
#include <assert.h>
#include <pthread.h>

typedef struct { volatile unsigned head, tail; int q[2]; } fifo;
fifo f;
void *writer(void *arg) { for (int i = 1; i <= 3; i++) { while ((f.head + 1) % 2 == f.tail % 2 && f.head != f.tail) ; f.q[f.head % 2] = i; f.head++; } return 0; }
void *reader(void *arg) { for (int i = 1; i <= 3; i++) { while (f.head == f.tail) ; int v = f.q[f.tail % 2]; assert(v == i); f.tail++; } return 0; }
int main(void) {
  pthread_t a, b;
  
  pthread_create(&a, 0, writer, 0);
  pthread_create(&b, 0, reader, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  
  return 0;
}
