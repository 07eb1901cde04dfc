#include <future>
#include <thread>
#include <cassert>
int main(){ std::promise<int> p; auto f = p.get_future(); std::thread t([&]{ p.set_value(7); }); assert(f.get()==7); t.join(); return 0; }
