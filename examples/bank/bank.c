/* Two threads deposit into one account. Every access is locked, so there is no race, and almost
 * every run ends well. But a deposit reads under the lock, lets go, and writes under the lock: what
 * the other thread deposits in between is lost. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static int balance = 100;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int read_balance(void) {
  pthread_mutex_lock(&lock);
  int seen = balance; /* BUG: first */
  pthread_mutex_unlock(&lock);
  return seen;
}

static void write_balance(int amount) {
  pthread_mutex_lock(&lock);
  balance = amount; /* BUG: write */
  pthread_mutex_unlock(&lock);
}

static void deposit(int amount) {
  int seen = read_balance();
  write_balance(seen + amount);
}

static void *alice(void *unused) {
  deposit(10);
  return unused;
}

static void *bob(void *unused) {
  deposit(20);
  return unused;
}

int main(void) {
  pthread_t first, second;
  pthread_create(&first, NULL, alice, NULL);
  pthread_create(&second, NULL, bob, NULL);
  pthread_join(first, NULL);
  pthread_join(second, NULL);
  printf("balance: %d\n", balance);
  assert(balance == 130); /* BUG: assertion */
  return 0;
}
