#include <barrier>
#include <thread>
#include <cassert>
int x; std::barrier b{2};
int main(){ std::thread t([]{ x=1; b.arrive_and_wait(); }); b.arrive_and_wait(); assert(x==1); t.join(); return 0; }
