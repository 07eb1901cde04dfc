#include <assert.h>
#define PASTED(a) __##a##__
#ifndef __GNUC__
#error another compiler
#endif
/* 1 without optimisation; with it, a name that is not declared */
static int OPTIMIZED = PASTED(GNUC) > 0;
enum { __NO_ = 1 };
#define LINE(a, b) a##b
#if LINE(__NO_INLINE, __)
#define SLOW 1
#else
#define SLOW 0
#endif
int main(void) { assert(OPTIMIZED && SLOW); return 0; }
