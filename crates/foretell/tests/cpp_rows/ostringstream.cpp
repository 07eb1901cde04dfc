#include <sstream>
#include <mutex>
#include <thread>
#include <cassert>
int n; std::mutex x;
void add(int k) { std::ostringstream o; o << "x" << k; std::string t = o.str(); std::lock_guard g(x); n += t.size(); }
int main() { std::thread t(add, 1); add(2); t.join(); assert(n == 4); }
