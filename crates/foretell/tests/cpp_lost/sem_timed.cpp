#include <semaphore>
#include <thread>
#include <cassert>
#include <chrono>
std::binary_semaphore s{0}; 
int main(){ std::thread a([]{ s.release(); }); bool got = s.try_acquire_for(std::chrono::milliseconds(5)); a.join(); assert(got); }
