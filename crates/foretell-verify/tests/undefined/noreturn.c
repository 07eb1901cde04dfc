#include <assert.h>
int g;
__attribute__((noreturn, noinline)) static void f(void) { g = 1; }
int main(void) { f(); assert(g == 1); return 0; }
