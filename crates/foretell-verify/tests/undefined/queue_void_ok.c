#include <assert.h>
#include <stdlib.h>
void *q[4]; int h, t; static void put(void *p) { q[t++ % 4] = p; } static void *get(void) { return q[h++ % 4]; } struct job { int id; void (*run)(struct job *); int done; }; static void go(struct job *j) { j->done = j->id; }
int main(void) { for (int i = 1; i < 3; i++) { struct job *j = malloc(sizeof *j); if (!j) return 0; j->id = i; j->run = go; put(j); } for (int i = 1; i < 3; i++) { struct job *j = get(); j->run(j); assert(j->done == i); free(j); } return 0; }
