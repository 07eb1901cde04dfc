/* A message is written, then a flag. The flag comes first. Unsafe. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

int message;
_Atomic int sent;

void *sender(void *arg) {
  sent = 1;
  message = 5;
  return 0;
}

void *receiver(void *arg) {
  if (sent)
    assert(message == 5);
  return 0;
}

int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, sender, 0);
  pthread_create(&b, 0, receiver, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  return 0;
}
