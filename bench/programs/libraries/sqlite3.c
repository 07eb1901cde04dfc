// Two threads insert through connections of their own into one shared in-memory database.
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include "sqlite3.h"
static const char *name = "file:shared?mode=memory&cache=shared";
static sqlite3 *open_it(void) {
  sqlite3 *db = 0;
  int result = sqlite3_open_v2(name, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI, 0);
  assert(result == SQLITE_OK);
  return db;
}
static int inserted;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *insert(void *value) {
  sqlite3 *db = open_it();
  char text[64];
  snprintf(text, sizeof text, "insert into t values (%d)", (int)(long)value);
  int result = sqlite3_exec(db, text, 0, 0, 0);
  assert(result == SQLITE_OK || result == SQLITE_LOCKED || result == SQLITE_BUSY);
  if (result == SQLITE_OK) {
    pthread_mutex_lock(&m);
    inserted++;
    pthread_mutex_unlock(&m);
  }
  sqlite3_close(db);
  return 0;
}
static int count(void *to, int columns, char **values, char **names) {
  (void)columns, (void)names;
  *(int *)to = values[0][0] - '0';
  return 0;
}
int main(void) {
  sqlite3 *db = open_it();
  assert(sqlite3_exec(db, "create table t (x)", 0, 0, 0) == SQLITE_OK);
  pthread_t one, two;
  pthread_create(&one, 0, insert, (void *)1);
  pthread_create(&two, 0, insert, (void *)2);
  pthread_join(one, 0);
  pthread_join(two, 0);
  int rows = -1;
  assert(sqlite3_exec(db, "select count(*) from t", count, &rows, 0) == SQLITE_OK);
  assert(rows == inserted);
  sqlite3_close(db);
}
