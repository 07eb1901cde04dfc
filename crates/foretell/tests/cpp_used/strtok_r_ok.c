/* strtok_r and getline: words of a file in memory, counted by two threads. */
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int words;
static void *count(void *p) {
  char *copy = strdup(p), *rest, *line = NULL;
  for (char *w = strtok_r(copy, " ,", &rest); w; w = strtok_r(NULL, " ,", &rest)) {
    pthread_mutex_lock(&lock);
    words++;
    pthread_mutex_unlock(&lock);
  }
  free(copy);
  free(line);
  return NULL;
}
int main(void) {
  char text[] = "one two\nthree, four five\n";
  FILE *in = fmemopen(text, strlen(text), "r");
  char *lines[2] = {NULL, NULL};
  size_t size[2] = {0, 0};
  pthread_t t[2];
  for (int i = 0; i < 2; i++) {
    ssize_t n = getline(&lines[i], &size[i], in);
    assert(n > 0);
    lines[i][n - 1] = 0;
    pthread_create(&t[i], NULL, count, lines[i]);
  }
  for (int i = 0; i < 2; i++) { pthread_join(t[i], NULL); free(lines[i]); }
  fclose(in);
  assert(words == 5);
}
