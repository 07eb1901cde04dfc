#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
struct s { int a, b; };
static int sum(struct s *s) { return s->a + s->b; }
int main(void) {
  struct s *p = 0;
  if (sum(&(struct s){1, 2}) == 3) { p = &(struct s){4, 5}; sum(p); }
  { struct s q = {8, 8}; sum(&q); }
  assert(sum(p) == 9);
  return 0;
}
