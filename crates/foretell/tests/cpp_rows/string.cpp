#include <string>
#include <mutex>
#include <thread>
#include <cassert>
std::string s; std::mutex x;
void add(char c) { std::lock_guard g(x); s += c; }
int main() { std::thread t(add, 'a'); add('b'); t.join(); assert(s.size() == 2); }
