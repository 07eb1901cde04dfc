#include <map>
#include <mutex>
#include <thread>
#include <cassert>
std::map<int,int> m; std::mutex x;
void add(int k) { std::lock_guard g(x); m[k] = k; }
int main() { std::thread t(add, 1); add(2); t.join(); assert(m.size() == 2 && m[1] == 1); }
