#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
struct s { int a, b; };
static int sum(struct s *s) { return s->a + s->b; }
int main(void) {
  int t = 0;
  for (int i = 0; i < 3; i++) { struct s *p = &(struct s){i, 1}; t += sum(p); while (p->a > 5) p->a--; t += sum(p); }
  int *q = (int[]){1, 2, 3};
  if (t) t += sum(&(struct s){ .a = q[2], .b = 0 });
  assert(t == 15);
  return 0;
}
