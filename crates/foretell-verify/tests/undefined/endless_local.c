#include <assert.h>
int stop;
int main(void) { while (!stop) { } assert(0); return 0; }
