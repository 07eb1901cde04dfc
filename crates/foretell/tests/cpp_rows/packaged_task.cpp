#include <future>
#include <thread>
#include <cassert>
int main(){ std::packaged_task<int(int)> p([](int i){return i+1;}); auto f = p.get_future(); std::thread t(std::move(p), 3); assert(f.get()==4); t.join(); return 0; }
