#include <assert.h>
int main(void) { int a=1,b=2,c=3,d=4,e=5,f=6,g=7,h=8,i=9,j=10,k=11,l=12,m=13,n=14, s=0;
#pragma omp parallel num_threads(2) firstprivate(a,b,c,d,e,f,g,h,i,j,k,l,m,n)
  {
#pragma omp critical
    s += a+b+c+d+e+f+g+h+i+j+k+l+m+n;
  }
  assert(s == 210); return 0; }
