/* A bank account: check and withdrawal are two critical sections. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct pair {
  int first, second;
};

static int balance = 100, withdrawn;
static struct pair source = {5, 6}, copy;
static unsigned char narrow = 200;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int less(int seen, int amount) { return seen - amount; }

static void *withdraw(void *argument) {
  int amount = (int)(long)argument;
  pthread_mutex_lock(&lock);
  int seen = balance;
  pthread_mutex_unlock(&lock);
  if (seen >= amount) {
    pthread_mutex_lock(&lock);
    balance = less(seen, amount);
    withdrawn += amount;
    pthread_mutex_unlock(&lock);
  }
  pthread_mutex_lock(&lock);
  struct pair local = source;
  local.first++;
  memcpy(&copy, &local, sizeof copy);
  narrow = (unsigned char)(narrow * 3 > 500 ? narrow - 100 : narrow + 1);
  __atomic_fetch_add(&withdrawn, 0, __ATOMIC_SEQ_CST);
  switch (copy.second & 3) {
  case 0:
    balance += 0;
    break;
  case 1:
    balance -= 0;
    break;
  default:
    break;
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}

int main(void) {
  pthread_t first, second;
  pthread_create(&first, NULL, withdraw, (void *)30L);
  pthread_create(&second, NULL, withdraw, (void *)50L);
  pthread_join(first, NULL);
  pthread_join(second, NULL);
  printf("balance %d\n", balance);
  fflush(stdout);
  assert(balance + withdrawn == 100);
  return 0;
}
