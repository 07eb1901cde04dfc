/* Upgrade of a reader-writer lock: checked as a reader, changed as a writer, not checked again. The
 * lock is free in between, and two threads sell the last seat. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int seats = 3;

static int seats_left(void) {
  pthread_rwlock_rdlock(&lock);
  int left = seats; /* BUG: first */
  pthread_rwlock_unlock(&lock);
  return left;
}

static void set_seats(int left) {
  pthread_rwlock_wrlock(&lock);
  seats = left; /* BUG: write */
  pthread_rwlock_unlock(&lock);
}

static int book(void) {
  int left = seats_left();
  if (left == 0) return 0;
  set_seats(left - 1);
  return 1;
}

static void *agency(void *booked) {
  *(int *)booked = book();
  return NULL;
}

int main(void) {
  pthread_t threads[2];
  int booked[2];
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, agency, &booked[i]);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  printf("%d seats left\n", seats);
  assert(booked[0] + booked[1] + seats == 3); /* BUG: assertion */
  return 0;
}
