#include <atomic>
#include <thread>
#include <cassert>
std::atomic<int> f{0}; int x;
int main(){ std::thread t([]{ x=1; f=1; f.notify_one(); }); f.wait(0); assert(x==1); t.join(); }
