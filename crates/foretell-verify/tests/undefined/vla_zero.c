#include <assert.h>
int n;
int main(void) { int a[n]; assert(sizeof a == 0); return 0; }
