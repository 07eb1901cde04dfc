#include <semaphore>
#include <thread>
#include <cassert>
std::counting_semaphore<4> s{2}; std::atomic<int> in{0};
void f(){ s.acquire(); int n = ++in; assert(n==1); --in; s.release(); }
int main(){ std::thread a(f), b(f); a.join(); b.join(); }
