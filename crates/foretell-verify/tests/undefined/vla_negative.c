#include <assert.h>
int n = -1;
int main(void) { int a[n]; assert(sizeof a != 4); return 0; }
