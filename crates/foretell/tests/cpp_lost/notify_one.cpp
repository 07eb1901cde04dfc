#include <atomic>
#include <thread>
std::atomic<int> f{0};
int main(){ std::thread a([]{ f.wait(0); }), b([]{ f.wait(0); }); f=1; f.notify_one(); a.join(); b.join(); }
