#include <semaphore>
#include <thread>
#include <cassert>
int x; std::counting_semaphore<4> s{0};
int main(){ std::thread t([]{ x=1; s.release(); }); s.acquire(); assert(x==1); t.join(); return 0; }
