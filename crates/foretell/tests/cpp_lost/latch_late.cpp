#include <latch>
#include <thread>
#include <cassert>
int x; std::latch l{1};
int main(){ std::thread t([]{ l.count_down(); x=1; }); l.wait(); int y = x; t.join(); assert(y==1); }
