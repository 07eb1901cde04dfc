#include <assert.h>
#include <stdlib.h>
struct v { int kind; union { int i; double d; void *p; } u; };
int main(void) { struct v *a = malloc(sizeof *a); if (!a) return 0; a->kind = 1; a->u.i = 3; assert(a->u.i == 3); a->u.d = 1.5; assert(a->u.d == 1.5); a->u.p = a; assert(a->u.p == a); return 0; }
