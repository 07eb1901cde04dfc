/* main gmtime, w gmtime, main reads tm_year: easy to force; foretell chooses an order inside gmtime's writes that it cannot force */
#include "../kernel/short.h"
static void *w(void*p){ time_t t=(intptr_t)p; struct tm*x=gmtime(&t); assert(x->tm_year==(t>86400*400?72:70)); return 0; }
int main(){ T a; GO(a,w,86400L*800); w((void*)5); J(a); return 0; }
