/* Null is given where the type of the function pointer promises that it is not: clang keeps nothing of it in
   the IR, and another compiler may use it. */
#include <assert.h>
#include <stddef.h>

static int is_there(int *p) { return p != NULL; }

int main(void) {
  int (*look)(int *) __attribute__((nonnull)) = is_there;
  assert(look(NULL) == 0);
  return 0;
}
