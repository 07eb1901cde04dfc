/* Two transfers in opposite directions lock the two accounts in opposite orders. */
#include <pthread.h>
#include <stdio.h>

struct account {
  pthread_mutex_t lock;
  int balance;
};

static struct account savings = {PTHREAD_MUTEX_INITIALIZER, 100};
static struct account checking = {PTHREAD_MUTEX_INITIALIZER, 50};

static void transfer(struct account *from, struct account *to, int amount) {
  pthread_mutex_lock(&from->lock); /* BUG: outer */
  pthread_mutex_lock(&to->lock);   /* BUG: inner */
  from->balance -= amount;
  to->balance += amount;
  pthread_mutex_unlock(&to->lock);
  pthread_mutex_unlock(&from->lock);
}

static void *save(void *unused) {
  transfer(&checking, &savings, 10);
  return unused;
}

static void *spend(void *unused) {
  transfer(&savings, &checking, 20);
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, save, NULL);
  pthread_create(&threads[1], NULL, spend, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  printf("%d %d\n", savings.balance, checking.balance);
  return 0;
}
