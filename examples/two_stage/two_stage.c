/* Two-stage access (Farchi, Nir, Ur): a directory gives the record's number under one lock, the
 * record is read under another. A record that is deleted in between is used all the same. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

enum { RECORDS = 4, NONE = -1 };

static pthread_mutex_t directory_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t record_lock = PTHREAD_MUTEX_INITIALIZER;
static int directory[RECORDS] = {2, 0, 3, 1};
static struct { int valid, salary; } records[RECORDS] = {{1, 900}, {1, 1100}, {1, 1000}, {1, 800}};

static int find(int person) {
  pthread_mutex_lock(&directory_lock);
  int number = directory[person]; /* BUG: first */
  pthread_mutex_unlock(&directory_lock);
  return number;
}

static int salary_of(int person) {
  int number = find(person);
  if (number == NONE) return 0;
  pthread_mutex_lock(&record_lock);
  assert(records[number].valid); /* BUG: assertion */
  int salary = records[number].salary;
  pthread_mutex_unlock(&record_lock);
  return salary;
}

static void dismiss(int person) {
  pthread_mutex_lock(&directory_lock);
  int number = directory[person];
  directory[person] = NONE;
  pthread_mutex_unlock(&directory_lock);
  if (number == NONE) return;
  pthread_mutex_lock(&record_lock);
  records[number].valid = 0; /* BUG: remote */
  pthread_mutex_unlock(&record_lock);
}

static void *payroll(void *total) {
  *(int *)total = salary_of(1);
  return NULL;
}

static void *personnel(void *unused) {
  dismiss(1);
  return unused;
}

int main(void) {
  pthread_t threads[2];
  int total = 0;
  pthread_create(&threads[0], NULL, payroll, &total);
  pthread_create(&threads[1], NULL, personnel, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  printf("payroll done\n");
  return total >= 0 ? 0 : 1;
}
