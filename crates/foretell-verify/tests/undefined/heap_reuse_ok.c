#include <assert.h>
#include <stdlib.h>
#include <string.h>
struct n { int v; struct n *next; char name[3]; };
int main(void) { struct n *a = malloc(sizeof *a), *b = calloc(1, sizeof *b); if (!a || !b) return 0; a->v = 1; a->next = b; *b = *a; b->name[1] = 'x';
  struct n c = *b; assert(c.v == 1 && b->next == b); memset(a, 0, sizeof *a); assert(a->v == 0); float *f = (float *)a; *f = 1.0f; assert(*f == 1.0f); return 0; }
