/* Correct: a bank whose deposits and transfers hold the locks they need, accounts in fixed order. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

struct account {
  pthread_mutex_t lock;
  int balance;
};

static struct account accounts[2] = {
    {PTHREAD_MUTEX_INITIALIZER, 100},
    {PTHREAD_MUTEX_INITIALIZER, 50},
};

static void deposit(int number, int amount) {
  pthread_mutex_lock(&accounts[number].lock);
  accounts[number].balance += amount;
  pthread_mutex_unlock(&accounts[number].lock);
}

static void transfer(int from, int to, int amount) {
  int low = from < to ? from : to;
  int high = from < to ? to : from;
  pthread_mutex_lock(&accounts[low].lock);
  pthread_mutex_lock(&accounts[high].lock);
  if (accounts[from].balance >= amount) {
    accounts[from].balance -= amount;
    accounts[to].balance += amount;
  }
  pthread_mutex_unlock(&accounts[high].lock);
  pthread_mutex_unlock(&accounts[low].lock);
}

static void *teller(void *unused) {
  deposit(0, 10);
  transfer(0, 1, 20);
  return unused;
}

static void *machine(void *unused) {
  transfer(1, 0, 5);
  deposit(1, 30);
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, teller, NULL);
  pthread_create(&threads[1], NULL, machine, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  int total = accounts[0].balance + accounts[1].balance;
  printf("total: %d\n", total);
  assert(total == 190);
  return 0;
}
