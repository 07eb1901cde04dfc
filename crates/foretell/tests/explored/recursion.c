/* A recursive function over a shared tree, beside a change of it. */
#include <pthread.h>
#include "explored.h"

struct tree {
  int value;
  struct tree *left, *right;
};
static struct tree leaf = {1, NULL, NULL}, other = {2, NULL, NULL}, root = {4, &leaf, &other};
static int total;

static int sum(const struct tree *tree) {
  return tree == NULL ? 0 : tree->value + sum(tree->left) + sum(tree->right);
}
static void *reader(void *unused) {
  total = sum(&root);
  return unused;
}
static void *changer(void *unused) {
  root.left = NULL;
  other.value = 10;
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, reader, NULL);
  pthread_create(&threads[1], NULL, changer, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(total);
  return 0;
}
