#include <atomic>
#include <thread>
std::atomic<int> f{0};
int main(){ std::thread t([]{ f=1; }); f.wait(0); t.join(); }
